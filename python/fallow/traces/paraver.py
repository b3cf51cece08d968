"""Paraver traces: .prv with its .pcf (names) and .row (labels).

Calls are events of Extrae's types, messages are communication records; what those cannot say stands in events of
types of our own, so that a trace read back is the same. Traces of other tools are read by the names in their .pcf.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from fallow import files
from fallow.traces import model, others, persistent
from fallow.traces.model import FIRST_COMM, Event, Info, Source
from fallow.traces.text import Losses, line_of, sides_text, site_text

P2P, COLLECTIVE, OTHER, RMA, IO = (50000001 + i for i in range(5))
MPI_TYPES = (P2P, COLLECTIVE, OTHER, RMA, IO)
_TYPE_NAMES = ("MPI Point-to-point", "MPI Collective Comm", "MPI Other", "MPI One-sided", "MPI I/O")
SEND_SIZE, RECV_SIZE, ROOT, COMM = (50100001 + i for i in range(4))
# Extrae's numbers of the calls that Paraver's own configurations know; others get theirs from 1000 on.
_VALUES = {
    "MPI_Send": 1, "MPI_Recv": 2, "MPI_Isend": 3, "MPI_Irecv": 4, "MPI_Wait": 5, "MPI_Waitall": 6, "MPI_Bcast": 7,
    "MPI_Barrier": 8, "MPI_Reduce": 9, "MPI_Allreduce": 10, "MPI_Alltoall": 11, "MPI_Alltoallv": 12, "MPI_Gather": 13,
    "MPI_Gatherv": 14, "MPI_Scatter": 15, "MPI_Scatterv": 16, "MPI_Allgather": 17, "MPI_Allgatherv": 18,
    "MPI_Init": 31, "MPI_Finalize": 32,
}  # fmt: skip
OWN = 51400000  # field number i of Event is type OWN + i
SITE = OWN + Event._fields.index("site")
COMM_SIDES = OWN + Event._fields.index("comm")
RUN = OWN + 100
"""A type without events, whose values have the names of the run."""
PROGRAM, MPI_LIBRARY = 1, 2
SHIFTED = {"peer", "tag", "recv_peer", "recv_tag", "root"}  # may be negative
SHIFT = 8
SCALARS = (
    "flags",
    "comm",
    "site",
    "peer",
    "tag",
    "recv_peer",
    "recv_tag",
    "root",
    "size_bytes",
    "recv_bytes",
    "wait_ns",
)
_DEFAULTS = Event()
_OWN_TYPES = [(at, OWN + at, name) for at, name in enumerate(Event._fields)]
_FIELDS = tuple((at, own, SHIFT if name in SHIFTED else 0) for at, own, name in _OWN_TYPES if name in SCALARS)
_LISTS = tuple((at, own) for at, own, name in _OWN_TYPES if name in model.LISTS)
_COMPUTE = OWN + Event._fields.index("compute_ns")
_STATES = (
    "Idle", "Running", "Not created", "Waiting a message", "Blocking Send", "Synchronization", "Test/Probe",
    "Scheduling and Fork/Join", "Wait/WaitAll", "Blocked", "Immediate Send", "Immediate Receive", "I/O",
    "Group Communication", "Tracing Disabled", "Others", "Send Receive", "Memory transfer", "Profiling",
    "On-line analysis", "Remote memory access", "Atomic memory operation", "Core at rest", "Core slowed down",
    "Link at rest", "Link changing width",
)  # fmt: skip
CORE_AT_REST, CORE_SLOWED, LINK_AT_REST, LINK_CHANGING = 22, 23, 24, 25
_STATE_OF_KIND = {0: 15, 1: 4, 2: 3, 3: 10, 4: 8, 5: 6, 6: 6, 7: 13, 8: 20, 9: 20, 10: 12, 11: 15}


class RestState(NamedTuple):
    """A state of a rank's core or link, drawn in a row of its own."""

    rank: int
    row: str  # "core" or "link"
    begin_ns: int
    end_ns: int
    state: int


# --- writing


def value_of(op: model.Op) -> int:
    """Event value of a call."""
    return _VALUES.get(op.name, 1000 + op.number)


