"""Durations by size: from the powers of two that ranks record to the three bins of the published tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from fallow.model import Bin, HistogramReport

PAPER_EDGES_S = (20e-6, 200e-6)
"""Table 5.1 of the work on idle links: shorter than 20 us, 20 to 200 us, longer."""


def add(into: list[list[float]], counts: Sequence[int], times: Sequence[float]) -> None:
    """Adds one recorded histogram to `into`, a list of [count, time_s] per power of two."""
    for slot, count, time_s in zip(into, counts, times, strict=True):
        slot[0] += count
        slot[1] += time_s


def _split(low: float, high: float, edge: float, count: float, time_s: float) -> tuple[float, float]:
    """Count and time below `edge` of a bin [low, high).

    The durations are taken as spread evenly on each side of the edge, in the proportion that gives the bin
    its recorded mean; count and time of both sides add up to what was recorded.
    """
    mean = min(max(time_s / count, low), high)
    below_mean, above_mean = (low + edge) / 2, (edge + high) / 2
    share = min(max((above_mean - mean) / (above_mean - below_mean), 0.0), 1.0)
    if share == 1.0:
        return count, time_s
    return count * share, min(count * share * below_mean, time_s)


def _bins(edges: Sequence[float | None], sums: Sequence[Sequence[float]]) -> list[Bin]:
    counts = sum(s[0] for s in sums) or 1.0
    times = sum(s[1] for s in sums) or 1.0
    return [
        Bin(low or 0.0, high, count, time_s, count / counts, time_s / times)
        for (low, high), (count, time_s) in zip(pairwise(edges), sums, strict=True)
    ]


def papers(log2: Sequence[Sequence[float]]) -> list[Bin]:
    """The three bins of the published tables."""
    sums = [[0.0, 0.0] for _ in range(len(PAPER_EDGES_S) + 1)]
    for power, (count, time_s) in enumerate(log2):
        low, high = (2.0**power if power else 0.0) * 1e-9, 2.0 ** (power + 1) * 1e-9
        first = sum(low >= edge for edge in PAPER_EDGES_S)
        inside = [edge for edge in PAPER_EDGES_S if low < edge < high]
        if not count:
            continue
        below = _split(low, high, inside[0], count, time_s) if inside else (count, time_s)
        sums[first][0] += below[0]
        sums[first][1] += below[1]
        if inside:
            sums[first + 1][0] += count - below[0]
            sums[first + 1][1] += time_s - below[1]
    return _bins([0.0, *PAPER_EDGES_S, None], sums)


def report(log2: Sequence[Sequence[float]]) -> HistogramReport:
    """Both forms; of the powers of two, those from the first to the last that holds anything."""
    used = [power for power, (count, _) in enumerate(log2) if count]
    if not used:
        return HistogramReport(papers(log2), [])
    first, last = used[0], used[-1]
    edges = [0.0 if power == 0 else 2.0**power * 1e-9 for power in range(first, last + 2)]
    return HistogramReport(papers(log2), _bins(edges, log2[first : last + 1]))
