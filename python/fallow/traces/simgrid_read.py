"""Reads SimGrid's time-independent traces, our own and those of other tools; see simgrid.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from fallow.errors import UserError
from fallow.traces import model
from fallow.traces.model import COMM_WORLD, Event, Info, MemorySource
from fallow.traces.packed import PackedEvents
from fallow.traces.simgrid import DEFAULT_FLOPS_PER_S
from fallow.traces.text import LARGEST, FormatError, RequestNumbers, decimal, nanoseconds, read_lines, whole

_ROOTED = ("MPI_Bcast", "MPI_Reduce")
_MAX_RANKS = 1 << 21
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


class _RankReader:
    def __init__(self, rank: int, ranks: int, flops_per_s: float) -> None:
        self.rank, self.ranks, self.ns_per_flop = rank, ranks, 1e9 / flops_per_s
        self.clock_ns = 0
        self.compute_ns = 0
        self.requests = RequestNumbers()
        self.events = PackedEvents()
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
    first = next(_lines(path), None)
    if first is None:
        raise FormatError(path, 1, "the file is empty")
    if len(first[1].split()) > 1:
        return _read_single(path, flops_per_s)
    lines = list(_lines(path))
    if len(lines) > _MAX_RANKS:
        raise FormatError(path, len(lines), "too many ranks")
    ranks: list[PackedEvents] = []
    for rank, (_, name) in enumerate(lines):
        reader = _RankReader(rank, len(lines), flops_per_s)
        file = path.parent / name
        for number, line in read_lines(file):
            _read_line(file, number, line, {rank: reader})
        _end(file, reader)
        ranks.append(reader.events)
    return MemorySource(Info(size=len(lines)), ranks)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in read_lines(path) if not line.startswith("#"))


def _read_single(path: Path, flops_per_s: float) -> MemorySource:
    names = {line.split(maxsplit=1)[0].removeprefix("p") for _, line in _lines(path)}
    ranks = len(names)
    readers = {rank: _RankReader(rank, ranks, flops_per_s) for rank in range(ranks)}
    for number, line in _lines(path):
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