def type_of(op: model.Op) -> int:
    """Event type of a call."""
    if op.has(model.COLLECTIVE) and op.kind in (3, 7):
        return COLLECTIVE
    return {1: P2P, 2: P2P, 3: P2P, 4: P2P, 5: P2P, 6: P2P, 8: RMA, 9: RMA, 10: IO}.get(op.kind, OTHER)


Record = tuple[int, int, str]
"""Time, place among records of one instant, line."""


def _call_records(place: str, e: Event, told: others.Told, last_exit: int, turn: int) -> Iterator[Record]:
    op, shown = model.ops()[e.op], _DEFAULTS
    fields: Sequence[Any] = e
    if e.enter_ns > last_exit:
        yield last_exit, turn, f"1:{place}:{last_exit}:{e.enter_ns}:1"
    yield e.enter_ns, turn + 1, f"1:{place}:{e.enter_ns}:{e.exit_ns}:{_STATE_OF_KIND.get(op.kind, 15)}"
    kind = type_of(op)
    pairs = [(kind, value_of(op))]
    if kind == COLLECTIVE:
        given, got, root = told
        pairs += [(SEND_SIZE, given), (RECV_SIZE, got), *[(ROOT, 1)] * root, (COMM, e.comm)]
        shown = _DEFAULTS._replace(size_bytes=given, recv_bytes=got)
    pairs += [(own, fields[at] + shift) for at, own, shift in _FIELDS if fields[at] != shown[at]]
    if e.flags & model.CPU_TIME:
        pairs.append((_COMPUTE, e.compute_ns))
    for at, own in _LISTS:
        if fields[at]:
            pairs += [(own, v) for v in fields[at]]
    yield e.enter_ns, turn + 2, f"2:{place}:{e.enter_ns}:" + ":".join([f"{t}:{v}" for t, v in pairs])
    yield e.exit_ns, turn + 3, f"2:{place}:{e.exit_ns}:{kind}:0"


def _rank_records(source: Source, rank: int, cpu: int, threads: int) -> Iterator[Record]:
    last: dict[int, int] = {}
    waiting: list[Record] = []  # records of the exits of calls, until what comes before them is out
    for number, e in enumerate(source.events(rank)):
        place, told = f"{cpu}:1:{rank + 1}:{e.thread + 1}", others.told(source.info, rank, e)
        records = _call_records(place, e, told, last.get(e.thread, e.enter_ns), 4 * number)
        last[e.thread] = e.exit_ns
        if threads == 1:
            yield from records
            continue
        for record in records:
            heapq.heappush(waiting, record)
        # No later event has a record before its thread's last exit.
        safe = min(last.values())
        while waiting and waiting[0][0] < safe:
            yield heapq.heappop(waiting)
    while waiting:
        yield heapq.heappop(waiting)


Key = tuple[int, int, int, int]
"""Of a message: source, destination, communicator, tag."""


@dataclass(slots=True)
class _Received:
    """A receive, in the order of posting. Once it is complete: `end_ns` and, where it is known who sent, `key`."""

    thread: int
    begin_ns: int
    key: Key | None = None
    end_ns: int = -1


