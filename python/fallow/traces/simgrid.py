"""SimGrid's time-independent traces: a list of files, one for each rank, with one action a line.

The actions are those of SMPI's replay (docs: "Replaying time-independent traces"): amounts of computation and of
elements, no times, the world communicator only. The last words of an action number the datatypes of these elements;
without them they are bytes, or doubles after an `init` with an argument.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from pathlib import Path

from fallow import files
from fallow.errors import UserError
from fallow.traces import model, persistent
from fallow.traces.model import COLLECTIVE, COMM_WORLD, Event, Info, MemorySource, Source
from fallow.traces.text import (
    COMMS_OF_MESSAGES,
    LARGEST,
    ONE_THREAD,
    FormatError,
    Losses,
    RequestNumbers,
    decimal,
    nanoseconds,
    read_lines,
    tag_of,
    whole,
)

DEFAULT_FLOPS_PER_S = 1e9  # so that one flop stands for one nanosecond
_MAX_RANKS = 1 << 21
_RANK_FILE = re.compile(r"rank-(0|[1-9][0-9]*)\.txt")
_ROOTED = ("MPI_Bcast", "MPI_Reduce")
_POINT_TO_POINT = {
    "MPI_Send": "send", "MPI_Ssend": "send", "MPI_Rsend": "send", "MPI_Bsend": "isend", "MPI_Recv": "recv",
    "MPI_Isend": "isend", "MPI_Issend": "isend", "MPI_Irsend": "isend", "MPI_Ibsend": "isend", "MPI_Irecv": "irecv",
    "MPI_Mrecv": "recv", "MPI_Imrecv": "irecv",
}  # fmt: skip
_BUFFERED = ("MPI_Bsend", "MPI_Ibsend")  # they wait for no receiver: written as isend without a wait
_EXACT = {"MPI_Send", "MPI_Recv", "MPI_Isend", "MPI_Irecv"}
_DOUBLE = 8
_TYPE_BYTES = {
    0: _DOUBLE,
    1: 4,
    2: 1,
    3: 2,
    4: 8,
    5: 4,
    6: 1,
}  # double, int, char, short, long, float, byte; of others bytes are given


# --- writing


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


# --- reading


class _RankReader:
    def __init__(self, rank: int, ranks: int, flops_per_s: float) -> None:
        self.rank, self.ranks, self.ns_per_flop = rank, ranks, 1e9 / flops_per_s
        self.clock_ns = 0
        self.compute_ns = 0
        self.requests = RequestNumbers()
        self.events: list[Event] = []
        self.element_bytes = 1  # where no datatype is named

    def put(self, name: str, **fields: object) -> None:
        self.clock_ns += self.compute_ns
        if self.clock_ns >= 1 << 62:
            raise ValueError("computation of more than a century")
        event = Event(
            op=model.op_number(name),
            enter_ns=self.clock_ns,
            exit_ns=self.clock_ns,
            compute_ns=self.compute_ns,
            comm=COMM_WORLD,
        )._replace(**fields)  # type: ignore[arg-type]
        self.events.append(event if self.events else model.first_of_rank(event))
        self.compute_ns = 0

    def end(self) -> None:
        """What the rank computes after its last call comes before MPI_Finalize."""
        if self.compute_ns:
            self.put("MPI_Finalize", comm=0)

    def read(self, words: list[str]) -> None:
        action, rest = words[1].lower(), words[2:]
        handler = _HANDLERS.get(action)
        if handler is None:
            raise ValueError(f"unknown action '{action}'")
        handler(self, rest)

    def init(self, w: list[str]) -> None:
        self.element_bytes = _DOUBLE if w else 1

    def size(self, text: str, w: list[str], at: int) -> int:
        """Bytes of so many elements, whose datatype is word `at` if there is one."""
        each = _TYPE_BYTES.get(whole(w[at], -LARGEST), 1) if len(w) > at else self.element_bytes
        return _amount(text) * each

    def compute(self, w: list[str]) -> None:
        self.compute_ns += nanoseconds(w[0], self.ns_per_flop)

    def sleep(self, w: list[str]) -> None:
        self.compute_ns += nanoseconds(w[0], 1e9)

    def message(self, name: str, w: list[str]) -> None:
        peer, tag, size = whole(w[0], 0, self.ranks - 1), whole(w[1], -1, 2**31 - 1), self.size(w[2], w, 3)
        requests: tuple[int, ...] = ()
        if name.startswith("MPI_I"):
            sends = name == "MPI_Isend"
            requests = (self.requests.add((self.rank, peer, tag) if sends else (peer, self.rank, tag)),)
        self.put(name, peer=peer, tag=tag, size_bytes=size, requests=requests)

    def wait(self, w: list[str]) -> None:
        key = (whole(w[0], 0, self.ranks - 1), whole(w[1], 0, self.ranks - 1), whole(w[2], -1, 2**31 - 1))
        number = self.requests.complete(key)
        if number is None:
            raise ValueError("wait for a message that was not started")
        self.put("MPI_Wait", comm=0, completed=(number,))

    def test(self, w: list[str]) -> None:
        whole(w[0]), whole(w[1]), whole(w[2], -1)
        self.put("MPI_Test", comm=0)

    def waitall(self, _: list[str]) -> None:
        self.put("MPI_Waitall", comm=0, completed=self.requests.complete_all())

    def list_of(self, w: list[str], at: int, datatype: int) -> tuple[int, ...]:
        if len(w) < at + self.ranks:
            raise ValueError(f"{self.ranks} counts expected")
        each = self.size("1", w, datatype)
        return tuple(whole(x) * each for x in w[at : at + self.ranks])

    def root(self, w: list[str], at: int) -> int:
        return whole(w[at], 0, self.ranks - 1) if len(w) > at else 0

    def vector(self, name: str, w: list[str], datatype: int) -> None:
        """The same bytes on all ranks; where there is a root, it stands before the datatype."""
        root = self.root(w, datatype - 1) if name in _ROOTED else model.NO_PEER
        self.put(name, size_bytes=self.size(w[0], w, datatype), root=root)

    def alltoall(self, w: list[str]) -> None:
        sent, back = self.size(w[0], w, 2), self.size(w[1], w, 3)
        self.put("MPI_Alltoall", size_bytes=sent * self.ranks, recv_bytes=back * self.ranks)

    def allgather(self, w: list[str]) -> None:
        sent, back = self.size(w[0], w, 2), self.size(w[1], w, 3)
        self.put("MPI_Allgather", size_bytes=sent, recv_bytes=back * self.ranks)

    def gather(self, w: list[str]) -> None:
        root = self.root(w, 2)
        sent, back = self.size(w[0], w, 3), self.size(w[1], w, 4)
        self.put("MPI_Gather", size_bytes=sent, recv_bytes=back * self.ranks if root == self.rank else 0, root=root)

    def scatter(self, w: list[str]) -> None:
        root = self.root(w, 2)
        sent, back = self.size(w[0], w, 3), self.size(w[1], w, 4)
        self.put("MPI_Scatter", size_bytes=sent * self.ranks if root == self.rank else 0, recv_bytes=back, root=root)

    def gatherv(self, w: list[str]) -> None:
        counts, root = self.list_of(w, 1, 3 + self.ranks), self.root(w, 1 + self.ranks)
        at_root = root == self.rank
        self.put(
            "MPI_Gatherv",
            size_bytes=self.size(w[0], w, 2 + self.ranks),
            recv_counts=counts if at_root else (),
            recv_bytes=sum(counts) if at_root else 0,
            root=root,
        )

    def scatterv(self, w: list[str]) -> None:
        counts, root = self.list_of(w, 0, 2 + self.ranks), self.root(w, 1 + self.ranks)
        at_root = root == self.rank
        self.put(
            "MPI_Scatterv",
            size_bytes=sum(counts) if at_root else 0,
            counts=counts if at_root else (),
            recv_bytes=self.size(w[self.ranks], w, 3 + self.ranks),
            root=root,
        )

    def allgatherv(self, w: list[str]) -> None:
        behind = len(w) - 1 - self.ranks  # a datatype, displacements, or both
        datatype = 1 + self.ranks if behind > self.ranks or behind <= 2 else len(w)
        counts = self.list_of(w, 1, datatype)
        sent = self.size(w[0], w, datatype)
        self.put("MPI_Allgatherv", size_bytes=sent, recv_counts=counts, recv_bytes=sum(counts))

    def alltoallv(self, w: list[str]) -> None:
        counts = self.list_of(w, 1, 2 + 2 * self.ranks)
        recv_counts = self.list_of(w, 2 + self.ranks, 3 + 2 * self.ranks)
        self.put(
            "MPI_Alltoallv", size_bytes=sum(counts), recv_bytes=sum(recv_counts), counts=counts, recv_counts=recv_counts
        )

    def reducescatter(self, w: list[str]) -> None:
        counts = self.list_of(w, 0, 1 + self.ranks)
        self.put("MPI_Reduce_scatter", size_bytes=sum(counts), counts=counts, recv_bytes=counts[self.rank])


def _amount(text: str) -> int:
    value = decimal(text)
    if not 0 <= value < 1 << 62:
        raise ValueError(f"{text} is no size")
    return int(value)


def _nothing(_: _RankReader, __: list[str]) -> None:
    """An action that is no MPI call of interest."""


_HANDLERS: dict[str, Callable[[_RankReader, list[str]], None]] = {
    "init": _RankReader.init, "finalize": _nothing, "comm_size": _nothing, "comm_split": _nothing, "comm_dup": _nothing,
    "location": _nothing,
    "compute": _RankReader.compute, "sleep": _RankReader.sleep,
    "send": lambda r, w: r.message("MPI_Send", w), "recv": lambda r, w: r.message("MPI_Recv", w),
    "isend": lambda r, w: r.message("MPI_Isend", w), "irecv": lambda r, w: r.message("MPI_Irecv", w),
    "wait": _RankReader.wait, "test": _RankReader.test, "waitall": _RankReader.waitall,
    "barrier": lambda r, w: r.put("MPI_Barrier"),
    "bcast": lambda r, w: r.vector("MPI_Bcast", w, 2), "reduce": lambda r, w: r.vector("MPI_Reduce", w, 3),
    "allreduce": lambda r, w: r.vector("MPI_Allreduce", w, 2), "scan": lambda r, w: r.vector("MPI_Scan", w, 2),
    "exscan": lambda r, w: r.vector("MPI_Exscan", w, 2),
    "alltoall": _RankReader.alltoall, "allgather": _RankReader.allgather,
    "gather": _RankReader.gather, "scatter": _RankReader.scatter, "gatherv": _RankReader.gatherv,
    "scatterv": _RankReader.scatterv, "allgatherv": _RankReader.allgatherv, "alltoallv": _RankReader.alltoallv,
    "reducescatter": _RankReader.reducescatter,
}  # fmt: skip


def read(path: Path, flops_per_s: float = DEFAULT_FLOPS_PER_S) -> MemorySource:
    """Reads the list file `path` and the ranks' files that it names, or one file that holds all ranks."""
    lines = [(number, line) for number, line in read_lines(path) if not line.startswith("#")]
    if not lines:
        raise FormatError(path, 1, "the file is empty")
    if len(lines[0][1].split()) > 1:
        return _read_single(path, lines, flops_per_s)
    if len(lines) > _MAX_RANKS:
        raise FormatError(path, len(lines), "too many ranks")
    source = MemorySource(Info(size=len(lines)))
    for rank, (_, name) in enumerate(lines):
        reader = _RankReader(rank, len(lines), flops_per_s)
        file = path.parent / name
        for number, line in read_lines(file):
            _read_line(file, number, line, {rank: reader})
        _end(file, reader)
        source.lists[rank] = reader.events
    return source


def _read_single(path: Path, lines: list[tuple[int, str]], flops_per_s: float) -> MemorySource:
    names = {line.split(maxsplit=1)[0].removeprefix("p") for _, line in lines}
    ranks = len(names)
    readers = {rank: _RankReader(rank, ranks, flops_per_s) for rank in range(ranks)}
    for number, line in lines:
        _read_line(path, number, line, readers)
    for reader in readers.values():
        _end(path, reader)
    return MemorySource(Info(size=ranks), [readers[r].events for r in range(ranks)])


def _end(path: Path, reader: _RankReader) -> None:
    try:
        reader.end()
    except ValueError as error:
        raise UserError(f"{path}: at the end of rank {reader.rank}: {error}") from None


def _read_line(path: Path, number: int, line: str, readers: dict[int, _RankReader]) -> None:
    words = line.split()
    try:
        if words[0].startswith("#"):
            return
        rank = whole(words[0].removeprefix("p"))
        if rank not in readers:
            raise ValueError(f"rank {rank} does not belong here")
        readers[rank].read(words)
    except IndexError:
        raise FormatError(path, number, "the action lacks an argument") from None
    except (ValueError, OverflowError) as error:
        raise FormatError(path, number, str(error)) from None
