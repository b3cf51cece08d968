"""What the extension module offers. Parts whose library was not built are absent at run time."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import TypedDict

__version__: str

class RankFileError(ValueError):
    """A rank file that cannot be read: names file, offset and reason."""

class HistogramDict(TypedDict):
    """By powers of two of nanoseconds, and below 20 us, below 200 us, the rest."""

    count: list[int]
    time_s: list[float]
    coarse_count: list[int]
    coarse_time_s: list[float]

class OpDict(TypedDict):
    op: int
    calls: int
    time_s: float
    size_bytes: int
    wait_awake_s: float
    wait_asleep_s: float
    wake_delay_s: float

class PlaceDict(TypedDict):
    address: int
    module: int
    comm_size: int

class SiteDict(PlaceDict):
    slot: int
    op: int
    comm: int
    calls: int
    time_s: float
    size_bytes: int
    gap_s: float
    wait_awake_s: float
    wait_asleep_s: float
    wake_delay_s: float
    sleeps: int
    wait_max_s: float

EventTuple = tuple[int, int, int, int, int, int, int, int, int, int]
"""enter_ns, exit_ns, op, peer, size_bytes, tag, comm, site, awake_us, asleep_us"""

class LastCallDict(PlaceDict):
    op: int
    ended_ns: int

class OpenWaitDict(PlaceDict):
    op: int
    peer: int
    since_ns: int
    seen_ns: int

class ThreadDict(TypedDict):
    thread_id: int
    first_ns: int
    last_ns: int
    calls: int
    calls_counted: int
    computing_s: float
    transfer_s: float
    wait_awake_s: float
    wait_asleep_s: float
    io_s: float
    wake_delay_s: float
    wake_absorbed_s: float
    sleeps: int
    wakes_by_peer: int
    wakes_sent: int
    wake_send_s: float
    sent_bytes: int
    received_bytes: int
    gaps: HistogramDict
    waits: HistogramDict
    ops: list[OpDict]
    sites: list[SiteDict]
    events: list[EventTuple]
    events_skipped: int
    last: LastCallDict | None
    open: OpenWaitDict | None

class RankDict(TypedDict):
    path: str
    family: str
    mode: str
    state: str
    end: str
    clock: str
    hook: str
    rank: int
    launch: int
    size: int
    local_rank: int
    local_size: int
    pid: int
    thread_level: int
    oversubscribed: bool
    slowdown_budget: float
    host: str
    program: str
    mpi_version: str
    start_ns: int
    last_ns: int
    cpu_user_s: float
    cpu_system_s: float
    switches_voluntary: int
    switches_involuntary: int
    threads_dropped: int
    ops: list[tuple[str, str, bool]]
    modules: list[tuple[int, str]]
    threads: list[ThreadDict]

def read_rank(path: str, max_events: int) -> RankDict: ...

class OptionDict(TypedDict):
    name: str
    type: str
    default: str
    values: str
    help: str
    internal: bool

def options() -> list[OptionDict]: ...
def check_option(name: str, text: str) -> str: ...
def test_gap_s(chosen: str, program: str) -> float: ...

class Domain:
    """One thing whose energy a meter reports."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def inside(self) -> str | None: ...