class _Messages:
    """Matches sends and receives in order, as MPI does."""

    def __init__(self, source: Source, losses: Losses) -> None:
        self.info = source.info
        self.cpus = _cpus(source.info)
        self.sends: dict[Key, deque[tuple[int, int, int]]] = defaultdict(deque)  # thread, begin, bytes
        self.records: list[Record] = []
        receives: list[_Received] = []
        for rank in range(source.info.size):
            receives += self._scan(source, rank)
        for received in receives:
            if received.end_ns < 0:
                continue  # cancelled, or never complete
            if received.key is None:
                losses.add("receives from any source, of which the trace does not tell who sent, as messages")
            elif queue := self.sends.get(received.key):
                self._record(received.key, queue.popleft(), received)
            else:
                losses.add("receives whose message was not found, as messages")
        self.records.sort()

    def _scan(self, source: Source, rank: int) -> list[_Received]:
        found: list[_Received] = []
        waiting: dict[int, tuple[_Received, Event]] = {}
        for e in persistent.unfolded(source.events(rank)):
            op = model.ops()[e.op]
            for request, outcome in persistent.outcomes(e):
                if (begun := waiting.pop(request, None)) is not None:
                    self._end(rank, begun[0], persistent.with_outcome(begun[1], *outcome), e.exit_ns)
            if op.kind not in (1, 2, 3) or not op.has(model.STARTS) or op.has(model.COLLECTIVE):
                continue
            if op.has(model.SENDS) and e.peer >= 0:
                to = self.info.world_rank(e.comm, rank, e.peer)
                self.sends[rank, to, e.comm, e.tag].append((e.thread, e.enter_ns, e.size_bytes))
            if op.has(model.RECEIVES):
                found.append(_Received(e.thread, e.enter_ns))
                if op.has(model.CREATES) and e.requests:
                    waiting[e.requests[0]] = (found[-1], e)
                else:
                    self._end(rank, found[-1], e, e.exit_ns)
        return found

    def _end(self, rank: int, received: _Received, e: Event, end_ns: int) -> None:
        """`e`: as it would have been called, had the program known who sends."""
        both = model.ops()[e.op].has(model.SENDS)
        peer, tag = (e.recv_peer, e.recv_tag) if both else (e.peer, e.tag)
        if peer in (model.NULL_PEER, model.NO_PEER):
            return
        received.end_ns = end_ns
        if peer >= 0:
            received.key = (self.info.world_rank(e.comm, rank, peer), rank, e.comm, tag)

    def _record(self, key: Key, sent: tuple[int, int, int], received: _Received) -> None:
        source, to, _, tag = key
        thread, begin, size = sent
        place = f"{self.cpus[source]}:1:{source + 1}:{thread + 1}:{begin}:{begin}"
        row = f"{self.cpus[to]}:1:{to + 1}:{received.thread + 1}"
        end = f"{row}:{received.begin_ns}:{max(received.end_ns, begin)}"
        self.records.append((begin, 3, f"3:{place}:{end}:{size}:{max(tag, 0)}"))


def _nodes(info: Info) -> dict[str, list[int]]:
    """Names of nodes and the ranks on each, in the order of their first ranks."""
    nodes: dict[str, list[int]] = {}
    for rank in range(info.size):
        name = info.hosts[rank] if rank < len(info.hosts) else ""
        nodes.setdefault(name or "node", []).append(rank)
    return nodes


def _cpus(info: Info) -> list[int]:
    """The processor of each rank: Paraver numbers them from 1 on, node by node, as many on each as it has ranks."""
    cpus = [0] * info.size
    for cpu, rank in enumerate((rank for ranks in _nodes(info).values() for rank in ranks), 1):
        cpus[rank] = cpu
    return cpus


def _header(info: Info, end: int, threads: Sequence[int]) -> str:
    found = _nodes(info)
    node_of = {rank: number for number, ranks in enumerate(found.values(), 1) for rank in ranks}
    nodes = f"{len(found)}({','.join(str(len(ranks)) for ranks in found.values())})"
    tasks = ",".join(f"{n}:{node_of[rank]}" for rank, n in enumerate(threads))
    comms = 1 + len(info.comms)  # lines that follow: Paraver takes so many, and refuses what is no communicator
    return f"#Paraver (01/01/2000 at 00:00):{end}_ns:{nodes}:1:{info.size}({tasks}),{comms}"


def write(source: Source, path: Path, losses: Losses, states: Iterable[RestState] = ()) -> None:
    """Writes `path` and, beside it, .pcf and .row. `states`: what cores and links did, in rows of their own."""
    files.expect_room_beside(path)
    info = source.info
    rests = sorted(states, key=lambda s: s.begin_ns)
    end, threads, used = 0, [1] * info.size, set()
    for rank in range(info.size):
        for e in source.events(rank):
            end = max(end, e.exit_ns)
            threads[rank] = max(threads[rank], e.thread + 1)
            used.add(e.op)
    calls = list(threads)
    if rests:
        threads = [n + 2 for n in threads]
        end = max(end, *(s.end_ns for s in rests))
    with path.open("w", encoding="ascii", newline="\n") as file:
        file.write(_header(info, end, threads) + "\n")
        file.write(f"c:1:1:{info.size}:" + ":".join(str(r + 1) for r in range(info.size)) + "\n")
        for number in range(FIRST_COMM, FIRST_COMM + len(info.comms)):
            members = info.everyone(number)  # of an intercommunicator both groups: the .pcf says which is which
            file.write(f"c:1:{number}:{len(members)}:" + ":".join(str(r + 1) for r in members) + "\n")
        cpus = _cpus(info)
        rows = (_rest_record(s, cpus[s.rank], calls[s.rank]) for s in rests)
        streams = [_rank_records(source, rank, cpus[rank], calls[rank]) for rank in range(info.size)]
        for _, _, line in heapq.merge(*streams, iter(_Messages(source, losses).records), rows):
            file.write(line + "\n")
    _write_pcf(path.with_suffix(".pcf"), used, info)
    _write_row(path.with_suffix(".row"), info, calls, with_rests=bool(rests))


