"""What a study of predictors makes of the native figures of two ranks: sums, shares, the worst and the best."""

from __future__ import annotations

from typing import Any

import pytest

from fallow import predict_study, predict_text
from fallow.predict_model import GapBin, GapReport, NodesReport, NodeWay, PredictReport, TraceReport
from fallow.predict_study import Way, Wish
from fallow.text import Style
from fallow.traces.model import Info

MS = 1_000_000
ONE = {
    "calls": 10, "calls_predicted": 9, "gaps": 8, "gaps_predicted": 6, "idle_ns": 70 * MS, "idle_predicted_ns": 63 * MS, "rests": 5,
    "mispredictions": 2, "low_ns": 40 * MS, "oracle_low_ns": 50 * MS, "run_ns": 100 * MS, "delay_ns": 3 * MS, "delay_worst_ns": 4 * MS,
    "budget_worst": 0.05, "searches": 12, "restarts": 1, "memory_bytes": 4096, "threshold_ns": 30_000,
}  # fmt: skip
OTHER = {name: 2 * value for name, value in ONE.items()} | {
    "calls_predicted": 3, "gaps_predicted": 2, "idle_predicted_ns": 7 * MS, "budget_worst": 0.02, "delay_worst_ns": MS, "memory_bytes": 1024,
    "threshold_ns": 20_000,
}  # fmt: skip
RESULTS = [{"rank": 0, "ways": [ONE]}, {"rank": 5, "ways": [OTHER]}]


def test_a_way_is_summed_over_ranks() -> None:
    way = predict_study._way_report(Way("spps", {"lead": 0.05}, 0.05), "spps", 0, RESULTS)
    assert (way.calls, way.gaps, way.rests, way.mispredictions) == (30, 24, 15, 6)
    assert (way.calls_predicted_share, way.gaps_predicted_share) == (12 / 30, 8 / 24)
    assert (way.idle_s, way.idle_predicted_share) == (pytest.approx(0.21), 70 / 210)
    assert (way.rest_s, way.rest_share, way.rest_of_oracle_share) == (pytest.approx(0.12), 120 / 300, 120 / 150)
    assert (way.delay_s, way.delay_share) == (pytest.approx(0.009), 9 / 300)
    assert (way.delay_worst_share, way.delay_worst_s) == (0.05, pytest.approx(0.004))
    assert (way.searches, way.restarts, way.memory_bytes) == (36, 3, 4096)
    assert (way.thresholds_s, way.threshold_s) == (pytest.approx([20e-6, 25e-6, 30e-6]), None)
    first, second = way.ranks
    assert (first.rank, second.rank, second.calls) == (0, 5, 20)
    assert (second.calls_predicted_share, second.rest_of_oracle_share) == (3 / 20, 80 / 100)
    assert (first.delay_share, first.delay_worst_share, first.threshold_s) == (3 / 100, 0.05, pytest.approx(30e-6))


def test_a_threshold_that_was_tried_is_summed_over_ranks() -> None:
    (point,) = predict_study._sweep_points([Way("pps", {}, 0.01, 50_000)], RESULTS)
    assert (point.threshold_s, point.lead) == (pytest.approx(50e-6), 0.01)
    assert (point.calls_predicted_share, point.rest_share, point.rest_of_oracle_share, point.delay_share) == (12 / 30, 120 / 300, 120 / 150, 9 / 300)


def test_the_run_time_is_that_of_a_rank() -> None:
    info = Info(size=8, hosts=["a"] * 5 + ["b"] * 3)
    trace = predict_study._trace_report(["x.ftr"], info, RESULTS)
    assert (trace.run_time_s, trace.calls, trace.hosts, trace.ranks_studied) == (pytest.approx(0.15), 30, 2, [0, 5])


def test_what_the_record_lacks_is_told_of_the_ranks_that_are_studied() -> None:
    rows: list[dict[str, Any]] = [{"dropped": 3, "complete": True}, {"dropped": 5, "complete": True}, {"dropped": 0, "complete": False}]
    info = Info(size=3)
    assert predict_study._notes(info, rows, [0, 1]) == ["8 events not recorded: gaps around such events are too long"]
    assert predict_study._notes(info, rows, [2]) == ["read up to the last whole block, as its end is missing: 1 rank"]
    assert predict_study._notes(info, rows[:0], []) == []


def test_predictors_are_timed_on_the_rank_with_most_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    class Study:
        progress = 1.0

        def __init__(self, paths: list[str]) -> None:
            pass

        def wait(self, _seconds: float) -> bool:
            return True

        def start_ranks(self, *_: object) -> None:
            pass

        def ranks(self) -> list[dict[str, Any]]:
            gaps: dict[str, Any] = {"papers": [(0, None, 1, 1)], "bins": [(0, None, 1, 1)]}
            return [{"rank": rank, "ways": [ONE], "gaps": gaps} for rank in range(3)]

        def start_costs(self, _ways: object, rank: int, _calls: int) -> None:
            asked.append(rank)

        def costs(self) -> list[tuple[float, int]]:
            return [(70.0, 20)]

    monkeypatch.setattr(predict_study.module(), "Study", Study)
    rows = [{"events": n, "dropped": 0, "complete": True} for n in (10, 20, 15)]
    wish = Wish(["last"], {"react_down": 5e3, "react_up": 15e3}, ranks_per_node=0)
    report = predict_study.study(["x.ftr"], Info(size=3, hosts=[""] * 3), rows, wish)
    assert (asked, report.cost_calls, report.ways[0].cost_ns) == ([1], 20, 70.0)
    assert (report.react_down_s, report.react_up_s) == (pytest.approx(5e-6), pytest.approx(15e-6))
    (line,) = (x for x in predict_text.lines(report, Style(False, True, 160)) if x.split()[:1] == ["last"])
    assert line.split() == ["last", "-", "90.0", "75.0", "90.0", "80.0", "3.000", "5.000", "6", "70"]


def test_tables_have_each_figure_under_its_heading() -> None:
    ways = [predict_study._way_report(Way(name, {}), name, 0, [{"rank": 0, "ways": [ONE | {"memory_bytes": n}]}]) for name, n in (("last", 2048), ("adaptive", 4096))]
    gaps = GapReport([GapBin(0.0, 20e-6, 3, 0.001, 0.75, 0.25), GapBin(20e-6, None, 1, 0.003, 0.25, 0.75)], [])
    nodes = NodesReport([[0, 1], [2]], [NodeWay("last", 0.1, 0.11, 0.22, 4, 0.0033, 0.0044)])
    trace = TraceReport(["x.ftr"], "app", 3, [0, 1], 1, "wall", 10, 0.1)
    report = PredictReport("", 1, trace, 10e-6, 20e-6, gaps, ways, [], 0, nodes, None, [])
    lines = [line.split() for line in predict_text.lines(report, Style(False, True, 160))]
    assert ["<", "20", "us", "3", "75.00", "%", "1", "ms", "25.00", "%"] in lines
    assert ["last", "22.0", "11.00", "0.330", "0.440"] in lines
    assert "memory of a rank's predictor: at most 4.0 KiB" in [" ".join(line) for line in lines]
    assert any(" ".join(line).startswith("2 of 3 ranks, 10 calls, 100 ms, gaps by wall clock; link: 10 us to rest, 20 us back") for line in lines)
