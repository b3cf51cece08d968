"""Programs in a control group that may have less time than their ranks have processors, as containers often do."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.fallow import BARE
from harness.groups import Group, limited
from harness.lab import Lab
from harness.quiet import needs_two_processors, shown

pytestmark = pytest.mark.measures

_TURNS = 700


def _asleep(lab: Lab, group: Group, how: str) -> float:
    """What the ranks sleep, beside what one of them works longer than the other."""
    launch = lab.family.launch(2, lab.program("limited.c"), how, str(_TURNS))
    running, out = lab.start(BARE, group.inside(lab.fallow.wrap("auto", Path("record"), [str(a) for a in launch])))
    outcome = running.finish()
    assert outcome.rc == 0 and not outcome.timed_out, outcome.describe()
    if not group.throttled():  # others left the ranks less than the limit
        return 0.0
    return float(lab.fallow.report(out)["totals"]["residency"]["wait_asleep_s"]) / (1e-3 * _TURNS)


@pytest.fixture
def group() -> Iterator[Group]:
    """One that has less time than the ranks compute for together, asleep while they wait."""
    with contextlib.ExitStack() as stack:
        try:
            made = stack.enter_context(limited(0.8))
        except OSError as error:
            pytest.skip(f"no control group can be made here: {error}")
        yield made


@pytest.mark.parametrize("how", ["sum", "waitall", "tests"])
def test_where_time_is_limited_none_is_spent_on_waiting(lab: Lab, group: Group, how: str) -> None:
    """What the kernel stands a sleeper still for is no delay of the sleep's, and what waits spend awake is lacking for work."""
    needs_two_processors()
    shown(lambda: _asleep(lab, group, how), lambda share: share > 1.0, 4)  # 1.5 to 2.3; 0.1 to 0.6 where such delays were paid in full
