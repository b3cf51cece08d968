"""Paraver traces: .prv with its .pcf (names) and .row (labels).

Calls are events of Extrae's types, messages are communication records; what those cannot say stands in events of
types of our own, so that a trace read back is the same. Traces of other tools are read by the names in their .pcf.
"""

from __future__ import annotations

import heapq
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from fallow.errors import UserError
from fallow.traces import model
from fallow.traces.model import COMM_WORLD, FIRST_COMM, Event, Info, MemorySource, Source
from fallow.traces.text import FormatError, Losses, read_lines, whole

P2P, COLLECTIVE, OTHER, RMA, IO = (50000001 + i for i in range(5))
_MPI_TYPES = (P2P, COLLECTIVE, OTHER, RMA, IO)
_TYPE_NAMES = ("MPI Point-to-point", "MPI Collective Comm", "MPI Other", "MPI One-sided", "MPI I/O")
_SEND_SIZE, _RECV_SIZE, _ROOT, _COMM = (50100001 + i for i in range(4))
# Extrae's numbers of the calls that Paraver's own configurations know; others get theirs from 1000 on.
_VALUES = {
    "MPI_Send": 1, "MPI_Recv": 2, "MPI_Isend": 3, "MPI_Irecv": 4, "MPI_Wait": 5, "MPI_Waitall": 6, "MPI_Bcast": 7,
    "MPI_Barrier": 8, "MPI_Reduce": 9, "MPI_Allreduce": 10, "MPI_Alltoall": 11, "MPI_Alltoallv": 12, "MPI_Gather": 13,
    "MPI_Gatherv": 14, "MPI_Scatter": 15, "MPI_Scatterv": 16, "MPI_Allgather": 17, "MPI_Allgatherv": 18,
    "MPI_Init": 31, "MPI_Finalize": 32,
}  # fmt: skip
_OWN = 51400000  # field number i of Event is type _OWN + i
_SHIFTED = {"peer", "tag", "recv_peer", "recv_tag", "root"}  # may be negative
_SHIFT = 8
_SCALARS = ("flags", "comm", "site", "peer", "tag", "recv_peer", "recv_tag", "root", "size_bytes", "recv_bytes", "wait_ns")
_LISTS = ("counts", "recv_counts", "requests", "completed")
_DEFAULTS = Event()
_STATES = (
    "Idle", "Running", "Not created", "Waiting a message", "Blocking Send", "Synchronization", "Test/Probe",
    "Scheduling and Fork/Join", "Wait/WaitAll", "Blocked", "Immediate Send", "Immediate Receive", "I/O",
    "Group Communication", "Tracing Disabled", "Others", "Send Receive", "Memory transfer", "Profiling", "On-line analysis",
    "Remote memory access", "Atomic memory operation", "Core at rest", "Core slowed down", "Link at rest", "Link waking",
)  # fmt: skip
CORE_AT_REST, CORE_SLOWED, LINK_AT_REST, LINK_WAKING = 22, 23, 24, 25
_STATE_OF_KIND = {0: 15, 1: 4, 2: 3, 3: 10, 4: 8, 5: 6, 6: 6, 7: 13, 8: 20, 9: 20, 10: 12, 11: 15}
_MAX_RANKS = 1 << 21


class RestState(NamedTuple):
    """A state of a rank's core or link, drawn in a row of its own."""

    rank: int
    row: str  # "core" or "link"
    begin_ns: int
    end_ns: int
    state: int


# --- writing


def _value(op: model.Op) -> int:
    return _VALUES.get(op.name, 1000 + op.number)


def _type_of(op: model.Op) -> int:
    if op.has(model.COLLECTIVE) and op.kind in (3, 7):
        return COLLECTIVE
    return {1: P2P, 2: P2P, 3: P2P, 4: P2P, 5: P2P, 6: P2P, 8: RMA, 9: RMA, 10: IO}.get(op.kind, OTHER)


Record = tuple[int, int, str]
"""Time, place among records of one instant, line."""


