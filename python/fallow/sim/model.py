"""What is simulated and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fallow.sim.timeline import Timeline

COMPONENTS = ("edge_links", "upper_links", "switches", "cards", "cores", "nodes")
"""Parts of the machine whose energy is modelled, in the order in which they are shown."""

COMPONENT_NAMES = {
    "edge_links": "edge links", "upper_links": "upper links", "switches": "switches", "cards": "network cards",
    "cores": "cores", "nodes": "rest of nodes",
}  # fmt: skip

_PS = 1e-12
_ALSO = {"rest_switches": "switches rest", "rest_cards": "cards rest", "search_cost_us": "published cost"}


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
        if self.options.get("cap_by_first") is False:
            said.append("patterns of any length")
        if self.policy == "adaptive" and "budget" in self.options:
            said.append(f"budget {self.options['budget'] * 100:g} %")
        if "compress" in self.options:
            said.append(f"messages at {self.options['compress'] * 100:g} %")
        said += [what for key, what in _ALSO.items() if self.options.get(key)]
        if self.options.get("core", "spin") != "spin":
            said.append(f"cores {self.options['core']}")
        return self.policy + (f" ({', '.join(said)})" if said else "")


@dataclass(frozen=True)
class RankRow:
    """What one rank did. Waiting is polling; resting is being asleep, slowed or throttled, as the policy has it."""

    rank: int
    end_s: float
    computing_s: float
    in_calls_s: float
    waiting_s: float
    resting_s: float
    calls: int
    mispredictions: int
    predicted_delay_s: float
    expected: int  # calls that its predictor had expected
    searches: int


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
class PathRow:
    """What one rank adds to the critical path; without a rank, those that are not known any more."""

    rank: int | None
    computing_s: float
    in_calls_s: float
    transfer_s: float
    link_wake_s: float
    core_wake_s: float

    @property
    def total_s(self) -> float:
        """All of it."""
        return self.computing_s + self.in_calls_s + self.transfer_s + self.link_wake_s + self.core_wake_s


PATH_PARTS = ("computing_s", "in_calls_s", "transfer_s", "link_wake_s", "core_wake_s")
PATH_NAMES = ("computing", "in calls", "messages under way", "links waking", "cores waking")


@dataclass(frozen=True)
class Path:
    """The critical path: its parts add up to the run time. Where too many ranks have paths with
    nothing in common, it is known by rank for its end only; of what was before, the row without a rank has the sums."""

    rows: tuple[PathRow, ...]
    messages: int

    def total_s(self, part: str) -> float:
        """One of PATH_PARTS over all ranks."""
        return float(sum(getattr(row, part) for row in self.rows))


@dataclass(frozen=True)
class Idle:
    """How long links idled between messages: (count, time in s) by powers of two of ns, and by the publication's
    classes (below 20 us, to 200 us, longer)."""

    bins: tuple[tuple[int, float], ...]
    classes: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class TooShort:
    """Receives that are shorter than the message that they took; the first one between these world ranks."""

    count: int
    source: int
    target: int
    communicator: int
    tag: int
    bytes: int
    room: int


@dataclass(frozen=True)
class UnlikeSizes:
    """Collective calls of which ranks name different sizes; of the first one these two: world rank, call, bytes."""

    count: int
    operation: str
    communicator: int
    before: tuple[int, int, int]
    then: tuple[int, int, int]


@dataclass(frozen=True)
class Outcome:
    """One simulation's result. `raw` is the native one."""

    case: Case
    raw: Mapping[str, Any]
    ranks: tuple[RankRow, ...] = ()
    links: tuple[LinkRow, ...] = ()
    path: Path | None = None
    edge_idle: Idle | None = None
    timeline: Timeline | None = None
    too_short: TooShort | None = None
    unlike_sizes: UnlikeSizes | None = None

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
        """Messages that found a link at rest, or waking by a plan; not those behind them."""
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
            return (link["low_ps"] + link["deep_ps"]) / whole if whole else (0.0 if link["links"] else None)
        if component == "cores":
            whole = span * self.raw["ranks"]
            return float(self.raw["cores"]["resting_ps"]) / whole if whole else 0.0
        if component in ("switches", "cards"):
            part = self.raw["switch_parts" if component == "switches" else "card_parts"]
            whole = span * part["parts"]
            return (part["low_ps"] + part["deep_ps"]) / whole if whole else None
        return None


def rank_rows(rows: list[tuple[int, ...]]) -> tuple[RankRow, ...]:
    """From the native tuples."""
    times = ("end_s", "computing_s", "in_calls_s", "waiting_s", "resting_s")
    return tuple(
        RankRow(
            rank=n, **dict(zip(times, (t * _PS for t in row), strict=False)), calls=row[5], mispredictions=row[6],
            predicted_delay_s=row[7] * _PS, expected=row[8], searches=row[9],
        )
        for n, row in enumerate(rows)
    )  # fmt: skip


def path_of(rows: list[tuple[int, ...]], unsplit: tuple[int, ...] | None, messages: int) -> Path | None:
    """From the native tuples; None if it was not followed."""
    if not rows:
        return None
    numbered: list[tuple[int | None, tuple[int, ...]]] = [(n, row) for n, row in enumerate(rows) if any(row)]
    if unsplit is not None:
        numbered.append((None, unsplit))
    return Path(tuple(PathRow(n, *(t * _PS for t in row)) for n, row in numbered), messages)


def idle_of(found: Mapping[str, Any]) -> Idle:
    """From the native tuples."""
    return Idle(*(tuple((n, t * _PS) for n, t in found[key]) for key in ("bins", "classes")))


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
    full_run_time_s: float | None = None  # with contention and everything on, where `machine` leaves it out

    @property
    def contention_error(self) -> float | None:
        """Run time without contention over that with it, minus one; None if it was not estimated."""
        return self.base.run_time_s / self.full_run_time_s - 1 if self.full_run_time_s else None

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
