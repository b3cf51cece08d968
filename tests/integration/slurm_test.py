"""Programs that `srun` starts, without an MPI's own launcher. Needs Slurm, see harness/slurm.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.fallow import BARE
from harness.lab import Lab
from harness.running import Outcome
from harness.slurm import missing, slurm
from programs_test import ENDS

RANKS = 2
TRIES = 8
LEFT_ALONE_S = 30  # what is left of a step after a task of it has ended
PMI = {"openmpi": "pmix", "mpich": "pmi2", "mpiabi": "pmi2"}
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def slurm_env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment in which `srun` works."""
    if missing():
        pytest.skip(f"Slurm: {missing()}")
    with slurm(tmp_path_factory.mktemp("slurm") / "slurm") as env:
        yield env


def _srun(lab: Lab, *command: str) -> list[str]:
    return ["srun", f"--wait={LEFT_ALONE_S}", f"--mpi={PMI[lab.family.name]}", "-n", str(RANKS), *command]


def _run(lab: Lab, mode: str, command: list[str], env: dict[str, str]) -> tuple[Outcome, Path]:
    """MPICH 5.0.2 fails in MPI_Init under PMI-2 now and then, with nothing loaded too: such a run is made again."""
    for _ in range(TRIES):
        running, record = lab.start(mode, command, env=env)
        outcome = running.finish()
        if outcome.rc == 0 or "Fatal error in internal_Init" not in outcome.err:
            break
    return outcome, record


@pytest.mark.parametrize("way", ["srun", "script"])
def test_ranks_of_srun(lab: Lab, slurm_env: dict[str, str], way: str) -> None:
    """Output and exit code as without Fallow; every rank has a record, and ranks on the node know of each other."""
    command = _srun(lab, str(lab.driver()))
    if way == "script":
        script = lab.scratch / "job.sh"
        script.write_text("#!/bin/sh\n" + " ".join(command) + "\n")
        script.chmod(0o755)
        command = [str(script)]
    bare, _ = _run(lab, BARE, command, slurm_env)
    outcome, record = _run(lab, "auto", command, slurm_env)
    assert outcome.rc == bare.rc == 0, bare.describe() + outcome.describe()
    assert "end wildcards" in bare.out, bare.describe()  # srun gives 0 where a step could not be started, too
    assert sorted(outcome.out.splitlines()) == sorted(bare.out.splitlines()), outcome.describe()
    ranks = lab.records(record)
    assert [r.world_rank for r in ranks] == list(range(RANKS)), outcome.describe()
    assert all(r.local_size == RANKS and r.finalized == 1 for r in ranks)
    assert lab.fallow.report(record)["health"]["ranks_read"] == RANKS


def test_a_failed_step_fails(lab: Lab, slurm_env: dict[str, str]) -> None:
    """The exit code of `srun` is the ranks'; after MPI_Finalize, so that none of them is killed because another ended."""
    command = _srun(lab, str(lab.program("ends.c")), "return3")
    for mode in (BARE, "auto"):
        outcome, _ = _run(lab, mode, command, slurm_env)
        assert outcome.rc == ENDS["return3"], outcome.describe()


def test_an_environment_that_slurm_keeps_to_itself(lab: Lab, slurm_env: dict[str, str]) -> None:
    """`--export=NONE`: the program runs as it does, and the user learns why there is nothing to report."""
    command = ["srun", "--export=NONE", *_srun(lab, str(lab.program("many.c")), "1")[1:]]
    bare, _ = _run(lab, BARE, command, slurm_env)
    wrapped = [a for a in lab.fallow.wrap("auto", Path("record"), command) if a != "--quiet"]
    outcome, _ = _run(lab, BARE, wrapped, slurm_env)
    assert (outcome.rc, outcome.out) == (bare.rc, bare.out), outcome.describe()
    assert "did the command start an MPI program?" in outcome.err, outcome.describe()
