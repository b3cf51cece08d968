"""Programs that wait by testing again and again, with more between their tests than waits have for the runtime."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fallow import native, text

if TYPE_CHECKING:
    from fallow import _native

_TOLD_SHARE = 0.1  # of the core time
_LEAST_LOOP_S = 100e-6  # on average: shorter loops are left to spin whatever is between their tests
_MOST_GAP_S = 5e-6  # on average: who does more than this between tests is likelier to work
_ROOM = 2  # times the average, for gaps that are longer
_COUNTED_SHARE = 0.01  # of the calls
_STEPS = (1, 2, 5, 10)
_CLOCK_S = 35e-9  # two readings of the clock, which the runtime adds, with room for slow ones


class Tests:
    """Tests of the ranks that might have slept in them, and what else these ranks called."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.calls = 0
        self.others = 0
        self.gaps_s = 0.0
        self.time_s = 0.0
        self.asleep_s = 0.0

    def add(self, rank: _native.RankDict) -> None:
        """Adds a rank, once."""
        if rank["mode"] not in ("sleep", "auto") or rank["oversubscribed"]:
            return
        for thread in rank["threads"]:
            for site in thread["sites"]:
                self._add(rank["ops"][site["op"]], site)

    def _add(self, op: tuple[str, str, bool], site: _native.SiteDict) -> None:
        name, kind, blocks = op
        if kind != "test" and (kind != "probe" or blocks):
            self.others += site["calls"]
            return
        self.names.add(name)
        self.calls += site["calls"]
        self.gaps_s += site["gap_s"]
        self.time_s += site["time_s"]
        self.asleep_s += site["wait_asleep_s"]

    @property
    def spent_s(self) -> float:
        """Core time in tests and between them."""
        return self.gaps_s + self.time_s - self.asleep_s


def _rounded_up(time_s: float) -> float:
    """1, 2 or 5 times a power of ten."""
    unit: float = 10.0 ** math.floor(math.log10(time_s))
    return next(step * unit for step in _STEPS if step * unit >= time_s)


def counted_notes(counted: int, calls: int) -> list[str]:
    """That calls were counted only; empty if it is few of them."""
    if counted <= _COUNTED_SHARE * calls:
        return []
    return [
        f"{text.percent(counted / calls)} of the calls are tests, short messages, waits for these, short collective "
        "and one-sided calls that were counted only, as many of them come one after the other: how long these took is "
        "an estimate, and the timeline does not have them"
    ]


def notes(tests: Tests, program: str, chosen: str, core_time_s: float) -> list[str]:
    """What to give for the option test_gap, which was `chosen`; empty if little is tested, or it would not help."""
    if not tests.calls or tests.gaps_s <= 0 or core_time_s <= 0:
        return []
    if tests.spent_s < max(_TOLD_SHARE * core_time_s, _LEAST_LOOP_S * tests.others):
        return []
    gap_s = tests.gaps_s / tests.calls
    worth_s = _rounded_up(_ROOM * gap_s)
    in_force_s: float = native.require().test_gap_s(chosen, program) + _CLOCK_S
    if gap_s > _MOST_GAP_S or gap_s <= in_force_s:
        return []
    names = sorted(tests.names)
    told = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    share, calls = text.percent(tests.spent_s / core_time_s), text.count(tests.calls)
    option = f"--test-gap {text.seconds(worth_s).replace(' ', '')}"
    return [
        f"{share} of the core time went into {calls} tests ({told}), {text.seconds(gap_s)} apart: such loops are left "
        "awake, as the program may be at work between its tests. If it only waits there, "
        f"`fallow run {option}` lets it rest; --compare 5 says what that does"
    ]
