"""GOAL text, which LogGOPSim and its relatives replay: computation and messages with their dependencies.

There are no collectives in GOAL: they are written as the textbook algorithms named in `_expand`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from fallow.traces import model
from fallow.traces.model import Event, Source
from fallow.traces.text import Losses

_TAG_BASE = 1 << 24  # tags of collectives, beyond those of programs
_TAGS = 1 << 20

Step = tuple[str, int, int]
"""send or recv, member, bytes."""


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
        self.last = 0  # label that what comes next requires; 0: none
        self.open: dict[int, list[int]] = {}  # request: its labels
        self.collectives: dict[int, int] = {}  # by communicator

    def run(self) -> None:
        print(f"\nrank {self.rank} {{", file=self.file)
        for event in self.source.events(self.rank):
            self.add(event)
        print("}", file=self.file)

    def emit(self, text: str, *, requires: Sequence[int] | None = None, blocks: bool = True) -> int:
        self.labels += 1
        label = self.labels
        print(f"l{label}: {text}", file=self.file)
        for needed in [self.last] if requires is None else requires:
            if needed:
                print(f"l{label} requires l{needed}", file=self.file)
        if blocks:
            self.last = label
        return label

    def add(self, e: Event) -> None:
        op = model.ops()[e.op]
        if e.compute_ns:
            self.emit(f"calc {e.compute_ns}")
        if op.has(model.COMPLETES):
            waited = [label for r in e.completed for label in self.open.pop(r, [])]
            if waited:
                self.emit("calc 0", requires=[self.last, *waited])
        elif op.has(model.COLLECTIVE) and op.has(model.STARTS):
            self.collective(op, e)
        elif op.name.startswith("MPI_Sendrecv"):
            sent = self.message("send", e, e.peer, e.tag, e.size_bytes, blocks=False)
            received = self.message("recv", e, e.recv_peer, e.recv_tag, e.recv_bytes, blocks=False)
            self.emit("calc 0", requires=[self.last, sent, received])
        elif op.kind in (1, 2, 3) and op.has(model.SENDS | model.RECEIVES) and op.has(model.STARTS):
            verb = "send" if op.has(model.SENDS) else "recv"
            label = self.message(verb, e, e.peer, e.tag, e.size_bytes, blocks=not op.has(model.CREATES))
            for request in e.requests:
                self.open.setdefault(request, []).append(label)
        elif op.name not in ("MPI_Init", "MPI_Init_thread", "MPI_Finalize"):
            self.losses.add(op.name)

    def message(self, verb: str, e: Event, peer: int, tag: int, size: int, *, blocks: bool) -> int:
        if peer == model.NULL_PEER:
            return 0
        partner = self.source.info.world_rank(e.comm, self.rank, peer)
        if partner < 0:
            self.losses.add("messages whose partner is not known")
            return 0
        word = "to" if verb == "send" else "from"
        return self.emit(f"{verb} {size}b {word} {partner} tag {max(tag, 0)}", blocks=blocks)

    def collective(self, op: model.Op, e: Event) -> None:
        members = self.source.info.members(e.comm, self.rank)
        name = model.ops()[op.blocking].name
        if self.rank not in members:
            self.losses.add(f"{name} over an unknown communicator")
            return
        if op.number != op.blocking:
            self.losses.add("non-blocking collectives (written as blocking ones)")
        turn = self.collectives[e.comm] = self.collectives.get(e.comm, -1) + 1
        tag = _TAG_BASE + (e.comm * 4096 + turn) % _TAGS
        steps = _expand(name, list(members).index(self.rank), len(members), e)
        if steps is None:
            self.losses.add(name)
            return
        self.losses.add("collectives as such (written as point-to-point messages)")
        for together in steps:
            begun = self.last
            labels = [
                self.emit(f"{verb} {size}b {'to' if verb == 'send' else 'from'} {members[other]} tag {tag}", requires=[begun], blocks=False)
                for verb, other, size in together
            ]
            self.emit("calc 0", requires=[begun, *labels])


def _expand(name: str, me: int, n: int, e: Event) -> list[list[Step]] | None:
    """Rounds of messages: barrier and all-reduce by dissemination, trees for rooted ones, rings for gathers."""
    root = max(e.root, 0)
    size, back = e.size_bytes, e.recv_bytes
    each = max(size // n, 1)
    if name == "MPI_Barrier":
        return list(_dissemination(me, n, 1))
    if name in ("MPI_Allreduce", "MPI_Reduce_scatter", "MPI_Reduce_scatter_block", "MPI_Scan", "MPI_Exscan"):
        return list(_dissemination(me, n, size))
    if name == "MPI_Bcast":
        return list(_tree(me, n, root, size, down=True))
    if name == "MPI_Reduce":
        return list(_tree(me, n, root, size, down=False))
    if name in ("MPI_Allgather", "MPI_Allgatherv"):
        return [[("send", (me + 1) % n, size), ("recv", (me - 1) % n, max(back // n, size))] for _ in range(n - 1)]
    if name in ("MPI_Alltoall", "MPI_Alltoallv"):
        counts, recv_counts = e.counts or [each] * n, e.recv_counts or [each] * n
        return [[("send", (me + k) % n, counts[(me + k) % n]), ("recv", (me - k) % n, recv_counts[(me - k) % n])] for k in range(1, n)]
    if name in ("MPI_Gather", "MPI_Gatherv"):
        return _star(me, n, root, "recv", "send", e.recv_counts or [max(back // n, 1)] * n, size)
    if name in ("MPI_Scatter", "MPI_Scatterv"):
        return _star(me, n, root, "send", "recv", e.counts or [each] * n, back)
    return None


def _dissemination(me: int, n: int, size: int) -> Iterator[list[Step]]:
    distance = 1
    while distance < n:
        yield [("send", (me + distance) % n, size), ("recv", (me - distance) % n, size)]
        distance *= 2


def _tree(me: int, n: int, root: int, size: int, *, down: bool) -> Iterator[list[Step]]:
    relative = (me - root) % n
    lowest = relative & -relative if relative else 1 << n.bit_length()
    parent = [("recv" if down else "send", (relative - lowest + root) % n, size)] if relative else []
    children: list[Step] = []
    bit = lowest >> 1
    while bit:
        if relative + bit < n:
            children.append(("send" if down else "recv", (relative + bit + root) % n, size))
        bit >>= 1
    rounds = [parent, *([c] for c in children)] if down else [*([c] for c in reversed(children)), parent]
    yield from (r for r in rounds if r)


def _star(me: int, n: int, root: int, at_root: str, elsewhere: str, sizes: Sequence[int], own: int) -> list[list[Step]]:
    if me != root:
        return [[(elsewhere, root, own)]]
    return [[(at_root, other, sizes[other]) for other in range(n) if other != root]]
