"""Traces of what comes to no message, or to no end."""

from __future__ import annotations

from harness.fallow import Fallow
from harness.lab import Lab
from harness.traces import read_trace, replay


def test_what_goes_nowhere_is_replayed(lab: Lab, fallow: Fallow) -> None:
    """Whatever the library says of receives from MPI_PROC_NULL, and where it says nothing of them, no replay waits for one."""
    file = lab.scratch / "trace.ftr"
    trial = lab.run("auto", 2, lab.program("to_nobody.c"), options=("--trace", str(file)))
    assert trial.outcome.rc == 0, trial.outcome.describe()
    assert replay(fallow, file)["simulations"][0]["raw"]["messages"] == 2 * 2 * 5
