"""What a report holds. `fallow report --json` prints exactly these names; docs/reference/report-schema.md explains
them, and schema/report-1.schema.json checks them. Names carry their unit."""

from __future__ import annotations

from dataclasses import dataclass

SCHEMA = "fallow-report"
VERSION = 1


@dataclass(frozen=True)
class Residency:
    """How threads spent their time since their first MPI call, in seconds of core time."""

    computing_s: float
    transfer_s: float
    wait_awake_s: float
    wait_asleep_s: float
    io_s: float

    @property
    def total_s(self) -> float:
        """All of it."""
        return self.computing_s + self.mpi_s

    @property
    def mpi_s(self) -> float:
        """Inside MPI calls, file access included."""
        return self.transfer_s + self.wait_s + self.io_s

    @property
    def wait_s(self) -> float:
        """Only waiting for others."""
        return self.wait_awake_s + self.wait_asleep_s


@dataclass(frozen=True)
class Run:
    """The run as the launcher saw it."""

    directory: str
    run_id: str
    command: list[str]
    program: str
    started: str
    host: str
    run_time_s: float
    exit_status: int | None
    signal: int | None
    cpu_user_s: float | None
    cpu_system_s: float | None
    other_busy_s: float | None
    stolen_s: float | None
    throttled_s: float | None
    processor_limit: float | None
    mpi: str
    families: list[str]
    modes: list[str]
    hosts: list[str]
    options: dict[str, str]
    fallow_version: str


@dataclass(frozen=True)
class UnreadableFile:
    """A rank file that could not be read."""

    file: str
    reason: str


@dataclass(frozen=True)
class Health:
    """How complete the record is."""

    ranks_expected: int
    ranks_read: int
    ranks_unfinished: list[int]
    early: list[str]
    unreadable: list[UnreadableFile]
    events_skipped: int
    threads_dropped: int
    notes: list[str]


@dataclass(frozen=True)
class Totals:
    """Sums over all ranks and threads."""

    run_time_s: float
    ranks: int
    threads: int
    calls: int
    calls_counted: int
    core_time_s: float
    residency: Residency
    mpi_share: float
    wait_asleep_share: float
    wake_delay_s: float
    wake_delay_share: float
    wake_delay_share_worst: float
    wake_absorbed_s: float
    wake_absorbed_share: float
    wake_lasting_share_worst: float
    slowdown_budget: float
    sleeps: int
    wakes_by_peer: int
    wakes_sent: int
    wake_send_s: float
    cpu_ranks_s: float
    wait_burnt_s: float
    sent_bytes: int
    received_bytes: int


@dataclass(frozen=True)
class MeterEnergy:
    """What one domain of one meter counted while the command ran."""

    meter: str
    domain: str
    kind: str
    energy_j: float
    mean_w: float
    time_s: float
    counted: bool
    lost: str | None


@dataclass(frozen=True)
class Metered:
    """Energy from meters."""

    energy_j: float | None
    energy_delay_js: float | None
    coverage: str
    domains: list[MeterEnergy]
    measures: list[str]


@dataclass(frozen=True)
class Modelled:
    """Energy from the platform model and the measured residencies; "spinning" is the run had it never slept."""

    platform: str
    energy_j: float
    energy_spinning_j: float
    energy_delay_js: float
    cores_j: float
    cores_spinning_j: float
    power_spinning_w: float
    parts: dict[str, float]
    assumptions: list[str]


@dataclass(frozen=True)
class Energy:
    """The two kinds, which never mix."""

    metered: Metered | None
    modelled: Modelled | None


@dataclass(frozen=True)
class Place:
    """Where a call was made; both are empty where that is not known."""

    symbol: str = ""
    source: str = ""


@dataclass(frozen=True)
class OpenWait:
    """The wait in which the record of a rank ends that was killed, or that still runs."""

    function: str
    peer: int
    since_s: float
    seen_s: float
    comm_size: int
    place: Place


@dataclass(frozen=True)
class LastCall:
    """The last call that is over in the record of such a rank."""

    function: str
    ended_s: float
    place: Place


@dataclass(frozen=True)
class RankReport:
    """One rank."""

    rank: int
    program: int
    label: str
    host: str
    pid: int
    family: str
    mode: str
    hook: str
    end: str
    is_written: bool
    last_state: str
    open_wait: OpenWait | None
    last_call: LastCall | None
    threads: int
    calls: int
    core_time_s: float
    residency: Residency
    mpi_share: float
    wake_delay_s: float
    wake_delay_share: float
    wake_absorbed_s: float
    wake_lasting_share: float
    sleeps: int
    cpu_user_s: float
    cpu_system_s: float
    switches_voluntary: int
    switches_involuntary: int
    sent_bytes: int
    received_bytes: int


@dataclass(frozen=True)
class FunctionReport:
    """One MPI function, all ranks."""

    function: str
    kind: str
    calls: int
    time_s: float
    size_bytes: int
    wait_awake_s: float
    wait_asleep_s: float
    wake_delay_s: float


@dataclass(frozen=True)
class SiteReport:
    """One call site on one communicator, all ranks."""

    function: str
    symbol: str
    source: str
    module: str
    offset: int
    comm: int
    comm_size: int
    ranks: int
    calls: int
    time_s: float
    size_bytes: int
    gap_s: float
    wait_awake_s: float
    wait_asleep_s: float
    wait_max_s: float
    wake_delay_s: float
    sleeps: int


@dataclass(frozen=True)
class Bin:
    """Durations in [low_s, high_s); high_s is null in the last bin."""

    low_s: float
    high_s: float | None
    count: int
    time_s: float
    count_share: float
    time_share: float


@dataclass(frozen=True)
class HistogramReport:
    """Durations by size: in the bins of the papers, and in powers of two."""

    papers: list[Bin]
    log2: list[Bin]
    none_count: int


@dataclass(frozen=True)
class TimelineRow:
    """The last calls of one thread: [enter_ns, duration_ns, function, awake_us, asleep_us, peer, size_bytes]."""

    rank: int
    label: str
    thread: int
    end: str
    calls: int
    events: list[list[int]]


@dataclass(frozen=True)
class Timeline:
    """The last calls of every thread; times count from `origin_ns` (since the epoch)."""

    origin_ns: int
    functions: list[str]
    kinds: list[str]
    rows: list[TimelineRow]


@dataclass(frozen=True)
class Report:
    """Everything."""

    schema: str
    version: int
    run: Run
    health: Health
    totals: Totals
    energy: Energy
    ranks: list[RankReport]
    functions: list[FunctionReport]
    sites: list[SiteReport]
    sites_left_out: int
    gaps: HistogramReport
    waits: HistogramReport
    timeline: Timeline
