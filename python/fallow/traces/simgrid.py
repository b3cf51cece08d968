"""SimGrid's time-independent traces: a list of files, one for each rank, with one action a line.

The actions are those of SMPI's replay (docs: "Replaying time-independent traces"): amounts of computation and of
elements, no times, the world communicator only. The last words of an action number the datatypes of these elements;
without them they are bytes, or doubles after an `init` with an argument.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from fallow import files
from fallow.errors import UserError
from fallow.traces import model, persistent
from fallow.traces.model import COLLECTIVE, COMM_WORLD, Event, Source
from fallow.traces.text import COMMS_OF_MESSAGES, ONE_THREAD, Losses, tag_of

DEFAULT_FLOPS_PER_S = 1e9  # so that one flop stands for one nanosecond
_RANK_FILE = re.compile(r"rank-(0|[1-9][0-9]*)\.txt")
_POINT_TO_POINT = {
    "MPI_Send": "send", "MPI_Ssend": "send", "MPI_Rsend": "send", "MPI_Bsend": "isend", "MPI_Recv": "recv",
    "MPI_Isend": "isend", "MPI_Issend": "isend", "MPI_Irsend": "isend", "MPI_Ibsend": "isend", "MPI_Irecv": "irecv",
    "MPI_Mrecv": "recv", "MPI_Imrecv": "irecv",
}  # fmt: skip
_BUFFERED = ("MPI_Bsend", "MPI_Ibsend")  # they wait for no receiver: written as isend without a wait
_EXACT = {"MPI_Send", "MPI_Recv", "MPI_Isend", "MPI_Irecv"}


class _RankWriter:
    def __init__(self, source: Source, rank: int, losses: Losses, flops_per_s: float) -> None:
        self.info, self.rank, self.losses = source.info, rank, losses
        self.flops_per_ns = flops_per_s * 1e-9
        self.open: dict[int, list[tuple[int, int, int]]] = {}  # request: source, destination, tag of its messages
        self.unwaited = False  # some requests are open that nobody waits for
        self.lines = [f"{rank} init"]

    def emit(self, *words: object) -> None:
        self.lines.append(" ".join(str(w) for w in (self.rank, *words)))

    def add(self, e: Event) -> None:
        op = model.ops()[e.op]
        if e.thread:
            self.losses.add(ONE_THREAD)
        if e.compute_ns:
            self.emit("compute", f"{e.compute_ns * self.flops_per_ns:.17g}")
        if e.site:
            self.losses.add("call sites")
        if op.name in _POINT_TO_POINT:
            self.point_to_point(op.name, e)
        elif op.name.startswith("MPI_Sendrecv"):
            self.exchange(e)
        elif op.name.startswith("MPI_Isendrecv"):
            self.started_exchange(e)
        elif op.has(model.COMPLETES):
            self.wait(op.name, e)
        elif op.has(COLLECTIVE) and op.has(model.STARTS):
            self.collective(op, e)
        elif op.name not in ("MPI_Init", "MPI_Init_thread", "MPI_Finalize"):
            self.losses.add(persistent.AS_STARTED if op.has(model.PERSISTENT) else op.name)

    def partner(self, e: Event, peer: int) -> int | None:
        if peer == model.NULL_PEER:
            return None
        partner = self.info.world_rank(e.comm, self.rank, peer)
        if partner < 0:
            self.losses.add("messages whose partner is not known")
            return None
        if e.comm != COMM_WORLD:
            self.losses.add(COMMS_OF_MESSAGES)
        return partner

    def point_to_point(self, name: str, e: Event) -> None:
        partner = self.partner(e, e.peer)
        if partner is None:
            return
        if name not in _EXACT:
            self.losses.add("receives of probed messages as such" if "recv" in name else "send modes")
        tag = tag_of(e.tag, self.losses)
        self.emit(_POINT_TO_POINT[name], partner, tag, e.size_bytes)
        if name in _BUFFERED:
            self.unwaited = True
            return
        sends = "send" in _POINT_TO_POINT[name]
        for request in e.requests:
            self.open[request] = [(self.rank, partner, tag) if sends else (partner, self.rank, tag)]

    def exchange(self, e: Event) -> None:
        self.losses.add("MPI_Sendrecv as one call (written as irecv, send, wait)")
        source, to = self.partner(e, e.recv_peer), self.partner(e, e.peer)
        if source is not None:
            tag = tag_of(e.recv_tag, self.losses)
            self.emit("irecv", source, tag, e.recv_bytes)
        if to is not None:
            self.emit("send", to, max(e.tag, 0), e.size_bytes)
        if source is not None:
            self.emit("wait", source, self.rank, tag)

    def started_exchange(self, e: Event) -> None:
        """The request is for both messages, and so are its waits."""
        self.losses.add("MPI_Isendrecv as one call (written as irecv, isend)")
        begun = []
        if (source := self.partner(e, e.recv_peer)) is not None:
            begun.append((source, self.rank, tag_of(e.recv_tag, self.losses)))
            self.emit("irecv", source, begun[-1][2], e.recv_bytes)
        if (to := self.partner(e, e.peer)) is not None:
            begun.append((self.rank, to, max(e.tag, 0)))
            self.emit("isend", to, begun[-1][2], e.size_bytes)
        self.open.update((request, begun) for request in e.requests if begun)

    def wait(self, name: str, e: Event) -> None:
        done = [key for r in e.completed for key in self.open.pop(r, ())]
        if name == "MPI_Waitall" and done and not self.open and not self.unwaited:
            self.emit("waitall")
            return
        if len(done) != 1 or name != "MPI_Wait":
            self.losses.add(f"{name} as one call" if done else f"{name} that completes no message")
        for key in done:
            self.emit("wait", *key)

    def is_of_all(self, comm: int) -> bool:
        """Whether the communicator has the world's ranks in their order, as its duplicates do."""
        if comm == COMM_WORLD:
            return True
        return not self.info.is_inter(comm) and self.info.members(comm, self.rank) == range(self.info.size)

    def collective(self, op: model.Op, e: Event) -> None:
        blocking = model.ops()[op.blocking].name
        if not self.is_of_all(e.comm):
            self.losses.add("collectives of communicators other than the world's (they are left out)")
            return
        words = _collective_words(blocking, e, self.info.size)
        if words is None:
            self.losses.add(op.name)
            return
        if op.number != op.blocking:
            self.losses.add("non-blocking collectives (written as blocking ones)")
        self.emit(*words)