def _call_records(rank: int, e: Event, last_exit: int, turn: int) -> Iterator[Record]:
    op = model.ops()[e.op]
    place = f"{rank + 1}:1:{rank + 1}:{e.thread + 1}"
    if e.enter_ns > last_exit:
        yield last_exit, turn, f"1:{place}:{last_exit}:{e.enter_ns}:1"
    yield e.enter_ns, turn + 1, f"1:{place}:{e.enter_ns}:{e.exit_ns}:{_STATE_OF_KIND.get(op.kind, 15)}"
    kind = _type_of(op)
    pairs = [(kind, _value(op))]
    if kind == COLLECTIVE:
        pairs += [(_SEND_SIZE, e.size_bytes), (_RECV_SIZE, e.recv_bytes), (_COMM, e.comm)]
    for name in _SCALARS:
        value = getattr(e, name)
        if value != getattr(_DEFAULTS, name):
            pairs.append((_OWN + Event._fields.index(name), value + _SHIFT if name in _SHIFTED else value))
    if e.flags & model.CPU_TIME:
        pairs.append((_OWN + Event._fields.index("compute_ns"), e.compute_ns))
    for name in _LISTS:
        pairs += [(_OWN + Event._fields.index(name), v) for v in getattr(e, name)]
    yield e.enter_ns, turn + 2, f"2:{place}:{e.enter_ns}:" + ":".join(f"{t}:{v}" for t, v in pairs)
    yield e.exit_ns, turn + 3, f"2:{place}:{e.exit_ns}:{kind}:0"


def _rank_records(source: Source, rank: int) -> Iterator[Record]:
    last: dict[int, int] = {}
    waiting: list[Record] = []  # records of the exits of calls, until what comes before them is out
    for number, e in enumerate(source.events(rank)):
        for record in _call_records(rank, e, last.get(e.thread, e.enter_ns), 4 * number):
            heapq.heappush(waiting, record)
        last[e.thread] = e.exit_ns
        # No later event has a record before its thread's last exit.
        safe = min(last.values())
        while waiting and waiting[0][0] < safe:
            yield heapq.heappop(waiting)
    while waiting:
        yield heapq.heappop(waiting)


class _Messages:
    """Matches sends and receives in order, as MPI does."""

    def __init__(self, source: Source, losses: Losses) -> None:
        self.info = source.info
        self.sends: dict[tuple[int, int, int, int], deque[tuple[int, int, int, int]]] = defaultdict(deque)
        self.records: list[Record] = []
        receives: list[tuple[tuple[int, int, int, int], tuple[int, int, int]]] = []
        for rank in range(source.info.size):
            receives += self._scan(source, rank)
        for key, received in receives:
            queue = self.sends.get(key)
            if not queue:
                losses.add("receives whose message was not found, as messages")
                continue
            self._record(key, queue.popleft(), received)
        self.records.sort()

    def _scan(self, source: Source, rank: int) -> Iterator[tuple[tuple[int, int, int, int], tuple[int, int, int]]]:
        open_receives: dict[int, tuple[tuple[int, int, int, int], int, int]] = {}
        for e in source.events(rank):
            op = model.ops()[e.op]
            for r in e.completed:
                if (found := open_receives.pop(r, None)) is not None:
                    yield found[0], (found[1], found[2], e.exit_ns)
            if op.kind not in (1, 2, 3) or not op.has(model.STARTS) or op.has(model.COLLECTIVE):
                continue
            if op.has(model.SENDS) and e.peer >= 0:
                to = self.info.world_rank(e.comm, rank, e.peer)
                self.sends[rank, to, e.comm, e.tag].append((e.thread, e.enter_ns, e.exit_ns, e.size_bytes))
            if op.has(model.RECEIVES):
                both = op.has(model.SENDS)
                peer, tag = (e.recv_peer, e.recv_tag) if both else (e.peer, e.tag)
                if peer < 0:
                    continue
                key = (self.info.world_rank(e.comm, rank, peer), rank, e.comm, tag)
                if op.has(model.CREATES) and e.requests:
                    open_receives[e.requests[0]] = (key, e.thread, e.enter_ns)
                else:
                    yield key, (e.thread, e.enter_ns, e.exit_ns)

    def _record(self, key: tuple[int, int, int, int], sent: tuple[int, int, int, int], received: tuple[int, int, int]) -> None:
        source, to, _, tag = key
        thread, begin, _, size = sent
        place = f"{source + 1}:1:{source + 1}:{thread + 1}:{begin}:{begin}"
        end = f"{to + 1}:1:{to + 1}:{received[0] + 1}:{received[1]}:{max(received[2], begin)}"
        self.records.append((begin, 3, f"3:{place}:{end}:{size}:{max(tag, 0)}"))


