"""Medians and ratios of few measurements, with their spread."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

_RESAMPLES = 4000
_TAIL = 0.025  # on each side of a 95 % interval
_FEWEST_FOR_BOOTSTRAP = 4  # below, resampling knows less than the smallest and the largest value


@dataclass(frozen=True)
class Spread:
    """A median and the smallest and largest value."""

    median: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Ratio:
    """A ratio of medians with an interval; `method` is "bootstrap 95 %" or "min..max"."""

    median: float
    low: float
    high: float
    method: str


def spread(values: Sequence[float]) -> Spread | None:
    """Median and range; None of no values."""
    if not values:
        return None
    return Spread(median(values), min(values), max(values), len(values))


def ratio(after: Sequence[float], before: Sequence[float], seed: int = 1) -> Ratio | None:
    """Median of `after` over median of `before`; None where that is not defined. The same input, the same output."""
    if not after or not before or min(before) <= 0:
        return None
    middle = median(after) / median(before)
    if min(len(after), len(before)) < _FEWEST_FOR_BOOTSTRAP:
        return Ratio(middle, min(after) / max(before), max(after) / min(before), "min..max")
    rng = random.Random(seed)  # noqa: S311 - resampling, not secrets
    drawn = sorted(
        median(rng.choices(after, k=len(after))) / median(rng.choices(before, k=len(before))) for _ in range(_RESAMPLES)
    )
    cut = int(_RESAMPLES * _TAIL)
    return Ratio(middle, drawn[cut], drawn[-1 - cut], "bootstrap 95 %")


def share(part: float, whole: float) -> float:
    """The part as a share of the whole; of nothing it is none."""
    return part / whole if whole > 0 else 0.0
