"""Small limits on a process: the program ends as it does without Fallow, which has at most one line to say."""

from __future__ import annotations

import pytest
from harness.fallow import BARE
from harness.lab import Lab

# As `ulimit` takes them, and whether MPIs start under them.
LIMITS = {"-n 12": False, "-n 48": True, "-v 800000": True}


def _limited(limit: str, command: list[str]) -> list[str]:
    return ["sh", "-c", f'ulimit {limit}; exec "$@"', "sh", *command]


@pytest.mark.parametrize("limit", LIMITS)
def test_small_limits(lab: Lab, limit: str) -> None:
    """One rank without a launcher, under a limit that holds for Fallow's command too."""
    command = [str(lab.program("steady.c")), "0.05"]
    bare = lab.start(BARE, _limited(limit, command))[0].finish()
    assert (bare.rc == 0) == LIMITS[limit], bare.describe()
    record = lab.scratch / "record"
    outcome = lab.start(BARE, _limited(limit, lab.fallow.wrap("auto", record, command)))[0].finish()
    assert not outcome.left_over, outcome.describe()
    if bare.rc == 0:
        assert (outcome.rc, outcome.out) == (0, bare.out), outcome.describe()
        assert len(outcome.err.splitlines()) <= len(bare.err.splitlines()) + 1, outcome.describe()
        assert [r.finalized for r in lab.records(record)] == [1], outcome.describe()
    else:
        assert outcome.rc != 0, outcome.describe()
    assert "Traceback" not in outcome.err