def _header(info: Info, end: int, threads: Sequence[int]) -> str:
    nodes = f"1({info.size})"
    tasks = ",".join(f"{n}:1" for n in threads)
    comms = 2 + len(info.comms)
    return f"#Paraver (01/01/2000 at 00:00):{end}_ns:{nodes}:1:{info.size}({tasks}),{comms}"


def write(source: Source, path: Path, losses: Losses, states: Iterable[RestState] = ()) -> None:
    """Writes `path` and, beside it, .pcf and .row. `states`: what cores and links did, in rows of their own."""
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
            if info.comms[number - FIRST_COMM][1]:
                losses.add("intercommunicators (the local group is written)")
            members = info.members(number, -1)
            file.write(f"c:1:{number}:{len(members)}:" + ":".join(str(r + 1) for r in members) + "\n")
        rows = (
            (s.begin_ns, 1, f"1:{s.rank + 1}:1:{s.rank + 1}:{calls[s.rank] + (1 if s.row == 'core' else 2)}:{s.begin_ns}:{s.end_ns}:{s.state}")
            for s in rests
        )
        streams = [_rank_records(source, rank) for rank in range(info.size)]
        for _, _, line in heapq.merge(*streams, iter(_Messages(source, losses).records), rows):
            file.write(line + "\n")
    _write_pcf(path.with_suffix(".pcf"), used)
    _write_row(path.with_suffix(".row"), info, calls, with_rests=bool(rests))
    if info.sites:
        losses.add("the names of call sites (their numbers are written)")


def _write_pcf(path: Path, used: set[int]) -> None:
    out = ["DEFAULT_OPTIONS", "", "LEVEL               THREAD", "UNITS               NANOSEC", "", "STATES"]
    out += [f"{i}    {name}" for i, name in enumerate(_STATES)]
    for kind, title in zip(_MPI_TYPES, _TYPE_NAMES, strict=True):
        values = [(_value(op), op.name) for op in model.ops() if op.number in used and _type_of(op) == kind]
        out += ["", "EVENT_TYPE", f"9    {kind}    {title}", "VALUES", "0    End", *(f"{v}    {n}" for v, n in sorted(values))]
    out += ["", "EVENT_TYPE"]
    out += [f"1    {t}    {n}" for t, n in ((_SEND_SIZE, "Send Size in MPI Global OP"), (_RECV_SIZE, "Recv Size in MPI Global OP"), (_ROOT, "Root in MPI Global OP"), (_COMM, "Communicator in MPI Global OP"))]
    out += ["", "EVENT_TYPE", *(f"9    {_OWN + i}    Fallow {name}" for i, name in enumerate(Event._fields))]
    path.write_text("\n".join(out) + "\n", encoding="ascii")


def _write_row(path: Path, info: Info, threads: Sequence[int], *, with_rests: bool) -> None:
    names = []
    for rank, n in enumerate(threads):
        names += [f"THREAD 1.{rank + 1}.{t + 1}" for t in range(n)]
        names += [f"CORE 1.{rank + 1}", f"LINK 1.{rank + 1}"] if with_rests else []
    cpus = [f"CPU 1.{rank + 1}" for rank in range(info.size)]
    host = (info.hosts or [""])[0] or "node"
    out = [f"LEVEL CPU SIZE {info.size}", *cpus, "", "LEVEL NODE SIZE 1", host, "", f"LEVEL THREAD SIZE {len(names)}", *names]
    path.write_text("\n".join(out) + "\n", encoding="utf-8")


