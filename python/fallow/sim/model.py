"""What is simulated and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

COMPONENTS = ("edge_links", "upper_links", "switches", "cards", "cores")
"""Parts of the machine whose energy is modelled, in the order in which they are shown."""

COMPONENT_NAMES = {
    "edge_links": "edge links", "upper_links": "upper links", "switches": "switches", "cards": "network cards",
    "cores": "cores",
}  # fmt: skip

_PS = 1e-12


@dataclass(frozen=True)
class Case:
    """One simulation: a policy with its options (names and units as the native part takes them)."""

    policy: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The policy and what was chosen beside it."""
        said = []
        if self.policy in ("pps", "spps") and "lead" in self.options:
            said.append(f"lead {self.options['lead'] * 100:g} %")
        if self.policy == "pps" and "threshold_us" in self.options:
            said.append(f"GT {self.options['threshold_us']:g} us")
        if self.policy == "adaptive" and "budget" in self.options:
            said.append(f"budget {self.options['budget'] * 100:g} %")
        if self.options.get("core", "spin") != "spin":
            said.append(f"cores {self.options['core']}")
        return self.policy + (f" ({', '.join(said)})" if said else "")


@dataclass(frozen=True)
class RankRow:
    """What one rank did. Waiting is polling."""

    rank: int
    end_s: float
    computing_s: float
    in_calls_s: float
    waiting_s: float
    sleeping_s: float
    calls: int
    mispredictions: int
    predicted_delay_s: float


@dataclass(frozen=True)
class LinkRow:
    """What one direction of one link did. `kind`: up (card to switch), down (switch to card), upper."""

    kind: str
    number: int
    busy_s: float
    low_s: float
    deep_s: float
    rests: int
    late: int
    delay_s: float


@dataclass(frozen=True)
class Outcome:
    """One simulation's result. `raw` is the native one."""

    case: Case
    raw: Mapping[str, Any]
    ranks: tuple[RankRow, ...] = ()
    links: tuple[LinkRow, ...] = ()

    @property
    def run_time_s(self) -> float:
        """When the last rank was through."""
        return float(self.raw["makespan_ps"]) * _PS

    @property
    def energy_j(self) -> dict[str, float]:
        """By component."""
        return {name: float(self.raw["energy_model_j"][name]) for name in COMPONENTS}

    @property
    def total_j(self) -> float:
        """Of all that is modelled."""
        return float(self.raw["energy_model_j"]["total"])

    @property
    def late_messages(self) -> int:
        """Messages that found a link at rest or waking."""
        return int(self.raw["edge"]["late"]) + int(self.raw["upper"]["late"])

    @property
    def wake_delay_s(self) -> float:
        """What these messages waited, added up."""
        return (float(self.raw["edge"]["delay_ps"]) + float(self.raw["upper"]["delay_ps"])) * _PS

    def rest_share(self, component: str) -> float | None:
        """Share of its time that a component is at rest; None: it has no state of rest in the model."""
        span = float(self.raw["makespan_ps"])
        if component in ("edge_links", "upper_links"):
            link = self.raw[component.removesuffix("_links")]
            whole = span * link["links"]
            return (link["low_ps"] + link["deep_ps"]) / whole if whole else 0.0
        if component == "cores":
            whole = span * self.raw["ranks"]
            return float(self.raw["cores"]["sleeping_ps"]) / whole if whole else 0.0
        return None


def rank_rows(rows: list[tuple[int, ...]]) -> tuple[RankRow, ...]:
    """From the native tuples."""
    return tuple(
        RankRow(n, end * _PS, comp * _PS, calls_ps * _PS, wait * _PS, sleep * _PS, calls, wrong, delay * _PS)
        for n, (end, comp, calls_ps, wait, sleep, calls, wrong, delay) in enumerate(rows)
    )


def link_rows(rows: list[tuple[Any, ...]]) -> tuple[LinkRow, ...]:
    """From the native tuples."""
    return tuple(
        LinkRow(kind, number, busy * _PS, low * _PS, deep * _PS, rests, late, delay * _PS)
        for kind, number, busy, low, deep, rests, late, delay in rows
    )


@dataclass(frozen=True)
class ProgramFacts:
    """What is replayed."""

    name: str
    ranks: int
    events: int
    clock: str  # "cpu", "wall" or "made up"
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Study:
    """All simulations of one program on one machine; the first has everything always on."""

    program: ProgramFacts
    machine: Mapping[str, Any]
    outcomes: tuple[Outcome, ...]

    @property
    def base(self) -> Outcome:
        """What the others are compared with."""
        return self.outcomes[0]

    def slowdown(self, outcome: Outcome) -> float:
        """Run time over that with everything always on, minus one."""
        return outcome.run_time_s / self.base.run_time_s - 1 if self.base.run_time_s else 0.0

    def saved(self, outcome: Outcome, component: str | None = None) -> float | None:
        """Share of a component's energy that is saved; of the total without one. None: it draws nothing."""
        before = self.base.energy_j[component] if component else self.base.total_j
        after = outcome.energy_j[component] if component else outcome.total_j
        return 1 - after / before if before else None
