"""What a sweep shows at its end: medians by policy, and a page."""

from __future__ import annotations

import pytest

from drawn_page import draw
from fallow.sweep import summary
from fallow.text import Style

SCRIPTS = ("base.js", "sweep.js")


def row(number: int, policy: str, slowdown: float | None, saved: float | None, **more):
    fixed = {"id": f"{number:032x}", "group": "g", "program": "cg", "platform": "minotauro", "policy": policy, "status": "done"}
    results = {} if slowdown is None else {"slowdown": slowdown, "saved_edge_links": saved, "saved_total": saved / 2, "run_time_s": 1 + slowdown, "mispredictions": 7}
    return fixed | results | more


ROWS = [
    row(0, "always-on", 0.0, 0.0),
    row(1, "pps", 0.001, 0.30, option_lead=0.01),
    row(2, "pps", 0.003, 0.20, option_lead=0.05),
    row(3, "pps", 0.004, 0.10, option_lead=0.1),
    row(4, "oracle", 0.0, 0.5),
    row(5, "always-on", 0.02, 0.0, option_core="sleep"),
    row(6, "hardware", None, None, status="failed", error="no such trace"),
]


def test_medians_are_of_each_policy_and_way_to_wait():
    found = {p.name: p for p in summary.by_policy(ROWS)}
    assert list(found) == ["pps", "oracle", "always-on, cores sleep"]
    pps = found["pps"]
    assert (pps.points, pps.slowdown, pps.slowdown_worst, pps.saved_edge_links, pps.saved_total) == (3, 0.003, 0.004, 0.20, 0.10)
    assert summary.by_policy([row(0, "pps", 0.1, 0.2) | {"saved_edge_links": None}])[0].saved_edge_links is None


def test_the_terminal_shows_them():
    lines = list(summary.lines(ROWS, Style(False, True, 100)))
    assert "modelled" in lines[0] and "always-on" in lines[0]
    assert lines[2].split() == ["pps", "3", "20.0", "%", "10.0", "%", "0.300", "%", "0.400", "%"]
    assert len(lines) == 5
    assert list(summary.lines(ROWS[:1], Style(False, True, 100))) == []


def test_each_point_is_a_mark_and_a_row(tmp_path):
    found, data = draw(summary.page("study", ROWS, "study.results"), SCRIPTS, tmp_path)
    assert data["varying"] == ["policy", "option_lead", "option_core"]
    [picture] = found["drawn"]
    assert picture["label"].startswith("edge links: ")
    assert len(picture["circles"]) == 3  # of pps, which comes first; the others have other shapes
    heights = [float(c["cy"]) for c in picture["circles"]]
    assert heights == sorted(heights)  # downwards: 30, 20 and 10 %
    across = [float(c["cx"]) for c in picture["circles"]]
    assert across == sorted(across) and across[0] > 64
    assert found["rows"] == [3, 7]  # policies, and points
    for words in ("policy hardware: failed: no such trace", "7 points", "1 failed", "5 %", "modelled"):
        assert words in found["text"], words


def test_recorded_programs_have_their_ranks_beside_those_of_made_up_ones(tmp_path):
    rows = [row(0, "pps", 0.1, 0.2, synth_ranks=64, ranks=64), row(1, "pps", 0.2, 0.3, program="app/trace.ftr", ranks=16)]
    _, data = draw(summary.page("study", rows, "study.results"), SCRIPTS, tmp_path)
    assert data["varying"] == ["program", "policy", "synth_ranks"]
    assert [r["synth_ranks"] for r in data["rows"]] == [64, 16]


@pytest.mark.parametrize("rows", [[row(6, "hardware", None, None, status="failed", error="no")], ROWS[:1]])
def test_nothing_to_compare_is_said(tmp_path, rows):
    found, _ = draw(summary.page("study", rows, "study.results"), SCRIPTS, tmp_path)
    assert "no point to compare with always-on" in found["text"] and found["drawn"] == []