# --- reading

_HEADER = re.compile(r"#Paraver \([^)]*\):(\d+)(?:_ns)?:(\d+(?:\([\d,]*\))?):(\d+):(\d+)\(([\d:,]*)\)(?:,(\d+))?$")


@dataclass
class _Open:
    """A call whose end was not read yet."""

    name: str
    fields: dict[str, object]
    enter_ns: int


class _Reader:
    def __init__(self, line: str, names: dict[tuple[int, int], str]) -> None:
        found = _HEADER.match(line)
        if found is None:
            raise ValueError("not the header of a Paraver trace of one application")
        if found[3] != "1":
            raise ValueError("traces of several applications cannot be read")
        self.end_ns = whole(found[1])
        self.ranks = whole(found[4], 1, _MAX_RANKS)
        if len(found[5].split(",")) != self.ranks:
            raise ValueError(f"{self.ranks} tasks, but threads of {len(found[5].split(','))}")
        self.names = names
        self.source = MemorySource(Info(size=self.ranks))
        self.open: dict[tuple[int, int], _Open] = {}
        self.comms: dict[int, int] = {}
        self.last_exit: dict[tuple[int, int], int] = {}
        self.messages: list[tuple[int, int, int, int, int, int, int, int]] = []
        self.own = False

    def comm_line(self, f: list[str]) -> None:
        number, count = whole(f[2]), whole(f[3], 1, self.ranks)
        members = [whole(x, 1, self.ranks) - 1 for x in f[4:]]
        if len(members) != count or len(set(members)) != count:
            raise ValueError(f"communicator {number} does not have {count} tasks")
        if members == list(range(self.ranks)) and COMM_WORLD not in self.comms.values():
            self.comms[number] = COMM_WORLD
            return
        self.source.info.comms.append((model.runs_of(members), []))
        self.comms[number] = FIRST_COMM + len(self.source.info.comms) - 1

    def place(self, f: list[str], at: int) -> tuple[int, int]:
        if whole(f[at]) != 1:
            raise ValueError("traces of several applications cannot be read")
        return whole(f[at + 1], 1, self.ranks) - 1, whole(f[at + 2], 1, 65535) - 1

    def record(self, line: str) -> None:
        f = line.split(":")
        if f[0] == "2":
            self.events(f)
        elif f[0] == "3":
            self.message(f)
        elif f[0] == "c":
            self.comm_line(f)
        elif f[0] not in ("1", "4") and not f[0].startswith("#"):
            raise ValueError(f"unknown record {f[0]!r}")

    def events(self, f: list[str]) -> None:
        who, time = self.place(f, 2), whole(f[5])
        if len(f) < 8 or len(f) % 2 != 0:
            raise ValueError("an event lacks its value")
        pairs = [(whole(t), whole(v)) for t, v in zip(f[6::2], f[7::2], strict=True)]
        calls = [(t, v) for t, v in pairs if t in _MPI_TYPES]
        for kind, value in calls:
            if value == 0:
                self.close(who, time)
            else:
                self.close(who, time)  # a call inside another: the outer one ends here
                self.open[who] = _Open(self.names.get((kind, value), ""), {}, time)
        if calls and who in self.open:
            self.fields(self.open[who], pairs)

    def fields(self, call: _Open, pairs: list[tuple[int, int]]) -> None:
        for kind, value in pairs:
            if _OWN <= kind < _OWN + len(Event._fields):
                self.own = True
                name = Event._fields[kind - _OWN]
                if name in _LISTS:
                    call.fields[name] = (*call.fields.get(name, ()), value)  # type: ignore[misc]
                elif name == "comm":
                    call.fields[name] = self.comms.get(value, value if value <= model.COMM_SELF else 0)
                elif name in _SCALARS or name == "compute_ns":
                    call.fields[name] = value - _SHIFT if name in _SHIFTED else value
            elif kind == _SEND_SIZE:
                call.fields.setdefault("size_bytes", value)
            elif kind == _RECV_SIZE:
                call.fields.setdefault("recv_bytes", value)
            elif kind == _COMM:
                call.fields.setdefault("comm", self.comms.get(value, COMM_WORLD if value == 1 else 0))

    def close(self, who: tuple[int, int], time: int) -> None:
        call = self.open.pop(who, None)
        if call is None:
            return
        if time < call.enter_ns:
            raise ValueError("a call ends before it begins")
        rank, thread = who
        last = self.last_exit.get(who, call.enter_ns)
        fields = {"compute_ns": max(call.enter_ns - last, 0)} | call.fields
        event = Event(op=model.op_number(call.name), thread=thread, enter_ns=call.enter_ns, exit_ns=time)
        self.source.lists[rank].append(event._replace(site=0)._replace(**{k: v for k, v in fields.items() if k != "site"}))  # type: ignore[arg-type]
        self.last_exit[who] = time

    def message(self, f: list[str]) -> None:
        (source, s_thread), (to, t_thread) = self.place(f, 2), self.place(f, 8)
        sent, received, arrived = whole(f[5]), whole(f[11]), whole(f[12])
        size, tag = whole(f[13]), whole(f[14], 0, 2**31 - 1)
        self.messages.append((source, s_thread, sent, to, t_thread, received if received <= arrived else arrived, size, tag))

    def finish(self) -> MemorySource:
        for who in list(self.open):
            self.close(who, max(self.end_ns, self.open[who].enter_ns))
        for events in self.source.lists:
            events.sort(key=lambda e: e.enter_ns)
        if not self.own:
            self.use_messages()
        return self.source

    def use_messages(self) -> None:
        """Traces of other tools: partner, tag and size stand in the communication records."""
        places = [{(e.thread, e.enter_ns): i for i, e in enumerate(events)} for events in self.source.lists]
        for source, s_thread, sent, to, t_thread, received, size, tag in self.messages:
            self.set_message(places, source, s_thread, sent, {"peer": to, "tag": tag, "size_bytes": size})
            self.set_message(places, to, t_thread, received, {"peer": source, "tag": tag, "size_bytes": size})

    def set_message(self, places: list[dict[tuple[int, int], int]], rank: int, thread: int, time: int, fields: dict[str, int]) -> None:
        index = places[rank].get((thread, time))
        if index is None:
            return
        e = self.source.lists[rank][index]
        if model.ops()[e.op].kind in (1, 2, 3):
            self.source.lists[rank][index] = e._replace(comm=COMM_WORLD, **fields)  # type: ignore[arg-type]


