"""Dimemas traces (.dim), as prv2dim of Dimemas 5 writes them.

Records: 1 CPU burst (seconds), 2 send, 3 receive (0 recv, 1 irecv, 2 wait), 10 collective, 20 user event,
d:1 communicator, s offset of a task's records. Tasks count from 0. There are no times but the bursts'.
"""

from __future__ import annotations

import re
from pathlib import Path

from fallow.errors import UserError
from fallow.traces import model, others, persistent
from fallow.traces.model import COMM_NONE, COMM_SELF, COMM_WORLD, FIRST_COMM, Event, Info, MemorySource, Source
from fallow.traces.packed import PackedEvents
from fallow.traces.text import (
    ONE_THREAD,
    FormatError,
    Losses,
    Message,
    RequestNumbers,
    nanoseconds,
    read_lines,
    received,
    sent,
    tag_of,
    whole,
)

_COLLECTIVES = (
    "Barrier", "Bcast", "Gather", "Gatherv", "Scatter", "Scatterv", "Allgather", "Allgatherv", "Alltoall", "Alltoallv",
    "Reduce", "Allreduce", "Reduce_scatter", "Scan",
)  # fmt: skip
_NUMBERS = {f"MPI_{name}": i for i, name in enumerate(_COLLECTIVES)}
_SENDS = {  # synchronism: bit 0 rendezvous, bit 1 immediate
    "MPI_Send": 0, "MPI_Ssend": 1, "MPI_Rsend": 0, "MPI_Bsend": 2, "MPI_Isend": 2, "MPI_Issend": 3, "MPI_Irsend": 2,
    "MPI_Ibsend": 2,
}  # fmt: skip
_SEND_NAMES = ("MPI_Send", "MPI_Ssend", "MPI_Isend", "MPI_Issend")
_RECEIVES = ("MPI_Recv", "MPI_Irecv", "MPI_Wait")
_TAKES = ("MPI_Recv", "MPI_Irecv", "MPI_Mrecv", "MPI_Imrecv")
_HEADER = re.compile(r'#DIMEMAS:"?([^"]*)"?:(\d+)(?:,\s*(\d+))?:(\d+)\(([\d,]*)\)(?:,(\d+))?\s*$')
_MAX_RANKS = 1 << 21
_OFFSET_WIDTH = 15  # room that is kept for the place of the offsets


# --- writing


class _RankWriter:
    def __init__(self, source: Source, rank: int, own_comm: int, losses: Losses) -> None:
        self.info, self.rank, self.losses = source.info, rank, losses
        self.own_comm = own_comm  # stands for MPI_COMM_SELF
        self.open: dict[int, str] = {}  # receive requests: the wait's record
        self.lines: list[str] = []

    def record(self, kind: int, *fields: object) -> None:
        self.lines.append(":".join(str(f) for f in (kind, self.rank, 0, *fields)))

    def add(self, e: Event) -> None:
        op = model.ops()[e.op]
        if e.thread:
            self.losses.add(ONE_THREAD)
        self.record(1, f"{e.compute_ns // 10**9}.{e.compute_ns % 10**9:09d}")
        if e.site:
            self.losses.add("call sites")
        if op.name in _SENDS:
            if op.name not in _SEND_NAMES:
                self.losses.add("ready and buffered sends as such")
            self.message(2, e, sent(e), _SENDS[op.name])
        elif op.name in _TAKES:
            if op.name in ("MPI_Mrecv", "MPI_Imrecv"):
                self.losses.add("receives of probed messages as such")
            self.message(3, e, sent(e), int(op.has(model.CREATES)))
        elif op.name.startswith("MPI_Sendrecv"):
            self.losses.add("MPI_Sendrecv as one call (written as irecv, send, wait)")
            self.message(3, e, received(e), 1)
            self.message(2, e, sent(e), 0)
            self.message(3, e, received(e), 2)
        elif op.name.startswith("MPI_Isendrecv"):
            self.losses.add("MPI_Isendrecv as one call (written as irecv, isend)")
            self.message(3, e, received(e), 1)
            self.message(2, e, sent(e), _SENDS["MPI_Isend"])
        elif op.has(model.COMPLETES):
            self.wait(op.name, e)
        elif op.has(model.COLLECTIVE) and model.ops()[op.blocking].name in _NUMBERS and op.has(model.STARTS):
            self.collective(op, e)
        elif op.name not in ("MPI_Init", "MPI_Init_thread", "MPI_Finalize"):
            self.losses.add(persistent.AS_STARTED if op.has(model.PERSISTENT) else op.name)

    def message(self, kind: int, e: Event, m: Message, how: int) -> None:
        if m.peer == model.NULL_PEER:
            return
        partner = self.info.world_rank(e.comm, self.rank, m.peer)
        if partner < 0:
            self.losses.add("messages whose partner is not known")
            return
        fields = (partner, 0, m.size_bytes, tag_of(m.tag, self.losses), self.comm(e.comm), how)
        self.record(kind, *fields)
        if kind == 3 and how == 1 and e.requests:
            self.open[e.requests[0]] = ":".join(str(f) for f in (3, self.rank, 0, *fields[:-1], 2))

    def wait(self, name: str, e: Event) -> None:
        receives = [self.open.pop(r) for r in e.completed if r in self.open]
        if name != "MPI_Wait" or len(receives) != 1:
            self.losses.add("waits for sends, for several requests or for none as one call")
        self.lines.extend(receives)

    def comm(self, comm: int) -> int:
        """World is 1 as in other tools' traces; the program's own follow."""
        return self.own_comm if comm == COMM_SELF else max(comm, 1)

    def collective(self, op: model.Op, e: Event) -> None:
        if self.info.is_inter(e.comm):
            self.losses.add("collectives of intercommunicators")
            return
        if e.comm == COMM_NONE:  # not to be made one of the world, which others would wait for
            self.losses.add("collectives of unknown communicators")
            return
        if op.number != op.blocking:
            self.losses.add("non-blocking collectives (written as blocking ones)")
        if e.counts or e.recv_counts:
            self.losses.add("counts per peer (the sums are written)")
        number = _NUMBERS[model.ops()[op.blocking].name]
        self.record(10, number, self.comm(e.comm), max(e.root, 0), 0, e.size_bytes, e.recv_bytes, 1)