class MissingMeter:
    """A kind of meter that this machine does not offer."""

    @property
    def name(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def remedy(self) -> str: ...

class Meter:
    """One source of energy figures."""

    @property
    def name(self) -> str: ...
    @property
    def domains(self) -> list[Domain]: ...
    @property
    def measures(self) -> str: ...
    @property
    def resolution_j(self) -> float: ...
    @property
    def min_period_s(self) -> float: ...
    @property
    def max_period_s(self) -> float: ...
    def read(self) -> dict[str, float]: ...
    @property
    def off(self) -> dict[str, str]: ...
    @property
    def lost_intervals(self) -> dict[str, int]: ...
    def energy_j(self) -> float: ...

class FoundMeters:
    """Iterates over the meters."""

    @property
    def meters(self) -> list[Meter]: ...
    @property
    def missing(self) -> list[MissingMeter]: ...
    @property
    def additive(self) -> list[tuple[str, str]]: ...
    def __iter__(self) -> Iterator[Meter]: ...
    def __len__(self) -> int: ...

def find_meters(root: str | PathLike[str] = "/") -> FoundMeters: ...

class Platform:
    """A machine as the energy model sees it."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def cpu_model(self) -> str: ...
    @property
    def sockets(self) -> int: ...
    @property
    def cores_per_socket(self) -> int: ...
    @property
    def cores(self) -> int: ...
    @property
    def nominal_hz(self) -> float: ...
    @property
    def compute_w(self) -> float: ...
    @property
    def spin_w(self) -> float: ...
    @property
    def yield_w(self) -> float: ...
    @property
    def sleep_w(self) -> float: ...
    @property
    def frequencies(self) -> list[tuple[float, float, float]]: ...
    @property
    def memory_idle_w(self) -> float: ...
    @property
    def memory_active_w(self) -> float: ...
    @property
    def nic_idle_w(self) -> float: ...
    @property
    def nic_active_w(self) -> float: ...
    @property
    def base_w(self) -> float: ...
    @property
    def switch_share_w(self) -> float: ...
    @property
    def link_gbit_s(self) -> float: ...
    @property
    def link_lanes(self) -> int: ...
    @property
    def link_low_power_fraction(self) -> float: ...
    @property
    def link_react_s(self) -> float: ...
    @property
    def link_port_w(self) -> float: ...
    @property
    def sources(self) -> list[tuple[str, str]]: ...
    def assumptions(self) -> list[str]: ...

class EnergyParts(TypedDict):
    computing_j: float
    transfer_j: float
    wait_awake_j: float
    wait_asleep_j: float
    io_j: float
    unaccounted_j: float
    unused_cores_j: float
    memory_j: float
    nic_j: float
    base_j: float
    switch_share_j: float
    total_j: float

class PlatformEnergy(EnergyParts):
    all_awake: EnergyParts
    saved_j: float

def load_platform(name: str | PathLike[str], directories: Sequence[PathLike[str]] = ...) -> Platform: ...
def cpu_quota(root: str | PathLike[str] = "/") -> tuple[float | None, float | None]: ...
def generic_platform(root: str | PathLike[str] = "/") -> Platform: ...
def platform_energy(
    platform: Platform,
    ranks: Iterable[object],
    *,
    nodes: int,
    run_time_s: float,
    cores_used: int = 0,
    waits_yield: bool = False,
    together: Sequence[tuple[int, int]] = ...,
    besides_s: float = 0.0,
    in_use_s: float = 0.0,
) -> PlatformEnergy: ...

class SimError(ValueError):
    """A program that cannot be replayed: names ranks, calls and positions."""

class MachineFileError(ValueError):
    """A machine that cannot be simulated: names file and line."""

class SimCancelled(RuntimeError):
    """The simulation was stopped."""

class SimMachine:
    """A machine to simulate."""

    def set(self, key: str, value: object) -> None: ...
    def check_policy(self, options: Mapping[str, object]) -> None: ...
    def facts(self) -> dict[str, object]: ...

class SimProgram:
    """The calls of a program's ranks."""

    @property
    def ranks(self) -> int: ...
    @property
    def events(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def clock(self) -> str: ...
    @property
    def incomplete(self) -> int: ...
    @property
    def problems(self) -> list[str]: ...
    def progress(self) -> float: ...
    def stop(self) -> None: ...
    def write(self, path: str) -> None: ...

def sim_policies() -> list[tuple[str, str]]: ...
def sim_core_policies() -> list[tuple[str, str]]: ...
def published_predictor_cost() -> tuple[float, float, float]: ...
def sim_model() -> int: ...
def sim_programs() -> list[tuple[str, str]]: ...
def read_sim_machine(path: str) -> SimMachine: ...
def open_sim_trace(paths: Sequence[str]) -> SimProgram: ...
def make_sim_program(name: str, **options: object) -> SimProgram: ...
def simulate(
    machine: SimMachine,
    program: SimProgram,
    policy: str,
    options: dict[str, object],
    details: bool,
    timeline: dict[str, object] | None = None,
    threads: int = 1,
) -> dict[str, object]: ...

TraceEventTuple = tuple[
    int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int,
    Sequence[int], Sequence[int], Sequence[int], Sequence[int],
]  # fmt: skip
"""The fields of fallow.traces.model.Event, in their order."""

RunTuple = tuple[int, int, int]
"""World ranks: first, count, stride."""

class TraceFileError(ValueError):
    """A trace file that cannot be read: names file, offset and reason."""

class TraceRankDict(TypedDict):
    host: str
    events: int
    dropped: int
    left_out: int
    first_ns: int
    last_ns: int
    complete: bool

class TraceInfoDict(TypedDict):
    program: str
    mpi_version: str
    start_wall_ns: int
    clock: str
    ranks: list[TraceRankDict]
    comms: list[tuple[list[RunTuple], list[RunTuple]]]
    sites: list[tuple[int, str, str]]

class TraceStatisticsDict(TypedDict):
    events: int
    dropped: int
    first_ns: int
    last_ns: int
    mpi_ns: int
    compute_ns: int
    incomplete_ranks: int
    empty_ranks: int
    stored_bytes: int
    ops: list[tuple[str, int, int, int, int]]
    """name, calls, bytes, time_ns, wait_ns"""
    gaps: list[tuple[int, int, int, int]]
    """low_ns, high_ns (0: no limit), count, time_ns"""

def trace_ops() -> list[tuple[str, int, int, int]]:
    """(name, kind, bits, blocking form) of each operation, in order of its number."""

class TraceReader:
    """A merged trace, or the parts of one. Errors are TraceFileError."""

    def __init__(self, paths: Sequence[str]) -> None: ...
    def info(self) -> TraceInfoDict: ...
    def problems(self) -> list[str]: ...
    def batch(self, rank: int, most: int) -> list[TraceEventTuple]: ...
    def columns(self, rank: int, most: int) -> tuple[int, list[bytes], list[tuple[bytes, bytes]]]: ...
    def rewind(self, rank: int) -> None: ...
    def statistics(self) -> TraceStatisticsDict: ...
    def merge(self, out: str) -> None: ...
    def cut(self, out: str, from_ns: int, to_ns: int, ranks: Sequence[int]) -> None: ...

class TraceWriter:
    """Writes a trace as its events come; it appears under its name with finish()."""

    def __init__(self, path: str, info: Mapping[str, object]) -> None: ...
    def add(self, rank: int, events: Sequence[tuple[object, ...]]) -> None: ...
    def close_rank(self, rank: int) -> None: ...
    def end_rank(self, rank: int, dropped: int, left_out: int = ...) -> None: ...
    def finish(self) -> None: ...

class EvaluationDict(TypedDict):
    calls: int
    calls_predicted: int
    gaps: int
    gaps_predicted: int
    rests: int
    mispredictions: int
    idle_ns: int
    idle_predicted_ns: int
    low_ns: int
    oracle_low_ns: int
    delay_ns: int
    delay_worst_ns: int
    run_ns: int
    budget_worst: float
    threshold_ns: int
    searches: int
    restarts: int
    memory_bytes: int

class NodeEvaluationDict(TypedDict):
    low_ns: int
    oracle_low_ns: int
    delay_ns: int
    delay_worst_rank_ns: int
    run_ns: int
    rests: int

class GapHistogramDict(TypedDict):
    papers: list[tuple[float, float | None, int, int]]
    """low_ns, high_ns, count, time_ns"""
    bins: list[tuple[float, float | None, int, int]]

class RankStudyDict(TypedDict):
    rank: int
    gaps: GapHistogramDict
    ways: list[EvaluationDict]

class NodeStudyDict(TypedDict):
    ranks: list[int]
    ways: list[NodeEvaluationDict]

class TimelineDict(TypedDict):
    enter_ns: list[int]
    exit_ns: list[int]
    op: list[int]
    ways: list[tuple[list[int], list[int]]]
    """rest_ns and expected_ns after each call"""

PredictWay = tuple[str, Mapping[str, float]]
"""A predictor's name, and options by their name in the table, times in ns."""

class _Study:
    def __init__(self, paths: Sequence[str]) -> None: ...
    def start_ranks(self, ways: Sequence[PredictWay], ranks: Sequence[int], threads: int = 0) -> None: ...
    def start_nodes(self, ways: Sequence[PredictWay], nodes: Sequence[Sequence[int]], threads: int = 0) -> None: ...
    def start_costs(self, ways: Sequence[PredictWay], rank: int, most_calls: int) -> None: ...
    def start_timeline(self, ways: Sequence[PredictWay], rank: int, from_ns: int, most_calls: int) -> None: ...
    def wait(self, most_s: float) -> bool: ...
    def cancel(self) -> None: ...
    @property
    def progress(self) -> float: ...
    def ranks(self) -> list[RankStudyDict]: ...
    def nodes(self) -> list[NodeStudyDict]: ...
    def costs(self) -> list[tuple[float, int]]: ...
    def timeline(self) -> TimelineDict: ...

class _Predict:
    """The submodule `predict`."""

    Study: type[_Study]
    def predictors(self) -> list[tuple[str, str]]: ...
    def options(self) -> list[tuple[str, str, str, float, float, float, str]]: ...

predict: _Predict
