"""The event model in Python, over the native reader and writer. See docs/reference/trace-format.md."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from fallow import native
from fallow.errors import UserError, about

NO_PEER, ANY_PEER, NULL_PEER, ROOT_HERE = -1, -2, -3, -4
NO_TAG, ANY_TAG = -1, -2
COMM_NONE, COMM_WORLD, COMM_SELF, FIRST_COMM = 0, 1, 2, 3
CPU_TIME = 1 << 5  # flag: compute_ns is CPU time, not the gap

BLOCKS, SENDS, RECEIVES, CREATES, STARTS, PERSISTENT, COMPLETES = (1 << i for i in range(7))
COLLECTIVE, ROOTED, VECTOR, NEIGHBOR, REDUCES = (1 << i for i in range(7, 12))

_BATCH = 4096
_FETCHED = 1 << 18  # events of all ranks that are in memory at a time: some formats go through all ranks side by side
_LEAST_BATCH = 64

Run = tuple[int, int, int]
"""World ranks: first, count, stride."""
Site = tuple[int, str, str]
"""Where calls are made: address in the module, module, label."""


class Event(NamedTuple):
    """One MPI call of one rank; fields as in src/trace/event.hpp."""

    op: int = 0
    flags: int = 0
    thread: int = 0
    comm: int = COMM_NONE
    site: int = 0
    peer: int = NO_PEER
    tag: int = NO_TAG
    recv_peer: int = NO_PEER
    recv_tag: int = NO_TAG
    root: int = NO_PEER
    size_bytes: int = 0
    recv_bytes: int = 0
    enter_ns: int = 0
    exit_ns: int = 0
    compute_ns: int = 0
    wait_ns: int = 0
    counts: Sequence[int] = ()
    recv_counts: Sequence[int] = ()
    requests: Sequence[int] = ()
    completed: Sequence[int] = ()


LISTS = ("counts", "recv_counts", "requests", "completed")
"""Fields of an event that are several numbers, its last ones."""


class Op(NamedTuple):
    """What an operation is."""

    number: int
    name: str
    kind: int
    bits: int
    blocking: int

    def has(self, bits: int) -> bool:
        """Whether any of these bits is set."""
        return self.bits & bits != 0


@cache
def ops() -> tuple[Op, ...]:
    """All operations by number."""
    return tuple(Op(i, *row) for i, row in enumerate(_native("trace_ops")()))


@cache
def op_numbers() -> dict[str, int]:
    """Number of an operation by its MPI name."""
    return {op.name: op.number for op in ops()}


def op_number(name: str) -> int:
    """Number of "MPI_Send", "MPI_Send_c"; 0 if unknown."""
    return op_numbers().get(name.removesuffix("_c"), 0)


@dataclass
class Info:
    """What a trace says beside its events."""

    size: int
    program: str = ""
    mpi_version: str = ""
    start_wall_ns: int = 0
    clock: str = "wall"
    hosts: list[str] = field(default_factory=list)
    comms: list[tuple[list[Run], list[Run]]] = field(default_factory=list)  # from FIRST_COMM on; group, remote
    sites: list[Site] = field(default_factory=list)  # from 1 on
    incomplete: frozenset[int] = frozenset()  # ranks whose end is missing
    dropped: dict[int, int] = field(default_factory=dict)  # by rank: events that came too fast to be kept
    left_out: dict[int, int] = field(default_factory=dict)  # likewise: that `fallow trace cut` took away

    def members(self, comm: int, caller: int, *, remote: bool = False) -> Sequence[int]:
        """World ranks of the communicator: the caller's side, or the side that it addresses."""
        if comm == COMM_WORLD:
            return range(self.size)
        if comm == COMM_SELF:
            return (caller,)
        if not FIRST_COMM <= comm < FIRST_COMM + len(self.comms):
            return ()
        group, other = self._sides(comm)
        if other and ((caller in group) == remote):
            return other
        return group

    def place(self, comm: int, caller: int, rank: int) -> int:
        """Which of `members` the world rank is; -1 if it is none. Asked for every call: none is searched for."""
        members = self.members(comm, caller)
        if isinstance(members, range) or len(members) < 2:
            return members.index(rank) if rank in members else -1
        cached: dict[int, dict[int, int]] = self.__dict__.setdefault("_places", {})
        if id(members) not in cached:  # they are kept, too
            cached[id(members)] = {member: place for place, member in enumerate(members)}
        return cached[id(members)].get(rank, -1)

    def is_inter(self, comm: int) -> bool:
        """Whether it is an intercommunicator."""
        return FIRST_COMM <= comm < FIRST_COMM + len(self.comms) and bool(self.comms[comm - FIRST_COMM][1])

    def everyone(self, comm: int) -> Sequence[int]:
        """World ranks of a communicator of the program, of both sides of an intercommunicator."""
        group, other = self._sides(comm)
        return (*group, *other) if other else group

    def _sides(self, comm: int) -> tuple[Sequence[int], Sequence[int]]:
        cached: dict[int, tuple[Sequence[int], Sequence[int]]] = self.__dict__.setdefault("_expanded", {})
        if comm not in cached:
            group, other = self.comms[comm - FIRST_COMM]
            cached[comm] = (_expand(group), _expand(other))
        return cached[comm]

    def world_rank(self, comm: int, caller: int, peer: int) -> int:
        """World rank that `caller` names by `peer`; -1 if there is none."""
        if comm == COMM_WORLD:
            return peer if 0 <= peer < self.size else -1
        members = self.members(comm, caller, remote=True)
        return members[peer] if 0 <= peer < len(members) else -1

    def as_dict(self) -> dict[str, Any]:
        """As the native writer takes it."""
        hosts = self.hosts + [""] * (self.size - len(self.hosts))
        ranks = [
            {"host": host, "complete": rank not in self.incomplete, "dropped": self.dropped.get(rank, 0),
             "left_out": self.left_out.get(rank, 0)}
            for rank, host in enumerate(hosts)
        ]  # fmt: skip
        return {
            "program": self.program, "mpi_version": self.mpi_version, "start_wall_ns": self.start_wall_ns,
            "clock": self.clock, "ranks": ranks, "comms": self.comms, "sites": self.sites,
        }  # fmt: skip


