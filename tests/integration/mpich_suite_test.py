"""The programs of MPICH's test suite end under Fallow as they end without, and do not take several times as long."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from harness.fallow import BARE
from harness.families import FORTRAN_NAMES
from harness.lab import Lab
from harness.mpich_suite import Program, built, programs, suite_for
from harness.running import Outcome

pytestmark = pytest.mark.long

FOLDERS = ("attr", "coll", "comm", "datatype", "errhan", "group", "info", "init", "io", "part", "pt2pt", "rma", "spawn", "threads", "topo")
FORTRAN = ("f77", "f90", "f08")
NEEDS_NEW = ("part",)  # of which a library of MPI 3 has nothing
MOST_RANKS = 4  # with more than that on two cores many take minutes, also without Fallow
_LIMIT_S = 40.0
_LOOKED_AT_S = 4.0  # shorter ones say nothing of what was lost
_TRIES = 3  # what fails or is slow now and then, does so without Fallow too
# Never end, or end with the code of whichever rank is seen first.
LEFT_OUT = ("timeout", "exitst2", "exitst3")


def _passes(outcome: Outcome) -> bool:
    return outcome.rc == 0 and not outcome.timed_out and "No Errors" in outcome.out


def _outcome(lab: Lab, mode: str, program: Program) -> Outcome:
    command = lab.family.launch(program.ranks, program.folder / program.name, *program.arguments)
    running, record = lab.start(mode, command, env=program.env, cwd=program.folder)
    outcome = running.finish(_LIMIT_S)
    shutil.rmtree(record.parent)
    return outcome


def _differs(lab: Lab, program: Program) -> str:
    """What is wrong with it; empty: nothing."""
    wrong = ""
    for _ in range(_TRIES):
        under = _outcome(lab, "auto", program)
        if _passes(under) and under.seconds < _LOOKED_AT_S:
            return ""
        bare = _outcome(lab, BARE, program)
        if _passes(bare) <= _passes(under) and under.seconds < 3 * bare.seconds + _LOOKED_AT_S:
            return ""
        wrong = f"{program}: {under.seconds:.1f} s, {bare.seconds:.1f} without Fallow\n{under.describe()}"
    return wrong


def _chosen(lab: Lab, folder: str) -> Iterator[Program]:
    for program in programs(suite_for(lab.family) / folder, MOST_RANKS):
        if program.name not in LEFT_OUT and built(program) is not None:
            yield program


def _check(lab: Lab, folder: str) -> None:
    """All of a folder that compile for the family."""
    found = list(_chosen(lab, folder))
    assert found or folder in NEEDS_NEW, f"nothing of {folder} could be built"
    wrong = [what for program in found if (what := _differs(lab, program))]
    assert not wrong, f"{len(wrong)} of {len(found)}\n" + "\n".join(wrong)


@pytest.mark.parametrize("folder", FOLDERS)
def test_programs(lab: Lab, folder: str) -> None:
    """In C."""
    _check(lab, folder)


@pytest.mark.parametrize("family", FORTRAN_NAMES, indirect=True)
@pytest.mark.parametrize("folder", FORTRAN)
def test_fortran_programs(lab: Lab, folder: str) -> None:
    """Likewise."""
    _check(lab, folder)
