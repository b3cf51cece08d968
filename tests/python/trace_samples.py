"""Small traces for the tests of traces and converters."""

from __future__ import annotations

import random

from fallow.traces import model
from fallow.traces.model import COMM_WORLD, CPU_TIME, FIRST_COMM, Event, Info, MemorySource


class Rank:
    """Makes the events of one rank, one after the other."""

    def __init__(self, source: MemorySource, rank: int) -> None:
        self.events = source.lists[rank]
        self.now = 0

    def call(self, name: str, *, gap: int = 1000, lasts: int = 300, **fields: object) -> None:
        last = self.now
        self.now += gap
        event = Event(
            op=model.op_number(name),
            enter_ns=self.now,
            exit_ns=self.now + lasts,
            compute_ns=self.now - last if self.events else 0,
        )
        if not self.events:
            event = event._replace(compute_ns=0)
        self.events.append(event._replace(**fields))
        self.now += lasts


def rich(ranks: int = 4, steps: int = 5) -> MemorySource:
    """Everything that Fallow's own format carries."""
    half = ranks // 2
    info = Info(
        size=ranks, program="/bin/app", mpi_version="MPI 9", start_wall_ns=123456789, hosts=[f"n{r // 2}" for r in range(ranks)],
        comms=[([(0, half, 1)], []), ([(0, ranks, 1)], [])], sites=[(64, "/bin/app", ""), (0, "", "label")],
    )  # fmt: skip
    source = MemorySource(info)
    for r in range(ranks):
        rank = Rank(source, r)
        rank.call("MPI_Init", site=1)
        for step in range(steps):
            left, right = (r - 1) % ranks, (r + 1) % ranks
            rank.call("MPI_Irecv", comm=COMM_WORLD, peer=left, tag=step, size_bytes=1 << step, requests=(0,), site=1)
            rank.call("MPI_Isend", comm=COMM_WORLD, peer=right, tag=step, size_bytes=1 << step, requests=(1,), site=2)
            rank.call("MPI_Waitall", completed=(0, 1), wait_ns=100)
            rank.call(
                "MPI_Sendrecv",
                comm=COMM_WORLD,
                peer=right,
                tag=7,
                recv_peer=left,
                recv_tag=7,
                size_bytes=10,
                recv_bytes=10,
            )
            rank.call(
                "MPI_Alltoallv",
                comm=COMM_WORLD,
                size_bytes=ranks,
                recv_bytes=ranks,
                counts=(1,) * ranks,
                recv_counts=(1,) * ranks,
            )
            rank.call("MPI_Bcast", comm=FIRST_COMM if r < half else COMM_WORLD, root=0, size_bytes=8)
            rank.call("MPI_Allreduce", comm=FIRST_COMM + 1, size_bytes=8, lasts=0, gap=0)
            rank.call("MPI_Iallreduce", comm=COMM_WORLD, size_bytes=8, requests=(2,))
            rank.call("MPI_Wait", completed=(2,), gap=300_000, flags=CPU_TIME, compute_ns=77)
            rank.call("MPI_Recv", comm=COMM_WORLD, peer=model.ANY_PEER, tag=model.ANY_TAG)
            rank.call("MPI_Win_fence")
        rank.call("MPI_Finalize")
    return source


def plain(ranks: int = 4, steps: int = 6) -> MemorySource:
    """What formats without times carry: calls that last nothing, computation between them, the world only."""
    source = MemorySource(Info(size=ranks))
    for r in range(ranks):
        rank = Rank(source, r)
        for step in range(steps):
            left, right = (r - 1) % ranks, (r + 1) % ranks

            def call(name: str, rank: Rank = rank, step: int = step, **fields: object) -> None:
                rank.call(name, gap=1000 * step if rank.events else 0, lasts=0, **fields)

            if r % 2 == 0:
                call("MPI_Send", comm=COMM_WORLD, peer=right, tag=step, size_bytes=4096)
                call("MPI_Recv", comm=COMM_WORLD, peer=left, tag=step, size_bytes=4096)
            else:
                call("MPI_Recv", comm=COMM_WORLD, peer=left, tag=step, size_bytes=4096)
                call("MPI_Send", comm=COMM_WORLD, peer=right, tag=step, size_bytes=4096)
            call("MPI_Irecv", comm=COMM_WORLD, peer=left, tag=99, size_bytes=64, requests=(0,))
            call("MPI_Send", comm=COMM_WORLD, peer=right, tag=99, size_bytes=64)
            call("MPI_Wait", completed=(0,))
            call("MPI_Barrier", comm=COMM_WORLD)
            call("MPI_Bcast", comm=COMM_WORLD, root=1, size_bytes=128)
            call("MPI_Reduce", comm=COMM_WORLD, root=0, size_bytes=16)
            call("MPI_Allreduce", comm=COMM_WORLD, size_bytes=8)
            call("MPI_Alltoall", comm=COMM_WORLD, size_bytes=8 * ranks, recv_bytes=8 * ranks)
            call("MPI_Allgather", comm=COMM_WORLD, size_bytes=8, recv_bytes=8 * ranks)
    return source


def mutate(text: bytes, chance: random.Random) -> bytes:
    """Damages a text the way that files are damaged, and the way that hostile ones are made."""
    out = bytearray(text)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(out)) if out else 0
        kind = chance.randrange(6)
        if kind == 0:
            del out[at : at + chance.randint(1, 40)]
        elif kind == 1:
            out[at:at] = chance.choice(
                (b"-1", b"99999999999999999999", b":", b"\n", b"nan", b"1e400", b" ", b"\x00\xff", b"(")
            )
        elif kind == 2 and out:
            out[at] = chance.randrange(256)
        elif kind == 3:
            out = out[:at]
        elif kind == 4:
            out[at : at + 1] = chance.choice((b"0", b"9", b"-", b":"))
        else:
            end = at + chance.randint(1, 200)
            out[at:at] = out[at:end]
    return bytes(out)