def _expand(runs: list[Run]) -> Sequence[int]:
    if len(runs) == 1:
        first, count, stride = runs[0]
        return range(first, first + count * stride, stride) if stride else (first,)
    return tuple(first + i * stride for first, count, stride in runs for i in range(count))


def runs_of(ranks: Sequence[int]) -> list[Run]:
    """World ranks as runs with a stride."""
    out: list[Run] = []
    at = 0
    while at < len(ranks):
        end = at + 1
        stride = ranks[end] - ranks[at] if end < len(ranks) else 1
        while end < len(ranks) and stride != 0 and ranks[end] - ranks[end - 1] == stride:
            end += 1
        out.append((ranks[at], end - at, stride if end - at > 1 else 1))
        at = end
    return out


class Columns(NamedTuple):
    """Calls of one rank, column by column."""

    calls: int
    numbers: Sequence[bytes]
    """Of each field of Event that is one number, in their order: one int64 for each call."""
    lists: Sequence[tuple[bytes, bytes]]
    """Of each other field: int32 of where each call's numbers begin, and of where the last ones end; uint64 of them."""


class Source(Protocol):
    """Anything that has events by rank."""

    info: Info

    def events(self, rank: int) -> Iterator[Event]:
        """Events of a rank from its first on, in order of enter_ns."""
        ...


