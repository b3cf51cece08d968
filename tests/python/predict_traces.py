"""Traces with the patterns of real programs, for the tests of `fallow predict`."""

from __future__ import annotations

import random

from fallow.traces.model import COMM_WORLD, CPU_TIME, Info, MemorySource
from trace_samples import Rank

US, MS = 1_000, 1_000_000


def solver(ranks: int = 4, steps: int = 60, noise: float = 0.01, per_host: int = 2, seed: int = 1) -> MemorySource:
    """Sweeps and a reduction a step: gaps of 1 ms and 400 us that repeat, up to the noise."""
    hosts = [f"n{r // per_host}" for r in range(ranks)]
    source = MemorySource(Info(size=ranks, program="/bin/solver", hosts=hosts, sites=[(64 * i, "/bin/solver", "") for i in range(1, 6)]))
    for r in range(ranks):
        rank, chance = Rank(source, r), random.Random(seed + r)

        def gap(mean: int, chance: random.Random = chance) -> int:
            return round(mean * (1 + noise * chance.uniform(-1, 1)))

        rank.call("MPI_Init", lasts=5 * MS)
        for _ in range(steps):
            for axis in range(3):
                rank.call("MPI_Irecv", gap=gap(MS), comm=COMM_WORLD, peer=axis, site=1, requests=(0,))
                rank.call("MPI_Isend", gap=2 * US, comm=COMM_WORLD, peer=axis, site=2, requests=(1,), size_bytes=4096)
                rank.call("MPI_Waitall", gap=3 * US, site=3, completed=(0, 1), lasts=20 * US, wait_ns=15 * US)
            rank.call("MPI_Allreduce", gap=gap(400 * US), comm=COMM_WORLD, site=4, size_bytes=8, lasts=30 * US, wait_ns=20 * US)
        rank.call("MPI_Finalize", gap=50 * US)
    return source


def by_cpu_clock(source: MemorySource, stretched: int = 10) -> MemorySource:
    """The same computation traced on too few cores: everything takes longer, the CPU time between calls does not."""
    source.info.clock = "cpu"
    for events in source.lists:
        for i, e in enumerate(events):
            lasts = e.exit_ns - e.enter_ns
            events[i] = e._replace(
                flags=e.flags | CPU_TIME, enter_ns=e.enter_ns * stretched, exit_ns=(e.exit_ns) * stretched,
                wait_ns=lasts * stretched - (lasts - e.wait_ns),
            )  # fmt: skip
    return source
