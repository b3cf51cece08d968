"""Writes rank files and run directories for tests. The layout is written down a second time here, on purpose:
a change of the C++ structures that is not a change of the format version fails these tests."""

from __future__ import annotations

import ctypes as c
import json
import random
from dataclasses import dataclass, field
from pathlib import Path

HEADER_BYTES = 65536
BINS = 64
KINDS = ["other", "send", "recv", "start", "wait", "test", "probe", "collective", "rma", "rma_sync", "io", "setup"]

BLOCKING = {"send", "recv", "wait", "probe", "collective", "rma_sync"}


class OpInfo(c.Structure):
    _fields_ = [("name", c.c_char * 46), ("kind", c.c_uint8), ("blocks", c.c_uint8)]


class Module(c.Structure):
    _fields_ = [("base", c.c_uint64), ("end", c.c_uint64), ("path", c.c_char * 224)]


def _fields(kind, names):
    return [(name, kind) for name in names.split()]


class Header(c.Structure):
    _fields_ = [
        ("magic", c.c_char * 8),
        *_fields(c.c_uint32, "version header_bytes"),
        ("block_bytes", c.c_uint64),
        *_fields(c.c_uint32, "op_slots site_slots ring_events bins"),
        *_fields(c.c_uint32, "op_info_bytes counters_bytes op_stats_bytes site_stats_bytes event_bytes"),
        *_fields(c.c_uint32, "blocks_used threads_dropped family mode thread_level"),
        *_fields(c.c_int32, "world_rank world_size local_rank local_size pid"),
        *_fields(c.c_uint32, "state finalized clock hook oversubscribed"),
        *_fields(c.c_double, "tick_hz slowdown_budget"),
        *_fields(c.c_uint64, "tick_start mono_start_ns wall_start_ns tick_last mono_last_ns"),
        *_fields(c.c_uint64, "cpu_user_ns cpu_system_ns switches_voluntary switches_involuntary"),
        ("host", c.c_char * 64),
        ("program", c.c_char * 256),
        ("mpi_version", c.c_char * 256),
        ("ops", OpInfo * 512),
        *_fields(c.c_uint32, "modules_used launch"),
        ("modules", Module * 64),
    ]


class Histogram(c.Structure):
    _fields_ = [
        ("count", c.c_uint64 * BINS),
        ("ticks", c.c_uint64 * BINS),
        ("coarse_count", c.c_uint64 * 3),
        ("coarse_ticks", c.c_uint64 * 3),
    ]

    def add(self, value: int) -> None:
        """A duration in ns."""
        power, coarse = max(value, 1).bit_length() - 1, (value >= 20_000) + (value >= 200_000)
        self.count[power] += 1
        self.ticks[power] += value
        self.coarse_count[coarse] += 1
        self.coarse_ticks[coarse] += value


class OpenCall(c.Structure):
    _fields_ = [
        *_fields(c.c_uint64, "enter seen asleep address"),
        ("peer", c.c_int32),
        *_fields(c.c_uint16, "op comm"),
    ]


class Counters(c.Structure):
    _fields_ = [
        *_fields(c.c_uint64, "thread_id first_tick last_exit_tick events counted computing transfer wait_awake wait_asleep io"),
        *_fields(c.c_uint64, "wake_delay wake_absorbed sleeps wakes_by_peer wakes_sent wake_send_ticks bytes_sent bytes_received"),
        ("gaps", Histogram),
        ("waits", Histogram),
        ("open", OpenCall),
    ]


class OpStats(c.Structure):
    _fields_ = _fields(c.c_uint64, "calls ticks bytes wait_awake wait_asleep wake_delay")


class SiteStats(c.Structure):
    _fields_ = [
        ("address", c.c_uint64),
        *_fields(c.c_uint32, "op comm comm_size module"),
        *_fields(c.c_uint64, "calls ticks bytes gap_ticks wait_awake wait_asleep wake_delay sleeps wait_max"),
    ]


class Event(c.Structure):
    _fields_ = [
        *_fields(c.c_uint64, "enter exit bytes"),
        *_fields(c.c_int32, "peer tag"),
        *_fields(c.c_uint16, "op comm"),
        *_fields(c.c_uint32, "site awake_us asleep_us"),
    ]