class FileSource:
    """A Fallow trace on disk."""

    def __init__(self, paths: Sequence[Path]) -> None:
        reader = _native("TraceReader")
        try:
            self.reader = reader([native.file_name(p) for p in paths])
        except ValueError as error:
            raise UserError(str(error)) from None
        d = self.reader.info()
        self.ranks: list[dict[str, Any]] = d["ranks"]
        self.info = Info(
            size=len(self.ranks), program=d["program"], mpi_version=d["mpi_version"], start_wall_ns=d["start_wall_ns"],
            clock=d["clock"], hosts=[r["host"] for r in self.ranks], comms=d["comms"], sites=d["sites"],
            incomplete=frozenset(n for n, r in enumerate(self.ranks) if not r["complete"]),
            dropped={n: r["dropped"] for n, r in enumerate(self.ranks) if r["dropped"]},
            left_out={n: r["left_out"] for n, r in enumerate(self.ranks) if r["left_out"]},
        )  # fmt: skip
        self.calls = sum(r["events"] for r in self.ranks)
        self.watch: Callable[[int], None] | None = None  # told how many events have been read since it was told last
        self._from = self.reader

    def settle(self) -> None:
        """From here on, receives from any source and cancelled requests say where they begin what became of them."""
        try:
            self._from = _native("TraceOutcomes")(self.reader)
        except ValueError as error:
            raise UserError(str(error)) from None

    def events(self, rank: int) -> Iterator[Event]:
        """Events of a rank from its first on."""
        self._from.rewind(rank)
        most = max(_LEAST_BATCH, min(_BATCH, _FETCHED // max(self.info.size, 1)))
        try:
            while batch := self._from.batch(rank, most):
                if self.watch is not None:
                    self.watch(len(batch))
                yield from map(Event._make, batch)
        except ValueError as error:
            raise UserError(str(error)) from None

    def columns(self, rank: int, most: int) -> Iterator[Columns]:
        """The same column by column, at most so many events at a time."""
        self.reader.rewind(rank)
        try:
            while (columns := Columns(*self.reader.columns(rank, most))).calls:
                if self.watch is not None:
                    self.watch(columns.calls)
                yield columns
        except ValueError as error:
            raise UserError(str(error)) from None


class Events(Protocol):
    """Events of one rank, in a list or the like."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Event]: ...
    def __getitem__(self, index: int, /) -> Event: ...
    def __setitem__(self, index: int, event: Event, /) -> None: ...
    def append(self, event: Event, /) -> None:
        """Adds it at the end."""


class MemorySource:
    """Events in memory, as importers collect them."""

    def __init__(self, info: Info, events: Sequence[Events] | None = None) -> None:
        self.info = info
        self.lists: Sequence[Events] = events if events is not None else [list[Event]() for _ in range(info.size)]

    def events(self, rank: int) -> Iterator[Event]:
        """Events of a rank."""
        return iter(self.lists[rank])


def columns_of(source: Source, rank: int, most: int) -> Iterator[Columns]:
    """Events of a rank from its first on, at most so many at a time."""
    if isinstance(source, FileSource):
        yield from source.columns(rank, most)
        return
    events = source.events(rank)
    while batch := list(islice(events, most)):
        fields = list(zip(*batch, strict=True))
        numbers = [array("q", field).tobytes() for field in fields[:-len(LISTS)]]
        yield Columns(len(batch), numbers, [_list_column(field) for field in fields[-len(LISTS):]])


def _list_column(lists: Sequence[Sequence[int]]) -> tuple[bytes, bytes]:
    begins = array("i", accumulate(map(len, lists), initial=0))
    return begins.tobytes(), array("Q", chain.from_iterable(lists)).tobytes()


def first_of_rank(event: Event) -> Event:
    """The event as a rank's first one: no gap before it says how long the rank computed."""
    return event._replace(flags=event.flags | CPU_TIME) if event.compute_ns else event


def clock_of(lists: Iterable[Iterable[Event]]) -> str:
    """The clock of computation where a format has no word for it, by the flags of all but the ranks' first calls."""
    return "cpu" if any(e.flags & CPU_TIME for events in lists for e in islice(events, 1, None)) else "wall"


def write_source(source: Source, path: Path) -> None:
    """Writes a Fallow trace."""
    try:
        writer = _native("TraceWriter")(native.file_name(path), source.info.as_dict())
        for rank in range(source.info.size):
            batch: list[Event] = []
            for event in source.events(rank):
                batch.append(event)
                if len(batch) == _BATCH:
                    writer.add(rank, batch)
                    batch = []
            writer.add(rank, batch)
            writer.close_rank(rank)
        for rank in range(source.info.size):
            if rank not in source.info.incomplete:
                writer.end_rank(rank, source.info.dropped.get(rank, 0), source.info.left_out.get(rank, 0))
        writer.finish()
    except (ValueError, TypeError, OverflowError, RuntimeError) as error:
        raise about(path, error) from None


def _native(name: str) -> Any:  # noqa: ANN401  # classes of the extension module
    found = getattr(native.require(), name, None)
    if found is None:
        raise UserError("this build of Fallow cannot read traces; install the package anew: pip install .")
    return found