def _names(path: Path) -> dict[tuple[int, int], str]:
    """Names of the calls by (type, value): those of the .pcf, where there is one, else Extrae's."""
    names = {(_type_of(op), _value(op)): op.name for op in model.ops()}
    if not path.is_file():
        return names
    kinds: list[int] = []
    section = ""
    for _, line in read_lines(path):
        words = line.split(maxsplit=2)
        if words[0] in ("EVENT_TYPE", "VALUES", "STATES", "STATES_COLOR", "GRADIENT_COLOR"):
            kinds = [] if words[0] == "EVENT_TYPE" else kinds
            section = words[0]
        elif section == "EVENT_TYPE" and len(words) == 3 and words[1].isdecimal():
            kinds.append(int(words[1]))
        elif section == "VALUES" and len(words) >= 2 and words[0].isdecimal():
            names.update({(kind, int(words[0])): words[1] for kind in kinds if kind in _MPI_TYPES})
    return names


def read(path: Path) -> MemorySource:
    """Reads one .prv with the .pcf beside it."""
    names = _names(path.with_suffix(".pcf"))
    reader: _Reader | None = None
    number = 0
    for number, line in read_lines(path):
        try:
            if reader is None:
                reader = _Reader(line, names)
            else:
                reader.record(line)
        except IndexError:
            raise FormatError(path, number, "the record lacks a field") from None
        except (ValueError, OverflowError) as error:
            raise FormatError(path, number, str(error)) from None
    if reader is None:
        raise UserError(f"{path}: line 1: the file is empty")
    try:
        return reader.finish()
    except ValueError as error:
        raise FormatError(path, number, str(error)) from None