def write(source: Source, path: Path, losses: Losses) -> None:
    """Writes one .dim file."""
    info = source.info
    threads = ",".join(["1"] * info.size)
    alone = [r for r in range(info.size) if any(e.comm == COMM_SELF for e in source.events(r))]
    own_comms = {rank: number for number, rank in enumerate(alone, FIRST_COMM + len(info.comms))}
    count = 1 + len(info.comms) + len(own_comms)

    name = re.sub(r'[^ -~]|"', "_", path.name)

    def header(offset: str) -> str:
        line = f'#DIMEMAS:"{name}":1,{offset}:{info.size}({threads}),{count}'
        return line + " " * (_OFFSET_WIDTH - len(offset)) + "\n"

    with path.open("w+", encoding="ascii", newline="\n") as file:
        file.write(header("X" * _OFFSET_WIDTH))
        _write_comm(file, 1, list(range(info.size)))
        for number in range(FIRST_COMM, FIRST_COMM + len(info.comms)):
            if info.is_inter(number):
                losses.add("intercommunicators (both groups are written as one communicator)")
            _write_comm(file, number, list(info.everyone(number)))
        for rank, number in own_comms.items():
            _write_comm(file, number, [rank])
        offsets = []
        for rank in range(info.size):
            offsets.append(file.tell())
            writer = _RankWriter(source, rank, own_comms.get(rank, 0), losses)
            for event in persistent.unfolded(source.events(rank)):
                writer.add(event)
                for request in persistent.freed(event):
                    writer.open.pop(request, None)
                if len(writer.lines) > 1 << 16:
                    file.write("\n".join(writer.lines) + "\n")
                    writer.lines.clear()
            file.write("".join(line + "\n" for line in writer.lines))
        end = file.tell()
        file.write("".join(f"s:{rank}:{offset}\n" for rank, offset in enumerate(offsets)))
        file.seek(0)
        file.write(header(str(end)))
    losses.add("times inside MPI")


def _write_comm(file: object, number: int, ranks: list[int]) -> None:
    print(f"d:1:{number}:{len(ranks)}:" + ":".join(map(str, ranks)), file=file)  # type: ignore[call-overload]


# --- reading


