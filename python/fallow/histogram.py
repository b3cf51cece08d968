"""Durations by size, as ranks record them: in the three bins of the published tables, and in powers of two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from fallow.model import Bin, HistogramReport

if TYPE_CHECKING:
    from fallow import _native

PAPER_EDGES_S = (20e-6, 200e-6)
"""Table 5.1 of the work on idle links: shorter than 20 us, 20 to 200 us, longer. Ranks record by the same edges."""


def _bins(edges: Sequence[float | None], counts: Sequence[int], times: Sequence[float]) -> list[Bin]:
    all_counts, all_times = sum(counts) or 1, sum(times) or 1.0
    return [
        Bin(low or 0.0, high, count, time_s, count / all_counts, time_s / all_times)
        for (low, high), count, time_s in zip(pairwise(edges), counts, times, strict=True)
    ]


def _sums(rows: Iterable[Sequence[float]]) -> list[float]:
    return [sum(column) for column in zip(*rows, strict=True)]


def report(recorded: Sequence[_native.HistogramDict]) -> HistogramReport:
    """The sum of recorded histograms; of the powers of two, those from the first to the last that holds anything."""
    coarse = [sum(h["coarse_count"][i] for h in recorded) for i in range(len(PAPER_EDGES_S) + 1)]
    coarse_s = _sums(h["coarse_time_s"] for h in recorded) or [0.0] * len(coarse)
    papers = _bins([0.0, *PAPER_EDGES_S, None], coarse, coarse_s)
    powers = len(recorded[0]["count"]) if recorded else 0
    counts = [sum(h["count"][i] for h in recorded) for i in range(powers)]
    times = _sums(h["time_s"] for h in recorded)
    used = [power for power, count in enumerate(counts) if count]
    if not used:
        return HistogramReport(papers, [], 0)
    first, last = used[0], used[-1]
    edges = [0.0 if power == 0 else 2.0**power * 1e-9 for power in range(first, last + 2)]
    log2 = _bins(edges, counts[first : last + 1], times[first : last + 1])
    return HistogramReport(papers, log2, counts[0])
