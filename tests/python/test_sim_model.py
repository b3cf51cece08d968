"""What is made of the simulator's sums: shares, and what both kinds of links add up to."""

from __future__ import annotations

from typing import Any

import pytest

from fallow.sim.model import Case, Outcome


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
