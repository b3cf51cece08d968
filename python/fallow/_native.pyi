"""What the extension module offers. Parts whose library was not built are absent at run time."""

from typing import TypedDict

__version__: str

class RankFileError(ValueError):
    """A rank file that cannot be read: names file, offset and reason."""

class HistogramDict(TypedDict):
    count: list[int]
    time_s: list[float]

class OpDict(TypedDict):
    op: int
    calls: int
    time_s: float
    size_bytes: int
    wait_awake_s: float
    wait_asleep_s: float
    wake_delay_s: float

class SiteDict(TypedDict):
    slot: int
    address: int
    op: int
    comm: int
    comm_size: int
    module: int
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

class ThreadDict(TypedDict):
    thread_id: int
    first_ns: int
    last_ns: int
    calls: int
    computing_s: float
    transfer_s: float
    wait_awake_s: float
    wait_asleep_s: float
    io_s: float
    wake_delay_s: float
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

class RankDict(TypedDict):
    path: str
    family: str
    mode: str
    state: str
    end: str
    clock: str
    hook: str
    rank: int
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
