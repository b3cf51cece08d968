"""Blocking calls that are carried out as their non-blocking twins give what the blocking calls give."""

from __future__ import annotations

from collections import Counter

import pytest
from coverage_test import BINDINGS, CALLS, calls_program
from harness.fallow import MODES
from harness.lab import Lab
from harness.pmpi_tool import build_tool, read_counts

TWIN = 5  # RankHeader::hook
TWINS = {"FALLOW_HOOK": "twin"}


def _check_subjects(lab: Lab, ranks: int, modes: tuple[str, ...]) -> None:
    for trial in lab.compare(ranks, lab.driver(), modes=modes, env=TWINS)[1:]:
        found = trial.ranks()
        assert all(r.mode == MODES.index(trial.mode) and r.finalized == 1 for r in found), trial.outcome.describe()
        assert all(r.hook == TWIN for r in found), trial.outcome.describe()
        assert (sum(r.sleeps for r in found) > 0) == (trial.mode != "yield")


def test_all_subjects(lab: Lab) -> None:
    """Every subject passes with equal checksums, errors and statuses included, and waits sleep."""
    _check_subjects(lab, 2, ("auto",))


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 4])
def test_all_subjects_in_every_mode(lab: Lab, ranks: int) -> None:
    """The same where ranks outnumber cores."""
    _check_subjects(lab, ranks, ("auto", "sleep", "yield"))


def test_errno_is_kept(lab: Lab) -> None:
    """Sleeps between the tests of a twin are not the program's."""
    lab.compare(2, lab.program("kept_errno.c"), modes=("sleep", "auto"), env=TWINS)


@pytest.mark.parametrize("handlers", ["copy", "all"])
def test_messages_that_are_too_long(lab: Lab, handlers: str) -> None:
    """The error handlers that hear of one, and how often, are those of the blocking call."""
    lab.compare(2, lab.program("truncated.c"), handlers, modes=("sleep",), env=TWINS)


def test_messages_to_itself_that_are_too_long(lab: Lab) -> None:
    """The same: in a test, MPICH 5 asks another handler then, which may end the program."""
    lab.compare(1, lab.program("truncated_to_itself.c"), modes=("sleep",), env=TWINS)


def test_calls_that_are_refused(lab: Lab) -> None:
    """They return once the program's error handler has, as often as that is called by the blocking call, and send nothing."""
    lab.compare(1, lab.program("refused_waits.c"), modes=("sleep",), env=TWINS)


@pytest.mark.parametrize("kind", ["persistent", "generalized", "polled"])
def test_requests_that_a_look_would_change(lab: Lab, kind: str) -> None:
    """What became of them is told by the wait, and asked for once."""
    lab.compare(1, lab.program("looked_at.c"), kind, modes=("sleep",), env=TWINS)


def test_a_thread_waits_while_another_calls(lab: Lab) -> None:
    """With MPI_THREAD_MULTIPLE, too, on libraries that hold a lock while they poll."""
    for trial in lab.compare(2, lab.program("helper_thread.c"), modes=("auto",))[1:]:
        assert all(r.finalized == 1 and r.sleeps > 0 for r in trial.ranks()), trial.outcome.describe()


def test_another_tool_sees_the_blocking_calls(lab: Lab) -> None:
    """What the program calls goes to a tool that was loaded behind, as ever."""
    tool = build_tool(lab.family, CALLS)
    out = lab.scratch / "tool"
    env = {"TOOL_OUT": str(out), "LD_PRELOAD": str(tool), **TWINS}
    running, record = lab.start("auto", lab.family.launch(2, calls_program(lab.family, BINDINGS["c"])), env=env)
    outcome = running.finish()
    assert outcome.rc == 0 and outcome.out == "calls done\n", outcome.describe()
    for rank in range(2):
        assert read_counts(out, rank) == Counter(CALLS), f"the tool on rank {rank}"
    assert [r.calls for r in lab.records(record)] == [Counter(CALLS)] * 2
