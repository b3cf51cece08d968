"""What the figures of the benchmarks are held against, and whether they reach it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """A goal and what was found: `where` is an MPI, or what else was measured."""

    where: str
    what: str
    goal: str
    found: str
    reached: bool


class Goals:
    """Those measured so far, in the order of the measurements."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []

    def at_most(self, where: str, what: str, found: float, limit: float, unit: str = "") -> None:
        """`found` may be as large as the limit, in the same unit."""
        self.outcomes.append(Outcome(where, what, f"<= {limit:g}{unit}", f"{_figure(found, limit)}{unit}", found <= limit))

    def at_least(self, where: str, what: str, found: float, limit: float, unit: str = "") -> None:
        """`found` may be as small as the limit, in the same unit."""
        self.outcomes.append(Outcome(where, what, f">= {limit:g}{unit}", f"{_figure(found, limit)}{unit}", found >= limit))

    def holds(self, where: str, what: str, reached: bool) -> None:
        """What has no figure."""
        self.outcomes.append(Outcome(where, what, "yes", "yes" if reached else "no", reached))

    def lines(self) -> Iterator[str]:
        """A table for the terminal."""
        rows = [("of", "what", "goal", "found"), *((o.where, o.what, o.goal, o.found) for o in self.outcomes)]
        widths = [max(len(row[c]) for row in rows) for c in range(4)]
        marks = ["", *("" if o.reached else "  MISSED" for o in self.outcomes)]
        for (where, what, goal, found), mark in zip(rows, marks, strict=True):
            yield f"  {where:{widths[0]}}  {what:{widths[1]}}  {goal:>{widths[2]}}  {found:>{widths[3]}}{mark}"

    def title(self) -> str:
        """How many were reached."""
        return f"goals: {sum(o.reached for o in self.outcomes)} of {len(self.outcomes)} reached"


def _figure(found: float, limit: float) -> str:
    """So many digits that what is beside the limit is not rounded to it, and two at least of ratios."""
    for digits in range(2 if abs(limit) < 10 else 1, 6):
        text = f"{found:.{digits}f}"
        if (float(text) <= limit) == (found <= limit) and (float(text) >= limit) == (found >= limit) and abs(float(text) - found) <= 0.005 * abs(limit):
            return text
    return f"{found:g}"


GOALS = Goals()
