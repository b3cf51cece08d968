"""mpi4py's own test suite, from its source package, has the same verdicts under Fallow as without, test by test."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from harness.building import CACHE
from harness.fallow import BARE, MODES, Fallow
from harness.families import REPOSITORY, Family
from harness.lab import PROGRAMS, Lab
from harness.quiet import needs_two_processors, shown
from harness.running import Outcome
from harness.traces import replay

VERSION = "4.1.2"
WORKER = REPOSITORY / "tests/integration/harness/mpi4py_worker.py"
# Families: the wheel on Open MPI, a build from the source package on the standard ABI, which no wheel has.
FAMILIES = ("openmpi", "mpiabi")
# Process pools and their time-outs: verdicts hang on the clock of a busy machine, also with nothing loaded.
_POOLS = ("test_util_pool",)
# Open MPI 4.1: spawning some dozens of groups one after another fails or hangs now and then, also with nothing loaded.
LEFT_OUT = {"openmpi": (*_POOLS, "test_spawn"), "mpiabi": _POOLS}
SUBSET = "test_(p2p_obj|p2p_buf_matched|p2p_obj_matched|request|cco_obj|cco_nb_buf|comm_topo|status|msgzero)\\.py"
# test_ulfm: a non-blocking collective comes before a barrier on one rank and after it on others, which no replay can follow. test_p2p_buf:
# a probe sees a message that is cancelled then; a replay knows only that it was.
_REPLAYED = "test_(?!spawn|util_pool|ulfm|p2p_buf\\.).*\\.py"
_WHOLE_S = 900.0
_SUBSET_S = 300.0


@dataclass(frozen=True)
class Installed:
    """Where the package, what it needs and its tests are."""

    paths: tuple[Path, ...]
    tests: Path
    env: dict[str, str]


def _pip(*arguments: str | Path, env: dict[str, str] | None = None) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", *map(str, arguments)]
    result = subprocess.run(command, env={**os.environ, **(env or {})}, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{result.stdout}{result.stderr}")


def _sources(place: Path) -> Path:
    """The source package, downloaded once."""
    folder = place / f"mpi4py-{VERSION}"
    if not folder.exists():
        _pip("download", "--no-deps", "--no-binary", "mpi4py", "--dest", place, f"mpi4py=={VERSION}")
        with tarfile.open(place / f"mpi4py-{VERSION}.tar.gz") as archive:
            archive.extractall(place)  # noqa: S202  from the package index, of a pinned version
    return folder


def _into(target: Path, *arguments: str | Path, env: dict[str, str] | None = None) -> Path:
    if not target.exists():
        work = target.with_name(target.name + ".part")
        shutil.rmtree(work, ignore_errors=True)
        _pip("install", "--no-deps", "--target", work, *arguments, env=env)
        work.rename(target)
    return target


def _install(family: Family) -> Installed:
    place = CACHE / "mpi4py"
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        sources = _sources(place)
        numpy = _into(place / "numpy", "numpy")
        if family.name == "openmpi":
            package = _into(place / "wheel", "--only-binary", "mpi4py", f"mpi4py=={VERSION}")
            env = {"MPI4PY_MPIABI": "openmpi", "MPI4PY_LIBMPI": "libmpi.so.40", "OMPI_MCA_mpi_yield_when_idle": "1"}
        else:
            flags = {"MPI4PY_BUILD_MPICC": family.cc, "CFLAGS": "-O0 -g0"}
            package = _into(place / f"built-{family.name}", place / f"mpi4py-{VERSION}.tar.gz", env=flags)
            env = {}
    return Installed((package, numpy), sources / "test", env)


def _verdicts(lab: Lab, mode: str, ranks: int, timeout: float, *options: str) -> tuple[list[dict[str, str]], Outcome]:
    """Each rank's verdicts by test, and how the run ended; a test that never ended is "begin"."""
    mpi4py = _install(lab.family)
    path = os.pathsep.join(map(str, [*mpi4py.paths, mpi4py.tests]))
    out = lab.scratch / f"verdicts-{mode}-{ranks}"
    command = [sys.executable, WORKER, mpi4py.tests, out, *options]
    for name in LEFT_OUT[lab.family.name]:
        command += ["-e", name]
    env = {**mpi4py.env, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    running, _ = lab.start(mode, lab.family.launch(ranks, *command), env=env)
    outcome = running.finish(timeout)
    found = []
    for rank in range(ranks):
        file = Path(f"{out}.{rank}")
        assert file.exists(), outcome.describe()
        lines = [line.split(" ", 1) for line in file.read_text().splitlines()]
        found.append({test: verdict for verdict, test in lines})
    assert not outcome.timed_out, f"{[list(v)[-1] for v in found]}\n" + outcome.describe()
    return found, outcome


def _compare(lab: Lab, ranks: int, modes: Sequence[str], least: int, timeout: float, *options: str) -> None:
    bare, _ = _verdicts(lab, BARE, ranks, timeout, *options)
    assert sum(v == "pass" for v in bare[0].values()) >= least
    for mode in modes:
        other, outcome = _verdicts(lab, mode, ranks, timeout, *options)
        for rank, (left, right) in enumerate(zip(bare, other, strict=True)):
            tests = sorted({*left, *right})
            changed = [f"{t}: {left.get(t)} -> {right.get(t)}" for t in tests if left.get(t) != right.get(t)]
            assert not changed, f"rank {rank}: {len(changed)} verdicts differ: {changed[:20]}\n" + outcome.describe()


def test_subset(lab: Lab) -> None:
    """Messages, requests and some collectives in an interpreter that loads MPI when it runs."""
    if lab.family.name != "openmpi":
        return  # the other builds take minutes: the whole suite below
    _compare(lab, 2, ("auto",), 100, _SUBSET_S, "-i", SUBSET)


@pytest.mark.measures
@pytest.mark.parametrize("how", ["test", "probe"])
def test_a_loop_of_tests_in_python_rests(lab: Lab, how: str) -> None:
    """Its interpreter is all that there is between the tests."""
    if lab.family.name != "openmpi":
        return  # as above
    needs_two_processors()
    mpi4py = _install(lab.family)
    env = {**mpi4py.env, "PYTHONPATH": os.pathsep.join(map(str, mpi4py.paths))}
    command = [sys.executable, PROGRAMS / "rests_in_tests.py", how, "5000", "100"]

    def awake() -> float:
        running, _ = lab.start("auto", lab.family.launch(2, *command), env=env)
        outcome = running.finish(_SUBSET_S)
        assert outcome.rc == 0, outcome.describe()
        return float(outcome.out.split()[1])

    shown(awake, lambda part: part < 0.5, 6)  # 0.05 to 0.1 on a quiet machine, 0.98 where it spins


@pytest.mark.long
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_whole_suite(lab: Lab, ranks: int) -> None:
    """Every test of mpi4py, in every wait mode."""
    if lab.family.name in FAMILIES:
        _compare(lab, ranks, MODES, 800, _WHOLE_S)


@pytest.mark.long
def test_whole_suite_is_replayed(lab: Lab, fallow: Fallow) -> None:
    """Its millions of calls, of nearly every kind, are recorded so that a replay comes to the end."""
    if lab.family.name not in FAMILIES:
        return
    mpi4py = _install(lab.family)
    path = os.pathsep.join(map(str, [*mpi4py.paths, mpi4py.tests]))
    out, trace = lab.scratch / "verdicts", lab.scratch / "trace.ftr"
    command = [sys.executable, WORKER, mpi4py.tests, out, "-i", _REPLAYED]
    running, _ = lab.start(
        "auto", lab.family.launch(3, *command), env={**mpi4py.env, "PYTHONPATH": path}, options=("--trace", str(trace))
    )
    outcome = running.finish(_WHOLE_S)
    assert outcome.rc == 0, outcome.describe()
    assert replay(fallow, trace)["program"]["events"] > 1_000_000
