"""Programs that test for messages where ranks share cores: those that only wait give way to others, those that work do not."""

from __future__ import annotations

import os

import pytest
from harness.building import build
from harness.families import REPOSITORY
from harness.lab import Lab

_UPDATES = 1_000_000
_WAITS = 300


@pytest.mark.parametrize("mode", ["auto", "sleep", "yield"])
def test_who_works_between_tests_keeps_its_core(lab: Lab, mode: str) -> None:
    """What giving way costs is many times what an update takes: counted are the cores lost, not the time."""
    program = build(lab.family, "updates", [REPOSITORY / "bench/programs/updates.c"], ["-O2"], [])
    trial = lab.run(mode, 2 * len(os.sched_getaffinity(0)), program, str(_UPDATES))
    assert trial.outcome.rc == 0 and not trial.outcome.timed_out, trial.outcome.describe()
    fields = trial.outcome.out.split()
    tests, lost = int(fields[fields.index("tests") + 1]), int(fields[fields.index("lost") + 1])
    assert lost < 0.5 * tests, trial.outcome.describe()  # 0.02 to 0.2; 0.8 to 1.0 where each test gave way


@pytest.mark.parametrize("mode", ["auto", "sleep", "yield"])
def test_who_waits_in_a_loop_of_tests_gives_way(lab: Lab, mode: str) -> None:
    """Tests that a wait takes: many where the core is kept until the kernel takes it."""
    trial = lab.run(mode, 3, lab.program("waits_by_tests.c"), str(_WAITS))
    assert trial.outcome.rc == 0 and not trial.outcome.timed_out, trial.outcome.describe()
    assert float(trial.outcome.out) < 1000, trial.outcome.describe()  # 2 to 120; 20,000 to 85,000 on MPICH where it was kept
