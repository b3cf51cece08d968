"""Programs that test for messages. Those that only wait give way to others where ranks share cores, and else rest; those that work
do neither."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest
from harness.building import build
from harness.families import REPOSITORY
from harness.lab import Lab
from harness.quiet import needs_two_processors, shown

pytestmark = pytest.mark.measures

_UPDATES = 1_000_000
_WAITS = 300
_SLEEP, _YIELD = (pytest.param(mode, marks=pytest.mark.one_family) for mode in ("sleep", "yield"))


@pytest.mark.parametrize("mode", ["auto", _SLEEP, _YIELD])
def test_who_works_between_tests_keeps_its_core(lab: Lab, mode: str) -> None:
    """What giving way costs is many times what an update takes: counted are the cores lost, not the time."""
    program = build(lab.family, "updates", [REPOSITORY / "bench/programs/updates.c"], ["-O2"], [])
    trial = lab.run(mode, 2 * len(os.sched_getaffinity(0)), program, str(_UPDATES))
    assert trial.outcome.rc == 0 and not trial.outcome.timed_out, trial.outcome.describe()
    fields = trial.outcome.out.split()
    tests, lost = int(fields[fields.index("tests") + 1]), int(fields[fields.index("lost") + 1])
    assert lost < 0.5 * tests, trial.outcome.describe()  # 0.02 to 0.2; 0.8 to 1.0 where each test gave way


@pytest.mark.parametrize("mode", ["auto", _SLEEP, _YIELD])
def test_who_waits_in_a_loop_of_tests_gives_way(lab: Lab, mode: str) -> None:
    """Tests that a wait takes: many where the core is kept until the kernel takes it."""
    trial = lab.run(mode, 3, lab.program("waits_by_tests.c"), str(_WAITS))
    assert trial.outcome.rc == 0 and not trial.outcome.timed_out, trial.outcome.describe()
    assert float(trial.outcome.out) < 1000, trial.outcome.describe()  # 2 to 120; 20,000 to 85,000 on MPICH where it was kept


def _asleep_in_tests(lab: Lab, mode: str, *args: str, options: Sequence[str] = ()) -> tuple[float, float]:
    """Seconds that rank 1 slept in tests, and what part of its waiting it took from its core."""
    needs_two_processors()
    trial = lab.run(mode, 2, lab.program("rests_in_tests.c"), *args, options=options)
    assert trial.outcome.rc == 0 and not trial.outcome.timed_out, trial.outcome.describe()
    report = lab.fallow.report(trial.record)
    asleep = sum(f["wait_asleep_s"] for f in report["functions"] if f["kind"] == "test" or f["function"] == "MPI_Iprobe")
    assert sum(b["time_s"] for b in report["waits"]["papers"]) >= 0.99 * asleep
    return asleep, float(trial.outcome.out.split()[1])


@pytest.mark.parametrize("how", ["test", "iprobe", "testall", "several", "both", "get_status"])
@pytest.mark.parametrize("mode", ["auto", _SLEEP])
def test_a_loop_of_tests_that_does_nothing_else_rests(lab: Lab, mode: str, how: str) -> None:
    """Where each rank has a core: 0.05 to 0.1 on a quiet machine, 0.99 where it spins."""
    shown(lambda: _asleep_in_tests(lab, mode, how, "5000", "100"), lambda found: found[0] > 0 and found[1] < 0.5, 6)


@pytest.mark.parametrize("how", ["counted", "other"])
@pytest.mark.parametrize("mode", ["auto", _SLEEP])
def test_a_loop_that_does_something_else_now_and_then_does_not_rest(lab: Lab, mode: str, how: str) -> None:
    def awake() -> float:
        asleep, on_core = _asleep_in_tests(lab, mode, how, "5000", "100")
        assert asleep < 0.1, (asleep, on_core)  # of half a second: 0 to 0.04, until it is known; 0.4 where it rests
        return on_core

    shown(awake, lambda part: part > 0.5, 6)


@pytest.mark.parametrize("mode", ["auto", _SLEEP])
def test_a_test_between_works_does_not_rest(lab: Lab, mode: str) -> None:
    """Whatever loops there were before: it is one of none."""
    needs_two_processors()

    def asleep_in_loops() -> float:
        trial = lab.run(mode, 2, lab.program("rests_in_tests.c"), "alone", "3000", "100")
        assert trial.outcome.rc == 0 and not trial.outcome.timed_out, trial.outcome.describe()
        asleep = {f["function"]: f["wait_asleep_s"] for f in lab.fallow.report(trial.record)["functions"]}
        assert asleep["MPI_Iprobe"] == 0, trial.outcome.describe()  # of 0.1 s: 0.01 to 0.06 where the last loop seemed to go on
        return asleep["MPI_Test"]

    shown(asleep_in_loops, lambda seconds: seconds > 0, 3)  # without a loop that is known nothing rests anyway


def test_how_much_there_may_be_between_tests_is_an_option(lab: Lab) -> None:
    args = "apart", "5000", "100"
    assert _asleep_in_tests(lab, "auto", *args)[0] < 0.05  # of half a second: some, where a test itself is interrupted
    options = ("--test-gap", "1us")
    shown(lambda: _asleep_in_tests(lab, "auto", *args, options=options), lambda found: found[0] > 0 and found[1] < 0.5, 6)


def test_mode_yield_leaves_tests_alone(lab: Lab) -> None:
    assert _asleep_in_tests(lab, "yield", "test", "5000", "50")[0] == 0
