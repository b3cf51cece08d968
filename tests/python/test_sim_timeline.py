"""Timelines of simulations: that their times are those of the sums, and whose they are."""

from __future__ import annotations

import json

import pytest

from fallow.sim.timeline import CallSpan, LinkSpan, Timeline, _rest_states, write_perfetto
from test_sim import SMALL, study


@pytest.mark.parametrize("cores", ["sleep", "throttle", "oracle"])
def test_waits_in_a_timeline_are_those_of_the_ranks(fallow, tmp_path, cores):
    """Changing state is part of a wait, in which a core draws what polling does: no work of the call's."""
    args = [*SMALL, "--jitter", "40%", "--policy", "hardware", "--cores", cores, "--core-timer", "20us"]
    args = args if cores != "oracle" else args[:-2]
    sim = study(fallow, *args, "--timeline", "x.json", "--timeline-ranks", "all")["simulations"][1]
    sums = {}
    for e in json.loads((tmp_path / "x.json").read_text())["traceEvents"]:
        rank = e["pid"] - 1_000_000  # of the second simulation
        if rank >= 0 and e["name"] in ("waiting awake", "asleep"):
            sums[rank, e["name"]] = sums.get((rank, e["name"]), 0) + e["dur"] * 1e-6
    assert sim["raw"]["cores"]["changing_ps"] > 0
    for r in sim["ranks"]:
        assert sums[r["rank"], "waiting awake"] == pytest.approx(r["waiting_s"], abs=1e-9)
        assert sums.get((r["rank"], "asleep"), 0) == pytest.approx(r["resting_s"], abs=1e-9)


def test_no_rank_is_taken_for_another_policys_or_for_links(tmp_path):
    """Programs have up to 2^20 of them."""
    calls = tuple(CallSpan(r, 1, 0.0, 5.0, 0.0, 0.0) for r in (0, 500_000, 1_000_000))
    drawn = Timeline(calls, (LinkSpan(0, 0, 0, 0.0, 5.0),), None)
    write_perfetto([("a", drawn), ("b", drawn)], tmp_path / "x.json")
    events = json.loads((tmp_path / "x.json").read_text())["traceEvents"]
    names = [e["pid"] for e in events if e["name"] == "process_name"]
    assert len(names) == len(set(names)) == 8


def test_a_window_in_which_nothing_is_called_is_a_timeline_too(tmp_path):
    write_perfetto([("a", Timeline((), (LinkSpan(0, 0, 1, 2.0, 6.0),), None))], tmp_path / "x.json")
    events = json.loads((tmp_path / "x.json").read_text())["traceEvents"]
    assert [e["name"] for e in events if e["ph"] == "X"] == ["low"]


def test_a_call_waits_at_its_end_first_awake(tmp_path):
    drawn = Timeline((CallSpan(3, 1, 1000.0, 2000.0, 300.0, 400.0), CallSpan(3, 1, 5000.0, 6000.0, 0.0, 0.0)), (), None)
    write_perfetto([("a", drawn)], tmp_path / "x.json")
    found = [e for e in json.loads((tmp_path / "x.json").read_text())["traceEvents"] if e.get("tid") == 1 and e["ph"] == "X"]
    assert [(e["name"], e["pid"], e["ts"], e["dur"]) for e in found] == [("waiting awake", 3, 1.3, 0.3), ("asleep", 3, 1.6, 0.4)]


def test_a_nodes_link_stands_with_its_first_rank_in_paraver():
    calls = tuple(CallSpan(r, 1, 0.0, 9.0, 0.0, 4.0 if r == 3 else 0.0) for r in range(4))
    links = (LinkSpan(1, 0, 1, 2.0, 6.0), LinkSpan(1, 1, 1, 2.0, 6.0), LinkSpan(1, 0, 0, 6.0, 7.0))
    found = [(s.rank, s.row, s.begin_ns, s.end_ns) for s in _rest_states(Timeline(calls, links, None), 2, slowed=False)]
    assert found == [(3, "core", 5, 9), (2, "link", 2, 6)]


def test_states_of_links_in_paraver_have_the_names_of_the_page(fallow, tmp_path):
    study(fallow, *SMALL, "--policy", "hardware", "--timeline", "x.prv")
    names = dict(line.split(maxsplit=1) for line in (tmp_path / "x.pcf").read_text().splitlines() if line[:2].isdigit())
    assert (names["24"], names["25"]) == ("Link at rest", "Link changing width")  # to rest, too
