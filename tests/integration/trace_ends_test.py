"""Traces of what comes to no message, or to no end."""

from __future__ import annotations

from harness.fallow import Fallow
from harness.lab import Lab
from harness.running import HANGS_S
from harness.traces import read_trace, replay

FAILED = 4  # trace::EventFlags


def test_what_goes_nowhere_is_replayed(lab: Lab, fallow: Fallow) -> None:
    """Whatever the library says of receives from MPI_PROC_NULL, and where it says nothing of them, no replay waits for one."""
    file = lab.scratch / "trace.ftr"
    trial = lab.run("auto", 2, lab.program("to_nobody.c"), options=("--trace", str(file)))
    assert trial.outcome.rc == 0, trial.outcome.describe()
    assert replay(fallow, file)["simulations"][0]["raw"]["messages"] == 2 * 2 * 5


def test_exchanges_with_anyone_are_replayed(lab: Lab, fallow: Fallow) -> None:
    """Also where the library does not tell whose message a non-blocking one took, but names another."""
    file = lab.scratch / "trace.ftr"
    trial = lab.run("auto", 3, lab.program("with_anyone.c"), options=("--trace", str(file)))
    assert trial.outcome.rc == 0, trial.outcome.describe()
    assert replay(fallow, file)["simulations"][0]["raw"]["messages"] == 3 * 2 * 5


def test_what_was_recorded_before_the_end_is_kept(lab: Lab, fallow: Fallow) -> None:
    """A rank that is killed in MPI_Finalize has its trace up to there."""
    file = lab.scratch / "trace.ftr"
    running, _ = lab.start("auto", [lab.program("killed_in_finalize.c")], options=("--trace", str(file)))
    outcome = running.finish(HANGS_S)
    assert outcome.rc == -9 and not outcome.timed_out, outcome.describe()
    assert sum(c.op == "MPI_Barrier" for c in read_trace(fallow, file).ranks[0]) == 50


def test_what_was_refused_is_not_replayed(lab: Lab, fallow: Fallow) -> None:
    """Nor a one-sided call to a rank that there is not, of which a library says success once the program's handler was called."""
    file = lab.scratch / "trace.ftr"
    trial = lab.run("auto", 2, lab.program("refused.c"), "counts", options=("--trace", str(file)))
    assert trial.outcome.rc == 0, trial.outcome.describe()
    assert [call.flags & FAILED for calls in read_trace(fallow, file).ranks for call in calls if call.op == "MPI_Put"] == [FAILED]
    assert replay(fallow, file)["simulations"][0]["raw"]["messages"] > 0


def test_calls_with_bad_arguments_are_not_replayed(lab: Lab, fallow: Fallow) -> None:
    """Of these, too, a library may say success: a receive that took nothing would be waited for, for ever."""
    file = lab.scratch / "trace.ftr"
    trial = lab.run("auto", 2, lab.program("bad_arguments.c"), options=("--trace", str(file)))
    assert trial.outcome.rc == 0, trial.outcome.describe()
    for calls in read_trace(fallow, file).ranks:
        refused = [call.op for call in calls if call.flags & FAILED]
        assert refused == ["MPI_Recv", "MPI_Recv", "MPI_Send", "MPI_Send", "MPI_Irecv", "MPI_Bcast"]
    assert replay(fallow, file)["simulations"][0]["raw"]["messages"] > 0
