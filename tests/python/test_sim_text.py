"""A study in the terminal, and what the command line makes of its options: without a simulation."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from fallow import cli, cli_sim, native
from fallow.errors import UserError
from fallow.sim import run, text
from fallow.sim.model import COMPONENTS, Case, Outcome, ProgramFacts, RankRow, Study
from fallow.text import Style

S = 10**12  # ps
PLAIN = Style(False, True, 200, breaks=False)


def _outcome(case: Case, seconds: int, edge_j: float, *, late: int, low: float = 0.0, ranks: tuple[RankRow, ...] = ()) -> Outcome:
    link = {"links": 2, "low_ps": low * 2 * seconds * S, "deep_ps": 0, "late": late, "delay_ps": late * S // 2}
    upper = {"links": 4, "low_ps": 0, "deep_ps": 0, "late": 0, "delay_ps": 0}
    none = {"parts": 0, "low_ps": 0, "deep_ps": 0}
    joules = dict.fromkeys(COMPONENTS, 1.0) | {"edge_links": edge_j, "total": edge_j + 5.0}
    raw = {"makespan_ps": seconds * S, "ranks": 2, "nodes": 2, "edge": link, "upper": upper, "switch_parts": none, "card_parts": none,
           "cores": {"resting_ps": 0}, "energy_model_j": joules, "mispredictions": 7 * late}  # fmt: skip
    return Outcome(case, raw, ranks)


def _rank(number: int, waiting_s: float) -> RankRow:
    return RankRow(number, 4.0, 3.0 - waiting_s, 1.0, waiting_s, 0.0, 9, 0, 0.0, 0, 0)


@pytest.fixture
def study() -> Study:
    base = _outcome(Case("always-on"), 4, 5.0, late=0, ranks=(_rank(0, 0.75), _rank(1, 0.25)))
    other = _outcome(Case("hardware"), 5, 2.0, late=3, low=0.25)
    return Study(ProgramFacts("app", 2, 18, "wall"), {"name": "minotauro", "contention": False}, (base, other), 5.0)


def test_a_study_has_each_figure_under_its_heading(study: Study) -> None:
    rows = [line.split() for line in text._overview(study, PLAIN)]
    assert rows[2] == ["hardware", "5", "s", "+25.000", "%", "7", "J", "30.0", "%", "21", "3", "1.5", "s"]
    energies = [line.split() for line in text._energies(study, PLAIN)]
    found = [row for row in energies if row[:1] == ["hardware"]]
    assert [row[1:3] for row in found] == [["2", "J"], ["60.0", "%"], ["25.0", "%"]]
    ranks = [line.split() for line in text._ranks(study, PLAIN)]
    assert [row[0] for row in ranks[2:]] == ["1", "0"], "the one that waits least holds the others up"
    assert ranks[2][1:] == ["2.75", "s", "1", "s", "250", "ms", "9"]
    data = text.outcome_dict(study, study.outcomes[1])
    assert (data["late_messages"], data["mispredictions"], data["wake_delay_s"], data["slowdown"]) == (3, 21, 1.5, 0.25)


def test_how_far_off_the_first_look_is_is_said(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "assumptions", lambda _: ["first"])
    assert "With contention the run time is 5 s: without it, it comes out -20.000 % off (everything on)." in text.all_assumptions(study)


def _arguments(*words: str) -> argparse.Namespace:
    return cli.parser().parse_args(["sim", *words])


def test_options_of_a_policy_are_put_in_the_native_parts_words() -> None:
    (case,) = cli_sim.cases(_arguments(
        "x.ftr", "--policy", "hardware", "--idle-timer", "30us", "--deep-timer", "2ms", "--edge-only", "--cores", "countdown", "--core-timer", "7us",
        "--frequency", "1.5", "--memory-share", "20%", "--compress", "50%", "--compress-only", "collectives", "--rest-switches",
    ))  # fmt: skip
    assert case == Case("hardware", {
        "idle_timer_us": 30.0, "deep_timer_us": 2000.0, "upper_links": False, "core": "countdown", "core_timer_us": 7.0, "core_ghz": 1.5,
        "memory_share": 0.2, "compress": 0.5, "compress_what": "collectives", "rest_switches": True,
    })  # fmt: skip


def test_every_policy_has_every_value_of_what_concerns_it() -> None:
    made = cli_sim.cases(_arguments("x.ftr", "--policy", "pps,spps,oracle", "--lead", "1%,5%", "--threshold", "20us,30us", "--published-cost"))
    assert [(c.policy, c.options.get("lead"), c.options.get("threshold_us")) for c in made] == [
        ("pps", 0.01, 20.0), ("pps", 0.01, 30.0), ("pps", 0.05, 20.0), ("pps", 0.05, 30.0), ("spps", 0.01, None), ("spps", 0.05, None),
        ("oracle", None, None),
    ]  # fmt: skip
    costs = native.require().published_predictor_cost()
    assert tuple(made[0].options[f"{name}_cost_us"] for name in ("call", "search", "tuning")) == costs
    assert "call_cost_us" not in made[-1].options


@pytest.mark.parametrize("option", [
    ["--idle-timer", "30us"], ["--deep-timer", "2ms"], ["--rest-switches"], ["--rest-cards"], ["--edge-only"], ["--call-cost", "1us"],
    ["--budget", "2%"], ["--core-timer", "7us"], ["--core-state", "C1"], ["--memory-share", "20%"],
])  # fmt: skip
def test_a_policy_has_none_of_the_options_that_are_for_others(option: list[str]) -> None:
    made = cli_sim.cases(_arguments("x.ftr", "--policy", "always-on,hardware,adaptive", "--cores", "spin,sleep,countdown", *option))
    assert made[0] == Case("always-on")
    assert any(len(case.options) > ("core" in case.options) for case in made)


def test_a_policy_that_is_named_twice_is_simulated_once() -> None:
    made = cli_sim.cases(_arguments("x.ftr", "--policy", "oracle,pps,oracle", "--lead", "1%,1%"))
    assert made == [Case("oracle"), Case("pps", {"lead": 0.01})]


@pytest.mark.parametrize(("said", "window"), [("10ms..30ms", (10_000.0, 30_000.0)), ("..1ms", (0.0, 1000.0)), ("5us..", (5.0, None))])
def test_windows(said: str, window: tuple[float, float | None]) -> None:
    assert cli_sim._window(said) == window


@pytest.mark.parametrize("said", ["10ms", "3ms..3ms", "3ms..2ms"])
def test_what_is_no_window(said: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is no window"):
        cli_sim._window(said)


def test_a_window_may_begin_while_the_longest_run_lasts(study: Study) -> None:
    cli_sim._expect_window(study, cli_sim.Window(4_900_000.0))
    with pytest.raises(UserError, match=r"--window begins at 5\.1 s; the runs have ended by 5 s"):
        cli_sim._expect_window(study, cli_sim.Window(5_100_000.0))


def test_a_program_as_large_as_the_machine_has_room() -> None:
    facts: dict[str, Any] = {"nodes": 4, "ranks_per_node": 2, "name": "small"}
    run._check_room(8, facts)
    with pytest.raises(UserError, match="the program has 9 ranks; small has room for 8"):
        run._check_room(9, facts)


def test_made_up_programs_are_told_all_that_was_said() -> None:
    said = ["--ranks", "8", "--iterations", "5", "--bytes", "2KB", "--reduce-bytes", "16", "--compute", "1.5us", "--jitter", "5%", "--seed", "3"]
    assert cli_sim.synth_options(_arguments("--synth", "cg", *said), "cg") == {
        "ranks": 8, "iterations": 5, "size_bytes": 2048, "reduce_bytes": 16, "compute_ns": 1500, "jitter": 0.05, "seed": 3,
    }  # fmt: skip