@dataclass
class Call:
    """One call to write: times in ns from the rank's start."""

    enter: int
    exit: int
    op: int = 1
    awake: int = 0
    asleep: int = 0
    size: int = 8
    site: int = 1
    peer: int = 0


@dataclass
class RankFile:
    """A rank and its calls, on a clock of 1 GHz."""

    rank: int = 0
    size: int = 1
    comm_size: int = 0
    """Of its call sites' communicators; 0: as of all ranks."""
    calls: list[Call] = field(default_factory=list)
    ops: list[tuple[str, str]] = field(default_factory=lambda: [("", "other"), ("MPI_Recv", "recv")])
    sites: dict[int, tuple[int, int]] = field(default_factory=lambda: {1: (0x401234, 0)})
    modules: list[tuple[int, str]] = field(default_factory=lambda: [(0x400000, "/no/such/program")])
    ring_events: int = 256
    open: Call | None = None  # a wait that has no end: seen last at `exit`
    finalized: int = 1
    state: int = 6
    host: bytes = b"node1"
    program: bytes = b"/bin/program"
    wake_delay: int = 0
    wake_absorbed: int = 0
    wake_send: int = 0
    budget: float = 0.01
    launch: int = 0
    oversubscribed: int = 0
    cpu_ns: int = 2_000_000_000
    wall_start_ns: int = 1_700_000_000_000_000_000

    START = 1_000_000

    def header(self) -> Header:
        h = Header()
        h.magic = b"FALLOWRK"
        h.version, h.header_bytes = 4, HEADER_BYTES
        h.op_slots, h.site_slots, h.ring_events, h.bins = len(self.ops), 8, self.ring_events, BINS
        h.op_info_bytes, h.counters_bytes = c.sizeof(OpInfo), c.sizeof(Counters)
        h.op_stats_bytes, h.site_stats_bytes, h.event_bytes = c.sizeof(OpStats), c.sizeof(SiteStats), c.sizeof(Event)
        h.block_bytes = (
            c.sizeof(Counters)
            + h.op_slots * c.sizeof(OpStats)
            + h.site_slots * c.sizeof(SiteStats)
            + h.ring_events * c.sizeof(Event)
        )
        h.blocks_used, h.family, h.mode, h.clock, h.hook = 1, 1, 3, 1, 1
        h.world_rank, h.world_size, h.local_rank, h.local_size = self.rank, self.size, self.rank, self.size
        h.pid, h.state, h.finalized = 1000 + self.rank, self.state, self.finalized
        h.tick_hz, h.slowdown_budget = 1e9, self.budget
        h.tick_start, h.wall_start_ns = self.START, self.wall_start_ns
        h.tick_last = self.START + max((call.exit for call in self.calls), default=0)
        h.cpu_user_ns, h.cpu_system_ns = self.cpu_ns, 100_000_000
        h.host, h.program, h.mpi_version = self.host, self.program, b"Open MPI v4.1.4, package: Debian"
        for i, (name, kind) in enumerate(self.ops):
            h.ops[i].name, h.ops[i].kind, h.ops[i].blocks = name.encode(), KINDS.index(kind), kind in BLOCKING
        h.launch, h.oversubscribed = self.launch, self.oversubscribed
        h.modules_used = len(self.modules)
        for i, (base, path) in enumerate(self.modules):
            h.modules[i].base, h.modules[i].end, h.modules[i].path = base, base + 0x100000, path.encode()
        return h

    def build(self) -> bytes:
        counters, ops = Counters(), (OpStats * len(self.ops))()
        sites, ring = (SiteStats * 8)(), (Event * self.ring_events)()
        counters.thread_id, counters.events = 77, len(self.calls)
        counters.wake_delay, counters.wake_absorbed = self.wake_delay, self.wake_absorbed
        counters.wake_send_ticks = self.wake_send
        counters.sleeps = sum(call.asleep > 0 for call in self.calls)
        for slot, (address, module) in self.sites.items():
            sites[slot].address, sites[slot].module, sites[slot].comm_size = address, module, self.comm_size or self.size
        last = self.calls[0].enter if self.calls else 0
        counters.first_tick = self.START + last
        for number, call in enumerate(self.calls):
            self._count(counters, ops[call.op], sites[call.site], call, call.enter - last)
            last = call.exit
            ring[number % self.ring_events] = Event(
                self.START + call.enter, self.START + call.exit, call.size, call.peer, 5, call.op, 0, call.site,
                call.awake // 1000, call.asleep // 1000,
            )  # fmt: skip
        counters.last_exit_tick = self.START + last
        if (wait := self.open) is not None:
            enter, seen, site = self.START + wait.enter, self.START + wait.exit, self.sites[wait.site][0]
            counters.open = OpenCall(enter, seen, wait.asleep, site, wait.peer, wait.op, 0)
        head = bytes(self.header()).ljust(HEADER_BYTES, b"\0")
        return head + bytes(counters) + bytes(ops) + bytes(sites) + bytes(ring)

    def _count(self, counters, op, site, call: Call, gap: int) -> None:
        time = call.exit - call.enter
        wait = call.awake + call.asleep
        counters.computing += gap
        if self.ops[call.op][1] == "io":
            counters.io += time
        else:
            counters.transfer += time - wait
        counters.wait_awake += call.awake
        counters.wait_asleep += call.asleep
        counters.bytes_received += call.size
        counters.gaps.add(gap)
        if self.ops[call.op][1] in BLOCKING:
            counters.waits.add(wait)
        site.op, site.module = call.op, site.module
        site.gap_ticks += gap
        site.sleeps += call.asleep > 0
        site.wait_max = max(site.wait_max, wait)
        for row in (op, site):
            row.calls += 1
            row.ticks += time
            row.bytes += call.size
            row.wait_awake += call.awake
            row.wait_asleep += call.asleep

    def write(self, directory: Path) -> Path:
        path = directory / f"rank-{self.rank}"
        while path.exists():
            path = path.with_name(path.name + "-more")
        path.write_bytes(self.build())
        return path


