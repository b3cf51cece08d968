"""Gaps between the calls of a replay, and what a predictor costs on them."""

from __future__ import annotations

from array import array
from collections import defaultdict
from itertools import pairwise

from fallow import native
from fallow.errors import UserError
from fallow.sim.timeline import CallSpan, Timeline

_CLASSES_NS = (20_000, 200_000)
_CONTEXT = 4  # calls


def _by_rank(timeline: Timeline) -> dict[int, list[CallSpan]]:
    by_rank: dict[int, list[CallSpan]] = defaultdict(list)
    for call in timeline.calls:
        by_rank[call.rank].append(call)
    return by_rank


def gap_classes(timeline: Timeline) -> tuple[tuple[float, float], ...]:
    """(number, time in s) of the gaps between a rank's calls that are below 20 us, up to 200 us and above: the mean
    over all ranks."""
    by_rank = _by_rank(timeline)
    counts, times = [0, 0, 0], [0.0, 0.0, 0.0]
    for spans in by_rank.values():
        for before, after in pairwise(spans):
            gap = after.begin_ns - before.end_ns
            kind = sum(gap >= limit for limit in _CLASSES_NS)
            counts[kind] += 1
            times[kind] += gap * 1e-9
    ranks = max(len(by_rank), 1)
    return tuple((n / ranks, t / ranks) for n, t in zip(counts, times, strict=True))


def repeated(timeline: Timeline) -> float:
    """Share of the idle time above 20 us that is in gaps within 10 % of the last one in the same place: after the same
    four calls and a gap above 20 us of the same power of two."""
    same = whole = 0.0
    for spans in _by_rank(timeline).values():
        last: dict[tuple[int, ...], float] = {}
        size = 0
        for number in range(_CONTEXT, len(spans)):
            gap = spans[number].begin_ns - spans[number - 1].end_ns
            if gap < _CLASSES_NS[0]:
                continue
            context = (size, *(s.op for s in spans[number - _CONTEXT : number]))
            size = int(gap).bit_length()
            before = last.get(context)
            same += gap if before is not None and abs(gap - before) <= 0.1 * before else 0.0
            whole += gap
            last[context] = gap
    return same / whole if whole else 0.0


def cost_us(timeline: Timeline, predictor: str, threshold_us: float) -> float:
    """Time per call that the predictor takes here, averaged over all ranks. Measured: it differs from run to run."""
    predict = getattr(native.require(), "predict", None)
    if predict is None:
        raise UserError("this build of Fallow has no predictors; install the package anew: pip install .")
    calls, total_ns = 0, 0.0
    for spans in _by_rank(timeline).values():
        none = array("q", [0] * len(spans))
        columns = {
            "enter_ns": array("q", (round(s.begin_ns) for s in spans)),
            "exit_ns": array("q", (round(s.end_ns) for s in spans)),
            "wait_ns": none, "op": array("q", (s.op for s in spans)), "comm": none, "peer": none, "size_bytes": none,
            "site": none,
        }  # fmt: skip
        stream = predict.Stream(**columns)
        total_ns += stream.evaluate(predictor, threshold=round(threshold_us * 1000))["cost_ns"] * len(spans)
        calls += len(spans)
    return total_ns / calls / 1000 if calls else 0.0
