"""GOAL text, which LogGOPSim and its relatives replay: computation and messages with their dependencies.

There are no collectives in GOAL: they are written as the textbook algorithms named in `_expand`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

from fallow.traces import model, persistent
from fallow.traces.model import Event, Source
from fallow.traces.text import COMMS_OF_MESSAGES, Losses, Message, received, sent

_TAG_BASE = 1 << 24  # tags of collectives, beyond those of programs
_TAGS = 1 << 20
_CPUS = 1 << 8  # that GOAL has numbers for
_ANY = -1  # as source or tag of a receive
_WAY = {"send": "to", "recv": "from"}

Step = tuple[str, int, int]
"""send or recv, member, bytes."""


class _Chain(NamedTuple):
    """Labels of one thread: what its last call required, and what comes next requires; and when that call ended."""

    begun: int
    last: int
    exit_ns: int


def write(source: Source, path: Path, losses: Losses) -> None:
    """Writes one GOAL file."""
    with path.open("w", encoding="ascii", newline="\n") as file:
        print(f"num_ranks {source.info.size}", file=file)
        for rank in range(source.info.size):
            _RankWriter(source, rank, losses, file).run()
    losses.add("times inside MPI, call sites")


class _RankWriter:
    def __init__(self, source: Source, rank: int, losses: Losses, file: IO[str]) -> None:
        self.source, self.rank, self.losses, self.file = source, rank, losses, file
        self.labels = 0
        self.last = 0  # label that what comes next in the thread requires; 0: none
        self.cpu = ""  # the thread's, where it is not the first one: simulators let them compute side by side
        self.chains: dict[int, _Chain] = {}  # by thread
        self.open: dict[int, list[int]] = {}  # request: its labels
        self.collectives: dict[int, int] = {}  # by communicator

    def run(self) -> None:
        print(f"\nrank {self.rank} {{", file=self.file)
        for event in persistent.unfolded(self.source.events(self.rank)):
            self.cpu = f" cpu {event.thread % _CPUS}" * bool(event.thread)
            self.last = self.chain(event)
            if event.compute_ns:
                self.emit(f"calc {event.compute_ns}")
            begun = self.last
            self.add(event)
            self.chains[event.thread] = _Chain(begun, self.last, event.exit_ns)
            for request in persistent.freed(event):
                self.open.pop(request, None)
        print("}", file=self.file)

    def chain(self, e: Event) -> int:
        """What the call requires: the one before in its thread. A thread begins after what others ended before."""
        if e.thread in self.chains:
            return self.chains[e.thread].last
        ended = {c.last if c.exit_ns <= e.enter_ns else c.begun for c in self.chains.values()} - {0}
        return self.emit("calc 0", requires=sorted(ended), blocks=False) if len(ended) > 1 else max(ended, default=0)

    def emit(self, text: str, *, requires: Sequence[int] | None = None, blocks: bool = True) -> int:
        self.labels += 1
        label = self.labels
        print(f"l{label}: {text}{self.cpu}", file=self.file)
        for needed in [self.last] if requires is None else requires:
            if needed:
                print(f"l{label} requires l{needed}", file=self.file)
        if blocks:
            self.last = label
        return label

    def add(self, e: Event) -> None:
        op = model.ops()[e.op]
        if op.has(model.COMPLETES):
            waited = [label for r in e.completed for label in self.open.pop(r, [])]
            if waited:
                self.emit("calc 0", requires=[self.last, *waited])
        elif op.has(model.COLLECTIVE) and op.has(model.STARTS):
            self.collective(op, e)
        elif op.has(model.SENDS) and op.has(model.RECEIVES) and op.kind in (2, 3):
            out = self.message("send", e, sent(e), blocks=False)
            back = self.message("recv", e, received(e), blocks=False)
            if op.has(model.CREATES):  # its wait is for both
                for request in e.requests:
                    self.open.setdefault(request, []).extend((out, back))
            else:
                self.emit("calc 0", requires=[self.last, out, back])
        elif op.kind in (1, 2, 3) and op.has(model.SENDS | model.RECEIVES) and op.has(model.STARTS):
            verb = "send" if op.has(model.SENDS) else "recv"
            buffered = "bsend" in op.name.lower()  # it waits for no receiver, nor does a wait for it
            label = self.message(verb, e, sent(e), blocks=not op.has(model.CREATES) and not buffered)
            for request in () if buffered else e.requests:
                self.open.setdefault(request, []).append(label)
        elif op.name not in ("MPI_Init", "MPI_Init_thread", "MPI_Finalize"):
            self.losses.add(persistent.AS_STARTED if op.has(model.PERSISTENT) else op.name)

    def message(self, verb: str, e: Event, m: Message, *, blocks: bool) -> int:
        if m.peer == model.NULL_PEER:
            return 0
        anyone = verb == "recv" and m.peer == model.ANY_PEER
        partner = _ANY if anyone else self.source.info.world_rank(e.comm, self.rank, m.peer)
        if partner < 0 and not anyone:
            self.losses.add("messages whose partner is not known")
            return 0
        if e.comm != model.COMM_WORLD:
            self.losses.add(COMMS_OF_MESSAGES)
        tag = _ANY if m.tag == model.ANY_TAG else max(m.tag, 0)
        return self.emit(f"{verb} {self.at_least_one(m.size_bytes)}b {_WAY[verb]} {partner} tag {tag}", blocks=blocks)

    def at_least_one(self, size: int) -> int:
        """Simulators of the LogGP kind take the time of all bytes but the first one, or ask that there is one."""
        if not size:
            self.losses.add("messages without bytes (written as of one byte)")
        return max(size, 1)

    def collective(self, op: model.Op, e: Event) -> None:
        members = self.source.info.members(e.comm, self.rank)
        name = model.ops()[op.blocking].name
        if self.source.info.is_inter(e.comm):
            self.losses.add("collectives of intercommunicators")
            return
        me = self.source.info.place(e.comm, self.rank, self.rank)
        if me < 0:
            self.losses.add(f"{name} over an unknown communicator")
            return
        turn = self.collectives[e.comm] = self.collectives.get(e.comm, -1) + 1
        tag = _TAG_BASE + (e.comm * 4096 + turn) % _TAGS
        n = len(members)
        steps = _expand(name, me, n, e)
        if steps is None:
            self.losses.add(name)
            return
        if e.root >= n or any(len(counts) not in (0, n) for counts in (e.counts, e.recv_counts)):
            self.losses.add(f"{name} with a root or counts that do not fit its communicator")
            return
        self.losses.add("collectives as such (written as point-to-point messages)")
        through = self.last
        for together in filter(None, steps):
            sizes = ((verb, self.at_least_one(size), members[peer]) for verb, peer, size in together)
            texts = [f"{verb} {size}b {_WAY[verb]} {partner} tag {tag}" for verb, size, partner in sizes]
            labels = [self.emit(text, requires=[through], blocks=False) for text in texts]
            through = self.emit("calc 0", requires=[through, *labels], blocks=False)
        if not op.has(model.CREATES):
            self.last = through
        for request in e.requests:  # the call that completes it waits for the last round
            self.open.setdefault(request, []).append(through)


def _expand(name: str, me: int, n: int, e: Event) -> Iterator[list[Step]] | None:
    """Rounds of messages: barrier and all-reduce by dissemination, trees for rooted ones, rings for gathers."""
    algorithm = _ALGORITHMS.get(name)
    return None if algorithm is None else algorithm(me, n, e)


def _each(e: Event, n: int) -> int:
    return max(e.size_bytes // n, 1)


def _barrier(me: int, n: int, _: Event) -> Iterator[list[Step]]:
    return _dissemination(me, n, 1)


def _reduction(me: int, n: int, e: Event) -> Iterator[list[Step]]:
    return _dissemination(me, n, e.size_bytes)


def _ring(me: int, n: int, e: Event) -> Iterator[list[Step]]:
    """Each step hands on the block that came with the last one."""
    blocks = e.recv_counts
    back = max(e.recv_bytes // n, e.size_bytes)
    for k in range(n - 1):
        sizes = (blocks[(me - k) % n], blocks[(me - k - 1) % n]) if blocks else (e.size_bytes, back)
        yield [("send", (me + 1) % n, sizes[0]), ("recv", (me - 1) % n, sizes[1])]


def _pairwise(me: int, n: int, e: Event) -> Iterator[list[Step]]:
    counts, recv_counts = e.counts or [_each(e, n)] * n, e.recv_counts or [_each(e, n)] * n
    for k in range(1, n):
        to, source = (me + k) % n, (me - k) % n
        yield [("send", to, counts[to]), ("recv", source, recv_counts[source])]


def _gather(me: int, n: int, e: Event) -> Iterator[list[Step]]:
    if me != max(e.root, 0):
        yield [("send", max(e.root, 0), e.size_bytes)]
        return
    sizes = e.recv_counts or [max(e.recv_bytes // n, 1)] * n
    yield [("recv", other, sizes[other]) for other in range(n) if other != me]


def _scatter(me: int, n: int, e: Event) -> Iterator[list[Step]]:
    if me != max(e.root, 0):
        yield [("recv", max(e.root, 0), e.recv_bytes)]
        return
    sizes = e.counts or [_each(e, n)] * n
    yield [("send", other, sizes[other]) for other in range(n) if other != me]


def _dissemination(me: int, n: int, size: int) -> Iterator[list[Step]]:
    distance = 1
    while distance < n:
        yield [("send", (me + distance) % n, size), ("recv", (me - distance) % n, size)]
        distance *= 2


def _tree(me: int, n: int, e: Event, *, down: bool) -> Iterator[list[Step]]:
    """Binomial tree from the root (down) or to it."""
    root = max(e.root, 0)
    to_child, to_parent = ("send", "recv") if down else ("recv", "send")
    relative = (me - root) % n
    lowest = relative & -relative if relative else 1 << n.bit_length()
    rounds: list[list[Step]] = [[(to_parent, (relative - lowest + root) % n, e.size_bytes)]] if relative else []
    bit = lowest >> 1
    while bit:
        if relative + bit < n:
            rounds.append([(to_child, (relative + bit + root) % n, e.size_bytes)])
        bit >>= 1
    return iter(rounds if down else rounds[::-1])


_ALGORITHMS: dict[str, Callable[[int, int, Event], Iterator[list[Step]]]] = {
    "MPI_Barrier": _barrier,
    "MPI_Allreduce": _reduction,
    "MPI_Reduce_scatter": _reduction,
    "MPI_Reduce_scatter_block": _reduction,
    "MPI_Scan": _reduction,
    "MPI_Exscan": _reduction,
    "MPI_Bcast": partial(_tree, down=True),
    "MPI_Reduce": partial(_tree, down=False),
    "MPI_Allgather": _ring,
    "MPI_Allgatherv": _ring,
    "MPI_Alltoall": _pairwise,
    "MPI_Alltoallv": _pairwise,
    "MPI_Gather": _gather,
    "MPI_Gatherv": _gather,
    "MPI_Scatter": _scatter,
    "MPI_Scatterv": _scatter,
}