def _collective_words(name: str, e: Event, ranks: int) -> tuple[object, ...] | None:
    n, back, root = e.size_bytes, e.recv_bytes, max(e.root, 0)
    each, back_each = n // ranks, back // ranks
    counts = list(e.counts) or [each] * ranks
    recv_counts = list(e.recv_counts) or [back_each] * ranks
    forms: dict[str, tuple[object, ...]] = {
        "MPI_Barrier": ("barrier",),
        "MPI_Bcast": ("bcast", n, root),
        "MPI_Reduce": ("reduce", n, 0, root),
        "MPI_Allreduce": ("allreduce", n, 0),
        "MPI_Scan": ("scan", n, 0),
        "MPI_Exscan": ("exscan", n, 0),
        "MPI_Alltoall": ("alltoall", each, back_each),
        "MPI_Allgather": ("allgather", n, back_each),
        "MPI_Gather": ("gather", n, back_each or n, root),
        "MPI_Scatter": ("scatter", each or back, back, root),
        "MPI_Allgatherv": ("allgatherv", n, *recv_counts),
        "MPI_Gatherv": ("gatherv", n, *recv_counts, root),
        "MPI_Scatterv": ("scatterv", *counts, back, root),
        "MPI_Alltoallv": ("alltoallv", n, *counts, back, *recv_counts),
        "MPI_Reduce_scatter": ("reducescatter", *(list(e.counts) or list(e.recv_counts) or [each] * ranks), 0),
        "MPI_Reduce_scatter_block": ("reducescatter", *[back or each] * ranks, 0),
    }
    return forms.get(name)


def write(source: Source, path: Path, losses: Losses, flops_per_s: float = DEFAULT_FLOPS_PER_S) -> None:
    """Writes the list file `path` and the ranks' files beside it; those of an earlier trace of more ranks go."""
    if len(path.name.split()) != 1 or path.name.startswith("#"):
        raise UserError(f"{path}: it lists files named after it, so its name can have no white space and no # first")
    files.expect_room_beside(path)
    files.whole_set(path, lambda target: _write(source, target, losses, flops_per_s))
    for file in _folder(path).iterdir():
        number = _RANK_FILE.fullmatch(file.name)
        if number is not None and int(number[1]) >= source.info.size:
            with contextlib.suppress(OSError):
                file.unlink()


def _folder(path: Path) -> Path:
    return path.with_name(path.name + ".ranks")


def _write(source: Source, path: Path, losses: Losses, flops_per_s: float) -> None:
    folder = _folder(path)
    folder.mkdir(exist_ok=True)
    names = []
    for rank in range(source.info.size):
        writer = _RankWriter(source, rank, losses, flops_per_s)
        for event in persistent.unfolded(source.events(rank)):
            writer.add(event)
            for request in persistent.freed(event):  # it stays open there
                writer.unwaited |= writer.open.pop(request, None) is not None
        writer.emit("finalize")
        (folder / f"rank-{rank}.txt").write_text("\n".join(writer.lines) + "\n")
        names.append(f"{folder.name}/rank-{rank}.txt")
    path.write_text("\n".join(names) + "\n")
    losses.add("times inside MPI, and where calls overlap with computation")