OPS = [("", "other"), ("MPI_Recv", "recv"), ("MPI_Allreduce", "collective"), ("MPI_Isend", "start"),
       ("MPI_Waitall", "wait"), ("MPI_File_write_all", "io")]  # fmt: skip


def lively_rank(rank: int, size: int, calls: int, seed: int = 1, **kwargs) -> RankFile:
    """A rank that computes, exchanges, reduces, waits and now and then writes."""
    rng = random.Random(seed * 1000 + rank)
    at, out = 20_000, []
    for i in range(calls):
        at += int(rng.lognormvariate(11.5, 1.6))
        op = 5 if i % 97 == 96 else rng.choice([1, 2, 3, 4])
        if op == 3:
            time, awake, asleep = rng.randint(300, 3000), 0, 0
        elif op == 5:
            time, awake, asleep = rng.randint(2_000_000, 9_000_000), 0, 0
        else:
            wait = int(rng.lognormvariate(12.0, 1.8))
            awake = min(wait, 60_000)
            asleep = wait - awake
            time = wait + rng.randint(500, 20_000)
        out.append(Call(at, at + time, op, awake, asleep, rng.choice([8, 4096, 65536]), op, (rank + 1) % size))
        at += time
    sites = {op: (0x401000 + op * 64, 0) for op in range(1, 6)}
    return RankFile(rank=rank, size=size, calls=out, ops=OPS, sites=sites, wake_delay=at // 400, wake_absorbed=at // 1000, **kwargs)


def write_run(directory: Path, ranks: list[RankFile], **info) -> Path:
    """A run directory with run.json; `info` overrides its fields."""
    directory.mkdir(parents=True, exist_ok=True)
    for rank in ranks:
        rank.write(directory)
    last = max((call.exit for rank in ranks for call in rank.calls), default=0)
    data = {
        "schema": "fallow-run", "version": 1, "command": ["mpirun", "-n", str(len(ranks)), "./app"],
        "run_id": "test", "with_fallow": True, "cwd": "/tmp", "host": "node1", "kernel": "6.1",
        "fallow_version": "0.1.0", "python_version": "3.11", "started": "2026-01-02T03:04:05+0000",
        "start_ns": 1_700_000_000_000_000_000, "run_time_s": last * 1e-9 + 0.3, "exit_status": 0, "signal": None,
        "cpu_user_s": 3.0, "cpu_system_s": 0.2, "options": {"mode": "auto"},
    } | info  # fmt: skip
    (directory / "run.json").write_text(json.dumps(data))
    return directory