class _Reader:
    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self.source = MemorySource(Info(size=ranks), [PackedEvents() for _ in range(ranks)])
        self.clock = [0] * ranks
        self.compute = [0] * ranks
        self.requests = [RequestNumbers() for _ in range(ranks)]
        self.comms: dict[int, int] = {}

    def comm(self, text: str) -> int:
        number = whole(text, -(2**31), 2**31)
        if number not in self.comms:
            raise ValueError(f"communicator {number} is not defined")
        return self.comms[number]

    def define_comm(self, f: list[str]) -> None:
        if f[1] != "1":
            return  # a definition of another kind
        number, count = whole(f[2], -(2**31), 2**31), whole(f[3], 1, self.ranks)
        ranks = [whole(x, 0, self.ranks - 1) for x in f[4:]]
        if len(ranks) != count or len(set(ranks)) != count:
            raise ValueError(f"communicator {number} does not have {count} ranks")
        if number in self.comms:
            raise ValueError(f"communicator {number} is defined twice")
        if ranks == list(range(self.ranks)) and COMM_WORLD not in self.comms.values():
            self.comms[number] = COMM_WORLD
            return
        self.source.info.comms.append((model.runs_of(ranks), []))
        self.comms[number] = FIRST_COMM + len(self.source.info.comms) - 1

    def put(self, rank: int, name: str, **fields: object) -> None:
        now = self.clock[rank] = self.clock[rank] + self.compute[rank]
        if now >= 1 << 62:
            raise ValueError("computation of more than a century")
        events = self.source.lists[rank]
        event = Event(op=model.op_number(name), enter_ns=now, exit_ns=now, compute_ns=self.compute[rank])
        event = event._replace(**fields)  # type: ignore[arg-type]
        events.append(event if events else model.first_of_rank(event))
        self.compute[rank] = 0

    def end(self) -> None:
        """What ranks compute after their last call comes before MPI_Finalize."""
        for rank, rest in enumerate(self.compute):
            if rest:
                self.put(rank, "MPI_Finalize")

    def message(self, rank: int, f: list[str]) -> None:
        world, size, tag, comm, how = (
            whole(f[3], 0, self.ranks - 1),
            whole(f[5]),
            whole(f[6], -1, 2**31 - 1),
            self.comm(f[7]),
            whole(f[8], 0, 3),
        )
        peer = self.source.info.place(comm, rank, world)
        if peer < 0:
            raise ValueError(f"task {world} is not in the communicator")
        key = (world, size, tag, comm)
        requests: tuple[int, ...] = ()
        if f[0] == "2":
            name = _SEND_NAMES[how]
        else:
            name = _RECEIVES[whole(f[8], 0, 2)]
            if name == "MPI_Wait":
                number = self.requests[rank].complete(key)
                if number is None:
                    raise ValueError("wait for a message that was not started")
                return self.put(rank, name, completed=(number,))
            if name == "MPI_Irecv":
                requests = (self.requests[rank].add(key),)
        self.put(rank, name, comm=comm, peer=peer, tag=tag, size_bytes=size, requests=requests)
        return None

    def collective(self, rank: int, f: list[str]) -> None:
        name = "MPI_" + _COLLECTIVES[whole(f[3], 0, len(_COLLECTIVES) - 1)]
        rooted = model.ops()[model.op_number(name)].has(model.ROOTED)
        root = whole(f[5], 0, self.ranks - 1) if rooted else model.NO_PEER
        self.put(rank, name, comm=self.comm(f[4]), root=root, size_bytes=whole(f[7]), recv_bytes=whole(f[8]))

    def record(self, f: list[str]) -> None:
        if f[0] == "d":
            return self.define_comm(f)
        if f[0] in ("s", "20", "30", "40"):
            return None
        if f[0] not in ("1", "2", "3", "10"):
            raise ValueError(f"unknown record {f[0]!r}")
        rank = whole(f[1], 0, self.ranks - 1)
        if whole(f[2]) != 0:
            raise ValueError("tasks of more than one thread cannot be read")
        if f[0] == "1":
            self.compute[rank] += nanoseconds(f[3], 1e9)
            return None
        return self.collective(rank, f) if f[0] == "10" else self.message(rank, f)


def read(path: Path) -> MemorySource:
    """Reads one .dim file."""
    reader: _Reader | None = None
    number = 0
    for number, line in read_lines(path):
        try:
            if reader is None:
                reader = _Reader(_ranks_of(line))
                continue
            reader.record(line.split(":"))
        except IndexError:
            raise FormatError(path, number, "the record lacks a field") from None
        except (ValueError, OverflowError) as error:
            raise FormatError(path, number, str(error)) from None
    if reader is None:
        raise UserError(f"{path}: line 1: the file is empty")
    try:
        reader.end()
        others.scatter_counts(reader.source)
    except ValueError as error:
        raise FormatError(path, number, str(error)) from None
    return reader.source


def _ranks_of(line: str) -> int:
    found = _HEADER.match(line)
    if found is None:
        raise ValueError("not the header of a Dimemas trace")
    ranks = whole(found[4], 1, _MAX_RANKS)
    threads = found[5].split(",")
    if len(threads) != ranks:
        raise ValueError(f"{ranks} tasks, but threads of {len(threads)}")
    return ranks
