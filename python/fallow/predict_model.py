"""What a study of predictors holds. `fallow predict --json` prints exactly these names; docs/reference/
predict-schema.md explains them, and schema/predict-1.schema.json checks them. Names carry their unit."""

from __future__ import annotations

from dataclasses import dataclass

SCHEMA = "fallow-predict"
VERSION = 1


@dataclass(frozen=True)
class TraceReport:
    """The trace that was studied."""

    paths: list[str]
    program: str
    ranks: int
    ranks_studied: list[int]
    hosts: int
    clock: str
    calls: int
    run_time_s: float


@dataclass(frozen=True)
class GapBin:
    """Gaps of one range of lengths."""

    low_s: float
    high_s: float | None
    count: int
    time_s: float
    count_share: float
    time_share: float


@dataclass(frozen=True)
class GapReport:
    """How long the gaps between calls are."""

    papers: list[GapBin]
    bins: list[GapBin]


@dataclass(frozen=True)
class SweepPoint:
    """What pps does with one threshold."""

    threshold_s: float
    lead: float
    calls_predicted_share: float
    rest_share: float
    rest_of_oracle_share: float
    delay_share: float


@dataclass(frozen=True)
class RankWay:
    """One way on one rank."""

    rank: int
    calls: int
    calls_predicted_share: float
    rest_of_oracle_share: float
    delay_share: float
    delay_worst_share: float
    threshold_s: float | None


@dataclass(frozen=True)
class WayReport:
    """One predictor with its options, over all ranks studied."""

    name: str
    predictor: str
    options: dict[str, float]
    threshold_s: float | None
    thresholds_s: list[float]
    lead: float | None
    calls: int
    calls_predicted_share: float
    gaps: int
    gaps_predicted_share: float
    idle_s: float
    idle_predicted_share: float
    rests: int
    mispredictions: int
    rest_s: float
    rest_share: float
    rest_of_oracle_share: float
    delay_s: float
    delay_share: float
    delay_worst_share: float
    delay_worst_s: float
    searches: int
    restarts: int
    memory_bytes: int
    cost_ns: float | None
    ranks: list[RankWay]


@dataclass(frozen=True)
class NodeWay:
    """One way on the links of the nodes, each shared by all the node's ranks."""

    name: str
    rest_s: float
    rest_share: float
    rest_of_oracle_share: float
    rests: int
    delay_share: float
    delay_worst_rank_share: float


@dataclass(frozen=True)
class NodesReport:
    """Links that rest only while all ranks of a node are predicted idle."""

    nodes: list[list[int]]
    ways: list[NodeWay]


@dataclass(frozen=True)
class TimelineRow:
    """What one way said after each call."""

    name: str
    rest_ns: list[int]
    expected_ns: list[int]
    silence_ns: list[int]


@dataclass(frozen=True)
class PredictTimeline:
    """Some calls of one rank and what was predicted, in time as recorded."""

    rank: int
    start_ns: int
    gap_ns: list[int]
    call_ns: list[int]
    operation: list[int]
    operations: list[str]
    rows: list[TimelineRow]


@dataclass(frozen=True)
class PredictReport:
    """Everything."""

    schema: str
    version: int
    trace: TraceReport
    react_down_s: float
    react_up_s: float
    gaps: GapReport
    ways: list[WayReport]
    sweep: list[SweepPoint]
    cost_calls: int
    nodes: NodesReport | None
    timeline: PredictTimeline | None
    notes: list[str]