def _rest_record(s: RestState, cpu: int, threads: int) -> Record:
    """Rows of core and link stand behind those of the rank's threads."""
    thread = threads + (1 if s.row == "core" else 2)
    return s.begin_ns, 1, f"1:{cpu}:1:{s.rank + 1}:{thread}:{s.begin_ns}:{s.end_ns}:{s.state}"


def _write_pcf(path: Path, used: set[int], info: Info) -> None:
    out = ["DEFAULT_OPTIONS", "", "LEVEL               THREAD", "UNITS               NANOSEC", "", "STATES"]
    out += [f"{i}    {name}" for i, name in enumerate(_STATES)]
    for kind, title in zip(MPI_TYPES, _TYPE_NAMES, strict=True):
        values = [(value_of(op), op.name) for op in model.ops() if op.number in used and type_of(op) == kind]
        out += [
            "",
            "EVENT_TYPE",
            f"9    {kind}    {title}",
            "VALUES",
            "0    End",
            *(f"{v}    {n}" for v, n in sorted(values)),
        ]
    out += ["", "EVENT_TYPE"]
    out += [
        f"1    {t}    {n}"
        for t, n in (
            (SEND_SIZE, "Send Size in MPI Global OP"),
            (RECV_SIZE, "Recv Size in MPI Global OP"),
            (ROOT, "Root in MPI Global OP"),
            (COMM, "Communicator in MPI Global OP"),
        )
    ]
    plain = [(OWN + i, name) for i, name in enumerate(Event._fields) if OWN + i not in (SITE, COMM_SIDES)]
    out += ["", "EVENT_TYPE", *(f"9    {kind}    Fallow {name}" for kind, name in plain)]
    sides = [f"{number}    {sides_text(*comm)}" for number, comm in enumerate(info.comms, FIRST_COMM) if comm[1]]
    out += ["", "EVENT_TYPE", f"9    {COMM_SIDES}    Fallow comm", *(["VALUES", *sides] if sides else [])]
    named = [f"{number}    {site_text(site)}" for number, site in enumerate(info.sites, 1)]
    out += ["", "EVENT_TYPE", f"9    {SITE}    Fallow site", *(["VALUES", *named] if named else [])]
    said = ((PROGRAM, info.program), (MPI_LIBRARY, info.mpi_version))
    names = [f"{value}    {line_of(text)}" for value, text in said if text]
    out += ["", "EVENT_TYPE", f"9    {RUN}    Fallow run", "VALUES", *names] if names else []
    path.write_text("\n".join(out) + "\n", encoding="utf-8")


def _write_row(path: Path, info: Info, threads: Sequence[int], *, with_rests: bool) -> None:
    names = []
    for rank, n in enumerate(threads):
        names += [f"THREAD 1.{rank + 1}.{t + 1}" for t in range(n)]
        names += [f"CORE 1.{rank + 1}", f"LINK 1.{rank + 1}"] if with_rests else []
    nodes = _nodes(info)
    cpus = [f"CPU {n}.{i + 1}" for n, ranks in enumerate(nodes.values(), 1) for i in range(len(ranks))]
    out = [
        f"LEVEL CPU SIZE {info.size}",
        *cpus,
        "",
        f"LEVEL NODE SIZE {len(nodes)}",
        *("".join(c if c.isprintable() else "?" for c in name) for name in nodes),
        "",
        f"LEVEL THREAD SIZE {len(names)}",
        *names,
    ]
    path.write_text("\n".join(out) + "\n", encoding="utf-8")
