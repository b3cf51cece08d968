"""Recorded histograms, added up."""

from __future__ import annotations

import pytest

from fallow import histogram
from rank_writer import Histogram


def recorded(durations_ns):
    h = Histogram()
    for d in durations_ns:
        h.add(d)
    return {
        "count": list(h.count),
        "time_s": [t * 1e-9 for t in h.ticks],
        "coarse_count": list(h.coarse_count),
        "coarse_time_s": [t * 1e-9 for t in h.coarse_ticks],
    }


def test_the_papers_bins_are_exact_at_their_edges():
    report = histogram.report([recorded([1_000, 19_999, 20_000, 32_767]), recorded([199_999, 200_000, 10**9])])
    assert [b.count for b in report.papers] == [2, 3, 2]
    assert [b.time_s for b in report.papers] == pytest.approx([20.999e-6, 252.766e-6, 1.0002])
    assert sum(b.count_share for b in report.papers) == pytest.approx(1)
    assert [(b.low_s, b.high_s) for b in report.papers] == [(0.0, 20e-6), (20e-6, 200e-6), (200e-6, None)]


def test_powers_of_two_from_the_first_used_to_the_last():
    report = histogram.report([recorded([5, 6, 40])])
    assert [b.count for b in report.log2] == [2, 0, 0, 1]
    assert report.log2[0].low_s == pytest.approx(4e-9)
    assert report.none_count == 0


def test_what_lasted_no_time_is_told_apart():
    report = histogram.report([recorded([0, 0, 1, 2, 300])])
    assert report.none_count == 3
    assert report.papers[0].count == 5


@pytest.mark.parametrize("rows", [[], [recorded([])]])
def test_empty(rows):
    report = histogram.report(rows)
    assert (report.log2, report.none_count) == ([], 0)
    assert [b.count for b in report.papers] == [0, 0, 0]
