"""Recorded programs whose threads complete one another's requests can be replayed."""

from __future__ import annotations

import pytest
from harness.fallow import Fallow
from harness.lab import Lab
from harness.traces import replay
from trace_test import record


def test_requests_completed_by_other_threads(lab: Lab, fallow: Fallow) -> None:
    """Which of the requests of one number a call completes is known where it ends, not where it begins."""
    _, file = record(lab, fallow, 2, lab.program("handed.c"))
    assert "unreceived" not in replay(fallow, file)["simulations"][0]["raw"]


@pytest.mark.parametrize("clock", ["auto", "cpu"])
def test_threads_that_take_turns(lab: Lab, fallow: Fallow, clock: str) -> None:
    """The order of their calls is told by times alone, which are not rounded then."""
    trace, file = record(lab, fallow, 1, lab.program("turns.c"), options=("--clock", clock))
    calls = sorted(trace.ranks[0], key=lambda call: call.enter_ns)
    turns = [call.op for call in calls if call.op in ("MPI_Startall", "MPI_Waitall")]
    assert turns == ["MPI_Startall", "MPI_Waitall"] * 24
    replay(fallow, file)
