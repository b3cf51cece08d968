"""What is made of the simulator's figures: rows, shares, and the words that are said of them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from fallow.sim import machine, model, run
from fallow.sim.model import Case, Outcome, ProgramFacts, Study


def outcome(**more: Any) -> Outcome:
    links = {"links": 4, "low_ps": 6, "deep_ps": 2, "late": 3, "delay_ps": 5_000_000_000_000}
    upper = {"links": 8, "low_ps": 30, "deep_ps": 10, "late": 4, "delay_ps": 2_000_000_000_000}
    part = {"parts": 5, "low_ps": 10, "deep_ps": 15}
    none = {"parts": 0, "low_ps": 0, "deep_ps": 0}
    raw = {"makespan_ps": 10, "ranks": 3, "edge": links, "upper": upper, "switch_parts": part, "card_parts": none, "cores": {"resting_ps": 12}}
    return Outcome(Case("hardware"), raw | more)


def test_messages_are_late_at_links_of_both_kinds() -> None:
    assert outcome().late_messages == 7
    assert outcome().wake_delay_s == pytest.approx(7.0)


@pytest.mark.parametrize(
    ("component", "share"), [("edge_links", 8 / 40), ("upper_links", 40 / 80), ("switches", 25 / 50), ("cards", None), ("cores", 12 / 30), ("nodes", None)]
)
def test_shares_of_time_at_rest(component: str, share: float | None) -> None:
    assert outcome().rest_share(component) == share


def test_shares_of_no_time_and_of_nothing() -> None:
    assert outcome(makespan_ps=0).rest_share("edge_links") == 0
    assert outcome(upper={"links": 0, "low_ps": 0, "deep_ps": 0}).rest_share("upper_links") is None


def test_rows_of_ranks_links_and_paths_have_each_figure_under_its_name() -> None:
    """The native part gives tuples, times in ps."""
    s = 10**12
    (rank,) = model.rank_rows([(1 * s, 2 * s, 3 * s, 4 * s, 5 * s, 6, 7, 8 * s, 9, 10)])
    assert rank == model.RankRow(0, 1.0, 2.0, 3.0, 4.0, 5.0, 6, 7, 8.0, 9, 10)
    assert (rank.waiting_s, rank.resting_s, rank.expected, rank.searches) == (4.0, 5.0, 9, 10)
    (link,) = model.link_rows([("up", 3, 1 * s, 2 * s, 4 * s, 5, 6, 7 * s)])
    assert (link.busy_s, link.low_s, link.deep_s, link.rests, link.late, link.delay_s) == (1.0, 2.0, 4.0, 5, 6, 7.0)
    path = model.path_of([(0, 0, 0, 0, 0), (1 * s, 2 * s, 3 * s, 4 * s, 5 * s)], None, 8)
    assert path is not None
    (row,) = path.rows
    assert (row.rank, row.computing_s, row.in_calls_s, row.transfer_s, row.link_wake_s, row.core_wake_s) == (1, 1.0, 2.0, 3.0, 4.0, 5.0)
    assert (row.total_s, path.total_s("transfer_s"), path.messages) == (15.0, 3.0, 8)
    path = model.path_of([(1 * s, 0, 0, 0, 0)], (0, 0, 2 * s, 0, 0), 8)
    assert path is not None
    assert [(row.rank, row.total_s) for row in path.rows] == [(0, 1.0), (None, 2.0)]
    assert path.total_s("transfer_s") == 2.0
    assert model.path_of([], None, 0) is None
    idle = model.idle_of({"bins": [(2, 3 * s)], "classes": [(1, s), (4, 5 * s)]})
    assert (idle.bins, idle.classes) == (((2, 3.0),), ((1, 1.0), (4, 5.0)))


def test_a_study_is_against_everything_always_on() -> None:
    def ran(makespan_ps: int, edge: float, cards: float) -> Outcome:
        joules = dict.fromkeys(model.COMPONENTS, 0.0) | {"edge_links": edge, "cards": cards, "total": edge + cards}
        return outcome(makespan_ps=makespan_ps, energy_model_j=joules)

    base, other = ran(4 * 10**12, 8.0, 2.0), ran(5 * 10**12, 4.0, 2.5)
    study = Study(ProgramFacts("x", 1, 1, "wall"), {}, (base, other), 5.0)
    assert study.slowdown(base) == 0 and study.slowdown(other) == pytest.approx(0.25)
    assert (study.saved(other), study.saved(other, "edge_links"), study.saved(other, "cores")) == (pytest.approx(0.35), pytest.approx(0.5), None)
    assert study.saved(other, "cards") == pytest.approx(-0.25)
    assert study.contention_error == pytest.approx(-0.2)


@pytest.mark.parametrize(
    ("policy", "options", "label"),
    [
        ("hardware", {"lead": 0.05, "threshold_us": 30}, "hardware"),
        ("pps", {"lead": 0.05, "threshold_us": 30, "cap_by_first": False}, "pps (lead 5 %, GT 30 us, patterns of any length)"),
        ("adaptive", {"budget": 0.02, "compress": 0.5, "core": "sleep"}, "adaptive (budget 2 %, messages at 50 %, cores sleep)"),
        ("oracle", {"core": "spin", "rest_switches": True, "rest_cards": True}, "oracle (switches rest, cards rest)"),
    ],
)
def test_a_case_is_called_by_what_was_chosen(policy: str, options: dict[str, Any], label: str) -> None:
    assert Case(policy, options).label == label


FACTS = {
    "segment_bytes": 2048, "contention": True, "topology": "XGFT(1;2;1)", "nodes": 2, "routing": "random", "ranks_per_node": 3, "link_gbit_s": 40.0,
    "link_lanes": 4, "switch_latency_us": 0.1, "mpi_latency_us": 1.5, "eager_bytes": 4096, "collectives": "openmpi", "link_rest_fraction": 0.43,
    "link_port_w": 2.5, "link_rest_down_us": 11.0, "link_rest_up_us": 12.0, "link_share_of_switch": 0.64, "switch_rest_up_us": 100.0,
    "card_rest_up_us": 200.0, "core_compute_w": 9.0, "core_spin_w": 8.0, "core_sleep_w": 1.0, "core_wake_us": 5.0, "card_idle_w": 6.0,
    "card_active_w": 7.0, "core_frequency_us": 30.0, "core_throttle_us": 3.0, "node_w": 50.0, "cores_per_node": 3, "cpu_speed": 2.0, "memory_gb_s": 5.0,
}  # fmt: skip


def test_what_is_assumed_has_each_value_under_its_name() -> None:
    said = " ".join(machine.assumptions(FACTS))
    for words in (
        "XGFT(1;2;1), 2 nodes, random routing, 3 ranks a node; packets of 2048 bytes share links",
        "40 Gbit/s, 4 lanes; each link of a message's way adds 0.1 us, MPI 1.5 us a message; rendezvous above 4096 bytes; collectives as openmpi",
        "A link at rest draws 43 % of its port's 2.5 W; it takes 11 us to get there and 12 us back, at full power. Ports are 64 % of a switch.",
        "they take 100 and 200 us to come back",
        "9 W computing, 8 W polling, 1 W blocked, 5 us to wake; network cards: 6 to 7 W. Another frequency takes 30 us, throttling 3 us.",
        "The rest of a node draws 50 W",
        "divided by 2; copies inside a node run at 5 GB/s.",
    ):
        assert words in said
    assert "but one is taken for each rank" not in said and "says nothing of the rest" not in said
    crowded = " ".join(machine.assumptions(FACTS | {"cores_per_node": 2, "node_w": 0}))
    assert "The platform's nodes have 2 cores, but one is taken for each rank." in crowded and "says nothing of the rest of its nodes" in crowded


def test_settings_of_a_machine_are_put_in_the_native_parts_words() -> None:
    said = {"ranks_per_node": 4, "topology": "fat-tree", "network": "loggp", "cpu_speed": 2.0}
    assert machine.machine_settings(said, 64) == {"ranks_per_node": 4, "fat_tree": 64, "contention": False, "cpu_speed": 2.0}
    assert machine.machine_settings({"topology": "XGFT(1;2;1)", "network": "full"}, 64) == {"xgft": "XGFT(1;2;1)", "contention": True}
    assert machine.machine_settings(dict.fromkeys(said), 64) == {}


def test_what_is_doubtful_of_a_replay_is_told_with_its_number() -> None:
    assert run.doubts(outcome()) == []
    left = {"source": 3, "target": 4, "tag": 5, "communicator": 6, "count": 7}
    raw = {"unreceived": left, "unplaced": 1, "let_go": 8, "refused": 9}
    short = model.TooShort(count=2, source=3, target=4, communicator=5, tag=6, bytes=70, room=60)
    sizes = model.UnlikeSizes(2, "MPI_Bcast", 5, (1, 2, 8), (3, 4, 16))
    told = run.doubts(dataclasses.replace(outcome(**raw), too_short=short, unlike_sizes=sizes))
    assert told[:3] == [
        "never received: 7 messages, the first one from rank 3 to rank 4, tag 5, communicator 6",
        "too short for their message: 2 receives, the first one on rank 4 for 60 of 70 bytes from rank 3, tag 6, communicator 5",
        "of different sizes: 2 collective calls, the first one MPI_Bcast on communicator 5 with 8 bytes on rank 1 (call 2) and 16 bytes on rank 3 (call 4)",
    ]
    assert [words.partition(",")[0] for words in told[3:]] == [
        "replayed without messages: 1 call on communicators of which the trace does not say who is in them",
        "left before their end: 8 calls of ranks with several threads",
        "left out: 9 calls that returned an error; messages of theirs are not replayed",
    ]
