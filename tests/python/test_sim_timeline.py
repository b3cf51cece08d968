"""Timelines of simulations: that their times are those of the sums, and whose they are."""

from __future__ import annotations

import json
from array import array

import pytest

from fallow.sim.timeline import (
    LINK_STATES,
    CallSpan,
    LinkSpan,
    Timeline,
    Window,
    _rest_states,
    as_dict,
    unpack,
    write_paraver,
    write_perfetto,
)
from fallow.traces import convert
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
        if rank >= 0 and e["name"] in ("waiting awake", "at rest"):
            sums[rank, e["name"]] = sums.get((rank, e["name"]), 0) + e["dur"] * 1e-6
    assert sim["raw"]["cores"]["changing_ps"] > 0
    for r in sim["ranks"]:
        assert sums[r["rank"], "waiting awake"] == pytest.approx(r["waiting_s"], abs=1e-9)
        assert sums.get((r["rank"], "at rest"), 0) == pytest.approx(r["resting_s"], abs=1e-9)


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
    events = [e for e in json.loads((tmp_path / "x.json").read_text())["traceEvents"] if e["ph"] == "X"]
    assert [(e["ts"], e["dur"]) for e in events if e["tid"] == 0] == [(1, 1), (5, 1)]
    found = [e for e in events if e["tid"] == 1]
    assert [(e["name"], e["pid"], e["ts"], e["dur"]) for e in found] == [("waiting awake", 3, 1.3, 0.3), ("at rest", 3, 1.6, 0.4)]


def test_a_nodes_link_stands_with_its_first_rank_in_paraver():
    calls = tuple(CallSpan(r, 1, 0.0, 9.0, 0.0, 4.0 if r == 3 else 0.0) for r in range(4))
    links = (LinkSpan(1, 0, 1, 2.0, 6.0), LinkSpan(1, 1, 1, 2.0, 6.0), LinkSpan(1, 0, 0, 6.0, 7.0))
    found = [(s.rank, s.row, s.begin_ns, s.end_ns) for s in _rest_states(Timeline(calls, links, None), 2, slowed=False)]
    assert found == [(3, "core", 5, 9), (2, "link", 2, 6)]


def test_states_of_links_in_paraver_have_the_names_of_the_page(fallow, tmp_path):
    study(fallow, *SMALL, "--policy", "hardware", "--timeline", "x.prv")
    names = dict(line.split(maxsplit=1) for line in (tmp_path / "x.pcf").read_text().splitlines() if line[:2].isdigit())
    assert (names["24"], names["25"]) == ("Link at rest", "Link changing width")  # to rest, too


def test_what_the_native_part_hands_over():
    """Picoseconds of a window in us become ns."""
    calls, links = array("q", [3, 1, 1000, 9000, 2000, 4000]), array("q", [2, 1, 3, 5000, 7000])
    found = unpack({"calls": calls.tobytes(), "links": links.tobytes(), "complete_until": 8000}, Window(1.5, 2.5, ranks=7))
    assert found == Timeline((CallSpan(3, 1, 1, 9, 2, 4),), (LinkSpan(2, 1, 3, 5, 7),), 8, 1500, 2500, 7)
    assert LINK_STATES[3] == "changing"


def test_rows_of_a_page():
    calls = (CallSpan(1, 1, 100.0, 300.0, 20.0, 30.0), CallSpan(0, 2, 50.0, 60.0, 0.0, 0.0), CallSpan(1, 2, 310.0, 320.0, 0.0, 0.0))
    found = as_dict(Timeline(calls, (LinkSpan(4, 1, 2, 10.0, 15.0),), 400.0, 50.0, 500.0, 3), [450.0, 350.0, 900.0, 900.0])
    assert [(r["rank"], r["spans"], r["until_ns"]) for r in found["ranks"]] == [
        (0, [50, 10, 1, 0, 0], 400), (1, [100, 200, 0, 20, 30, 310, 10, 1, 0, 0], 350), (2, [], 400)
    ]  # fmt: skip
    assert found["links"] == [{"node": 4, "direction": 1, "spans": [10, 5, 2]}]
    assert (found["from_ns"], found["to_ns"], found["complete_until_ns"]) == (50, 500, 400)


def test_links_in_perfetto_have_a_row_for_each_direction(tmp_path):
    links = tuple(LinkSpan(node, way, way, 1000.0 * node, 1000.0 * node + 500) for node in (1, 2) for way in (0, 1))
    write_perfetto([("a", Timeline((CallSpan(0, 1, 0.0, 1.0, 0.0, 0.0),), links, None))], tmp_path / "x.json")
    events = [e for e in json.loads((tmp_path / "x.json").read_text())["traceEvents"] if e["pid"] == 500_000]
    rows = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    found = [(rows[e["tid"]], e["name"], e["ts"], e["dur"]) for e in events if e["ph"] == "X"]
    assert found == [(f"node {n} link {way} switch", state, n, 0.5) for n in (1, 2) for way, state in (("to", "sending"), ("from", "low"))]


def test_rests_in_paraver_have_the_numbers_of_their_states(tmp_path):
    calls = (CallSpan(0, 1, 0.0, 90.0, 10.0, 40.0), CallSpan(1, 1, 0.0, 90.0, 0.0, 0.0))
    links = (LinkSpan(0, 0, 3, 10.0, 20.0), LinkSpan(0, 0, 2, 20.0, 120.0), LinkSpan(5, 0, 1, 20.0, 120.0))
    names = dict(line.split(maxsplit=1) for line in ("22 Core at rest", "23 Core slowed down", "24 Link at rest", "25 Link changing width"))
    for slowed, core in ((False, "22"), (True, "23")):
        write_paraver(Timeline(calls, links, None), "x", 1, tmp_path / "x.prv", slowed=slowed)
        lines = (tmp_path / "x.prv").read_text().splitlines()
        assert "):120_ns:" in lines[0]
        rests = [line.split(":")[4:] for line in lines if line.startswith("1:") and int(line.split(":")[7]) >= 22]
        assert rests == [["3", "10", "20", "25"], ["3", "20", "120", "24"], ["2", "50", "90", core]]
        states = (tmp_path / "x.pcf").read_text().partition("STATES\n")[2].splitlines()
        assert all(f"{number}    {name}" in states for number, name in names.items())
    (event,) = convert.open_source([tmp_path / "x.prv"], None).events(0)
    assert (event.op, event.enter_ns, event.exit_ns, event.wait_ns) == (1, 0, 90, 50)
