"""The three bins of the published tables, made from powers of two."""

from __future__ import annotations

import random

import pytest

from fallow import histogram


def powers(durations_ns):
    out = [[0.0, 0.0] for _ in range(64)]
    for d in durations_ns:
        slot = out[max(0, d.bit_length() - 1)]
        slot[0] += 1
        slot[1] += d * 1e-9
    return out


def test_what_does_not_straddle_is_exact():
    bins = histogram.papers(powers([1_000, 10_000, 50_000, 100_000, 300_000, 10**9]))
    assert [b.count for b in bins] == [2, 2, 2]
    assert [b.time_s for b in bins] == pytest.approx([11e-6, 150e-6, 1.0003])
    assert sum(b.count_share for b in bins) == pytest.approx(1)


def test_a_straddling_power_is_split_without_losing_anything():
    rng = random.Random(1)
    durations = [int(rng.lognormvariate(10.5, 1.5)) for _ in range(20_000)]
    bins = histogram.papers(powers(durations))
    true = [sum(d < 20_000 for d in durations), sum(20_000 <= d < 200_000 for d in durations), 0]
    true[2] = len(durations) - true[0] - true[1]
    assert sum(b.count for b in bins) == pytest.approx(len(durations))
    assert sum(b.time_s for b in bins) == pytest.approx(sum(durations) * 1e-9)
    for b, exact in zip(bins, true, strict=True):
        assert b.count == pytest.approx(exact, rel=0.06)


@pytest.mark.parametrize("value", [16_384, 19_999, 32_767])
def test_equal_durations_in_a_straddling_power_keep_their_time(value):
    bins = histogram.papers(powers([value] * 100))
    assert sum(b.time_s for b in bins) == pytest.approx(value * 1e-7)
    assert all(b.count >= 0 and b.time_s >= 0 for b in bins)


def test_empty():
    report = histogram.report([])
    assert report.log2 == []
    assert [b.count for b in report.papers] == [0, 0, 0]
