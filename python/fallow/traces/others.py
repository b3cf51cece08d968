"""What the records of other tools say of calls, put as Fallow's traces have it.

Paraver's communication records name both ends of a message and when each began and was through, but no requests; roots
are marked where they are, and of collectives each rank says what it gave and got, which not all tools count alike.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fallow.traces import model
from fallow.traces.model import COMM_WORLD, Event, Events, Info, MemorySource

Place = tuple[int, int]
"""A thread of a rank, and a time in ns."""


class Message(NamedTuple):
    """A communication record: places of the call that sends, of that which receives, and when the data were there."""

    source: int
    sent: Place
    to: int
    received: Place
    arrived_ns: int
    size_bytes: int
    tag: int


def collective_sizes(name: str, given: int, got: int, members: int) -> tuple[int, int]:
    """Bytes and bytes received of a collective by its blocking name.

    What all ranks have the same of may be counted at the root alone, or once for each rank, and of blocks one or all.
    """
    if name == "MPI_Bcast":
        return got or given, 0
    if name == "MPI_Reduce":
        return given or got, 0
    if name == "MPI_Allgather":
        block = got // max(members, 1) if got else given
        return block, block * members
    if name == "MPI_Alltoall":
        whole = max(given, got) if got else given * members
        return whole, whole
    return given, got


Told = tuple[int, int, bool]
"""Of a collective: bytes given and got by a rank, and whether it is the root."""


def told(info: Info, rank: int, e: Event) -> Told:
    """The other way, of a call as ours have it."""
    op = model.ops()[e.op]
    if not op.has(model.COLLECTIVE):
        return e.size_bytes, e.recv_bytes, False
    here = e.root == model.ROOT_HERE or (not info.is_inter(e.comm) and 0 <= e.root == info.place(e.comm, rank, rank))
    root, name = here and op.has(model.ROOTED), model.ops()[op.blocking].name
    if not info.is_inter(e.comm):
        if name == "MPI_Bcast":
            return (e.size_bytes, 0, True) if root else (0, e.size_bytes, False)
        if name == "MPI_Reduce":
            return e.size_bytes, e.size_bytes if root else 0, root
        if name in ("MPI_Allreduce", "MPI_Scan", "MPI_Exscan"):
            return e.size_bytes, e.size_bytes, False
    return e.size_bytes, e.recv_bytes, root


def complete(source: MemorySource, messages: Sequence[Message], roots: Sequence[set[Place]]) -> None:
    """Partners, tags, sizes, requests of receives, roots. `roots`: of each rank the calls in which it is the root."""
    ranks = [_Calls(events) for events in source.lists]
    for m in messages:
        ranks[m.source].send(m)
        ranks[m.to].receive(m)
    for calls in ranks:
        calls.number_requests()
    _collectives(source, roots)
    scatter_counts(source)


def scatter_counts(source: MemorySource) -> None:
    """Gives the roots of MPI_Scatterv a count for each rank, from what each says that it got: formats have but a sum.

    A replay needs them where ranks get nothing, as to these nothing is sent. Where nobody says, all got alike.
    """
    got: dict[tuple[int, int], dict[int, tuple[int, int]]] = defaultdict(dict)  # by rank: its event's place, bytes
    for rank, events in enumerate(source.lists):
        for index, comm, number in _numbered(events):
            e = events[index]
            if model.ops()[model.ops()[e.op].blocking].name == "MPI_Scatterv":
                got[comm, number][rank] = index, e.recv_bytes
    for (comm, _), of in got.items():
        for rank, (index, _) in of.items():
            members, e = source.info.members(comm, rank), source.lists[rank][index]
            if e.counts or not 0 <= e.root < len(members) or members[e.root] != rank:
                continue
            counts = [of.get(m, (0, 0))[1] for m in members]
            if not any(counts):
                counts = [e.size_bytes // len(members)] * len(members)
                for m in of.keys() & set(members):
                    source.lists[m][of[m][0]] = source.lists[m][of[m][0]]._replace(recv_bytes=counts[0])
            if len(set(counts)) > 1:
                source.lists[rank][index] = source.lists[rank][index]._replace(counts=tuple(counts))


class _Calls:
    """The calls of one rank, in order."""

    def __init__(self, events: Events) -> None:
        self.events = events
        self.begun: dict[Place, int] = {}
        self.ended: dict[Place, int] = {}  # receives that go on after they have returned
        self.completing: dict[int, tuple[list[int], list[int]]] = defaultdict(
            lambda: ([], [])
        )  # by thread: enter, index
        self.completed_by: dict[int, int] = {}  # receives: the call that completes them
        for index, e in enumerate(events):
            op = model.ops()[e.op]
            self.begun[e.thread, e.enter_ns] = index
            if op.has(model.CREATES) and op.has(model.RECEIVES):
                self.ended[e.thread, e.exit_ns] = index
            elif op.has(model.COMPLETES):
                for values, value in zip(self.completing[e.thread], (e.enter_ns, index), strict=True):
                    values.append(value)

    def send(self, m: Message) -> None:
        index = self.begun.get(m.sent)
        if index is not None and _moves(self.events[index]):
            self.events[index] = self.events[index]._replace(
                comm=COMM_WORLD, peer=m.to, tag=m.tag, size_bytes=m.size_bytes
            )

    def receive(self, m: Message) -> None:
        """Of receives that do not wait some tools say when they began, some when they returned."""
        index, ended = self.begun.get(m.received), self.ended.get(m.received)
        if ended is not None and (index is None or self.events[index].exit_ns != m.arrived_ns):
            index = ended
        if index is None or not _moves(self.events[index]):
            return
        e = self.events[index]
        op = model.ops()[e.op]
        e = e._replace(comm=COMM_WORLD)
        if op.has(model.SENDS) and op.has(model.RECEIVES):
            e = e._replace(recv_peer=m.source, recv_tag=m.tag, recv_bytes=m.size_bytes)
        else:
            e = e._replace(peer=m.source, tag=m.tag, size_bytes=m.size_bytes)
        self.events[index] = e
        if op.has(model.CREATES):
            self._find_wait(index, m)

    def _find_wait(self, index: int, m: Message) -> None:
        begun, indices = self.completing[m.received[0]]
        last = bisect_right(begun, m.arrived_ns) - 1
        if last >= 0 and indices[last] > index and self.events[indices[last]].exit_ns >= m.arrived_ns:
            self.completed_by[index] = indices[last]

    def number_requests(self) -> None:
        """The lowest numbers that are free, as the recorder has them."""
        free: list[int] = []
        used = 0
        due: dict[int, list[int]] = defaultdict(list)
        for index, e in enumerate(self.events):
            if (by := self.completed_by.get(index)) is not None:
                number = heapq.heappop(free) if free else used
                used = max(used, number + 1)
                due[by].append(number)
                self.events[index] = e._replace(requests=(number,))
            if numbers := due.pop(index, None):
                self.events[index] = self.events[index]._replace(completed=tuple(numbers))
                for number in numbers:
                    heapq.heappush(free, number)


def _moves(e: Event) -> bool:
    return model.ops()[e.op].kind in (1, 2, 3)


def _numbered(events: Events) -> Iterator[tuple[int, int, int]]:
    """Collectives of a rank: place in the list, communicator, and how many there were on it before."""
    made: dict[int, int] = defaultdict(int)
    for index, e in enumerate(events):
        op = model.ops()[e.op]
        if op.has(model.COLLECTIVE) and op.has(model.STARTS) and e.comm:
            yield index, e.comm, made[e.comm]
            made[e.comm] += 1


def _collectives(source: MemorySource, roots: Sequence[set[Place]]) -> None:
    root_of = {
        (comm, number): rank
        for rank, events in enumerate(source.lists)
        if roots[rank]
        for index, comm, number in _numbered(events)
        if (events[index].thread, events[index].enter_ns) in roots[rank]
    }
    for rank, events in enumerate(source.lists):
        for index, comm, number in _numbered(events):
            events[index] = _settled(source.info, rank, events[index], root_of.get((comm, number)))


def _settled(info: Info, rank: int, e: Event, root: int | None) -> Event:
    op, members = model.ops()[e.op], info.members(e.comm, rank)
    at = -1 if root is None or not op.has(model.ROOTED) else info.place(e.comm, rank, root)
    given, got = collective_sizes(model.ops()[op.blocking].name, e.size_bytes, e.recv_bytes, len(members))
    return e._replace(size_bytes=given, recv_bytes=got, root=at if at >= 0 else e.root)
