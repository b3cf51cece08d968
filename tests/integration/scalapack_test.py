"""ScaLAPACK's and the BLACS' own tests, written and built by others: Fortran and C, many communicators, grids of ranks."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from harness.fallow import MODES
from harness.lab import Lab

INSTALLED = Path("/usr/lib/x86_64-linux-gnu/scalapack")
pytestmark = pytest.mark.parametrize("family", ("openmpi", "mpich"), indirect=True)  # those that Debian builds it for
RANKS = 4  # the tests' largest grids
TIMEOUT_S = 600.0
SHORT = ("xdlu",)
# Those whose numbers are the same from run to run: the eigensolvers fail a check now and then by themselves.
LONG = ("xslu", "xcqr", "xzllt", "xdls", "xdinv", "xdgblu", "xdpbllt")
# Refined solutions of LU (the input's last line): with 13 rows on two by two ranks, these now and then go different ways in
# p?gerfs and wait for each other for ever, with nothing loaded too.
_REFINE = re.compile("^T(?=\\s+\\(T or F\\) Test Cond. Est. and Iter. Ref.)", re.MULTILINE)
_DONE = re.compile(r"^ +(\d+) tests (completed and passed|completed and failed|completed without)", re.MULTILINE)


@pytest.fixture
def suite(lab: Lab, tmp_path: Path) -> Path:
    """A copy of the tests that belong to the family: they write where they lie."""
    if not INSTALLED.is_dir():
        pytest.skip("ScaLAPACK's tests are in no package of this system")
    copy = tmp_path / "scalapack"
    shutil.copytree(INSTALLED / f"{lab.family.name}-tests", copy)
    lu = copy / "LU.dat"
    text, found = _REFINE.subn("F", lu.read_text())
    assert found == 1, lu
    lu.write_text(text)
    return copy


def _check(lab: Lab, suite: Path, program: str, mode: str) -> None:
    trial = lab.run(mode, RANKS, suite / program, timeout=TIMEOUT_S, cwd=suite)
    said = trial.outcome.describe()
    assert trial.outcome.rc == 0 and not trial.outcome.timed_out, said
    verdicts = {what: int(n) for n, what in _DONE.findall(trial.outcome.out)}
    assert sum(verdicts.values()) > 0, said
    assert verdicts.get("completed and failed", 0) == 0 and "FAILED" not in trial.outcome.out, said
    assert len(trial.ranks()) == RANKS


@pytest.mark.parametrize("program", [*SHORT, *(pytest.param(p, marks=pytest.mark.long) for p in LONG)])
def test_scalapack(lab: Lab, suite: Path, program: str) -> None:
    """Every test passes its own checks while waits sleep, on twice as many ranks as cores."""
    _check(lab, suite, program, "auto")


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_scalapack_in_every_mode(lab: Lab, suite: Path, mode: str) -> None:
    """Likewise in the other modes."""
    _check(lab, suite, "xdqr", mode)


_BLACS_SUMS = 20  # lines that count tests: four operations and more in five types


@pytest.mark.long
@pytest.mark.parametrize("program", ["xCbtest", "xFbtest"])
def test_blacs(lab: Lab, suite: Path, program: str) -> None:
    """Thousands of sends, receives, broadcasts and combines through the C and the Fortran interface; ends by aborting."""
    trial = lab.run("auto", RANKS, suite / program, timeout=TIMEOUT_S, cwd=suite / "BLACS")
    said = trial.outcome.describe()
    assert not trial.outcome.timed_out and trial.outcome.rc != 0, said
    failed = [int(n) for n in re.findall(r"(\d+) FAILED\.", trial.outcome.out)]
    assert len(failed) >= _BLACS_SUMS and not any(failed), said
    assert "The final auxiliary test is for BLACS_ABORT" in trial.outcome.out, said
