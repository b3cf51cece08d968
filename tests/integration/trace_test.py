"""`fallow run --trace`: what is recorded is what the program does, and it can be replayed."""

from __future__ import annotations

import itertools
import re
import statistics
from pathlib import Path
from typing import Any

import pytest
from coverage_test import BINDINGS, CALLS, RANKS, calls_program
from harness.building import build
from harness.fallow import BARE, Fallow
from harness.families import REPOSITORY
from harness.lab import Lab
from harness.traces import Call, Trace, check_requests, read_trace, replay

MODE = "auto"
NO_PEER, ANY, NULL, ROOT = -1, -2, -3, -4
ANY_SOURCE, ANY_TAG, FAILED, IN_PLACE, COMPLETE, CPU_TIME = 1, 2, 4, 8, 16, 32
SIZE = 4
WORLD = (0, 1, 2, 3)
CHECKED = ("peer", "tag", "recv_peer", "recv_tag", "root", "size_bytes", "recv_bytes", "counts", "recv_counts", "flags")
DEFAULTS = {"peer": -1, "tag": -1, "recv_peer": -1, "recv_tag": -1, "root": -1, "size_bytes": 0, "recv_bytes": 0, "flags": 0}
Expected = tuple[str, tuple[int, ...], dict[str, Any]]


def record(lab: Lab, fallow: Fallow, ranks: int, program: Path, *args: str, options: tuple[str, ...] = ()) -> tuple[Trace, Path]:
    """Runs a program under `fallow run --trace`; its output must be the bare one's."""
    bare = lab.run(BARE, ranks, program, *args)
    file = lab.scratch / f"{program.name}-{len(list(lab.scratch.iterdir()))}.ftr"
    trial = lab.run(MODE, ranks, program, *args, options=("--trace", str(file), *options))
    assert trial.outcome.rc == bare.outcome.rc == 0, trial.outcome.describe()
    assert sorted(trial.outcome.out.splitlines()) == sorted(bare.outcome.out.splitlines())
    assert re.search(rf"fallow: trace {re.escape(str(file))}: [\d ]+ events? of {ranks} ranks?", trial.outcome.err), trial.outcome.describe()
    assert not file.with_name(file.name + ".parts").exists()
    trace = read_trace(fallow, file)
    assert trace.complete == [True] * ranks and trace.dropped == 0 and not trace.problems
    return trace, file


def _messages(rank: int) -> list[Expected]:
    after, before = (rank + 1) % SIZE, (rank - 1) % SIZE

    def on(op: str, **fields: Any) -> Expected:
        return op, WORLD, fields

    def off(op: str, **fields: Any) -> Expected:
        return op, (), fields

    first = [on("MPI_Send", peer=0, tag=rank, size_bytes=10 * rank)]
    if rank == 0:  # in any order: see _sort_received
        first = [on("MPI_Recv", peer=i, tag=i, size_bytes=100, flags=ANY_SOURCE | ANY_TAG) for i in range(1, SIZE)]
    persistent = [off("MPI_Startall"), off("MPI_Wait"), off("MPI_Wait")]
    return [
        *first,
        on("MPI_Barrier"),
        on("MPI_Irecv", peer=before, tag=5, size_bytes=32),
        on("MPI_Isend", peer=after, tag=5, size_bytes=32),
        off("MPI_Waitall"),
        on("MPI_Irecv", peer=before, tag=6, size_bytes=16),
        on("MPI_Issend", peer=after, tag=6, size_bytes=16),
        off("MPI_Waitany"),
        off("MPI_Waitsome"),
        on("MPI_Sendrecv", peer=after, tag=7, size_bytes=12, recv_peer=before, recv_tag=7, recv_bytes=80, flags=ANY_SOURCE),
        on("MPI_Sendrecv_replace", peer=after, tag=8, size_bytes=16, recv_peer=before, recv_tag=8, recv_bytes=16),
        on("MPI_Send", peer=NULL, tag=9, size_bytes=4),
        on("MPI_Send_init", peer=after, tag=10, size_bytes=20),
        on("MPI_Recv_init", peer=before, tag=10, size_bytes=20),
        *persistent,
        *persistent,
        off("MPI_Request_free"),
        off("MPI_Request_free"),
        on("MPI_Isend", peer=after, tag=11, size_bytes=6),
        on("MPI_Probe", peer=before, tag=11, flags=ANY_TAG),
        on("MPI_Recv", peer=before, tag=11, size_bytes=6),
        off("MPI_Wait"),
        on("MPI_Irecv", peer=before, tag=99, size_bytes=4),
        off("MPI_Cancel"),
        off("MPI_Wait", counts=[1], recv_counts=[0]),  # in time: see trace::Outcome
        on("MPI_Isend", peer=after, tag=12, size_bytes=7),
        on("MPI_Mprobe", peer=before, tag=12, flags=ANY_SOURCE),
        on("MPI_Mrecv", peer=before, tag=12, size_bytes=7),
        off("MPI_Test", flags=COMPLETE),
    ]


def _collectives(rank: int) -> list[Expected]:
    def on(op: str, **fields: Any) -> Expected:
        return op, WORLD, fields

    blocks = [1, 0, 3, 4]
    counts = [rank + i for i in range(SIZE)]
    return [
        on("MPI_Bcast", root=1, size_bytes=64),
        on("MPI_Reduce", root=2, size_bytes=24),
        on("MPI_Allreduce", size_bytes=8, flags=IN_PLACE),
        on("MPI_Gather", root=0, size_bytes=8, recv_bytes=32 if rank == 0 else 0),
        on("MPI_Scatter", root=0, size_bytes=12 if rank == 0 else 0, recv_bytes=3),
        on("MPI_Allgather", size_bytes=5, recv_bytes=20),
        on("MPI_Alltoall", size_bytes=8, recv_bytes=8),
        on("MPI_Alltoallv", size_bytes=sum(counts), recv_bytes=sum(counts), counts=counts, recv_counts=counts),
        on("MPI_Gatherv", root=3, size_bytes=blocks[rank], recv_bytes=8 if rank == 3 else 0, recv_counts=blocks if rank == 3 else []),
        on("MPI_Scatterv", root=3, size_bytes=8 if rank == 3 else 0, recv_bytes=blocks[rank], counts=blocks if rank == 3 else []),
        on("MPI_Allgatherv", size_bytes=blocks[rank], recv_bytes=8, recv_counts=blocks),
        on("MPI_Reduce_scatter", size_bytes=32, recv_bytes=4 * blocks[rank], counts=[4 * b for b in blocks]),
        on("MPI_Reduce_scatter_block", size_bytes=32, recv_bytes=8),
        on("MPI_Scan", size_bytes=4),
        on("MPI_Ibarrier"),
        ("MPI_Wait", (), {}),
        on("MPI_Iallreduce", size_bytes=16),
        ("MPI_Wait", (), {}),
    ]


def _communicators(rank: int) -> list[Expected]:
    half, odd = ((3, 1), True) if rank % 2 else ((2, 0), False)
    other = 1 - rank // 2
    leads = ROOT if rank == 2 else NULL
    beside = [(rank + 3) % SIZE + 1, (rank + 1) % SIZE + 1]  # ranks in the ring, plus one
    return [
        ("MPI_Comm_split", WORLD, {}),
        ("MPI_Bcast", half, {"root": 0, "size_bytes": 5 if odd else 4}),
        ("MPI_Comm_dup", half, {}),
        ("MPI_Bcast", half, {"root": 1, "size_bytes": 6}),
        ("MPI_Comm_idup", WORLD, {}),
        ("MPI_Wait", (), {}),
        ("MPI_Bcast", WORLD, {"root": 0, "size_bytes": 7}),
        ("MPI_Comm_free", half, {}),
        ("MPI_Comm_dup", half, {}),
        ("MPI_Bcast", half, {"root": 1, "size_bytes": 8}),
        ("MPI_Intercomm_create", half, {"tag": 20}),
        ("MPI_Sendrecv", half, {"peer": other, "tag": 21, "size_bytes": 9, "recv_peer": other, "recv_tag": 21, "recv_bytes": 9}),
        ("MPI_Bcast", half, {"root": 0 if odd else leads, "size_bytes": 0 if leads == NULL and not odd else 11}),
        ("MPI_Cart_create", WORLD, {"counts": beside, "recv_counts": beside}),
        ("MPI_Neighbor_allgather", WORLD, {"size_bytes": 3, "recv_bytes": 6}),
        ("MPI_Bcast", (rank,), {"root": 0, "size_bytes": 4}),
        ("MPI_Comm_free", WORLD, {}),
        ("MPI_Comm_free", half, {}),
        ("MPI_Comm_free", WORLD, {}),
        ("MPI_Comm_free", half, {}),
        ("MPI_Comm_free", half, {}),
    ]


def _memory_and_files(rank: int) -> list[Expected]:
    half, turned = (1, 3) if rank % 2 else (0, 2), (3, 2, 1, 0)
    after, before = (rank + 1) % SIZE, (rank - 1) % SIZE
    return [
        ("MPI_Comm_split", WORLD, {}),
        ("MPI_Win_create", turned, {}),
        ("MPI_Win_fence", turned, {}),
        ("MPI_Put", turned, {"peer": 1, "size_bytes": 8}),
        ("MPI_Get", turned, {"peer": 0, "size_bytes": 4}),
        ("MPI_Win_fence", turned, {}),
        ("MPI_Win_lock", turned, {"peer": 1}),
        ("MPI_Fetch_and_op", turned, {"peer": 1, "size_bytes": 4, "recv_bytes": 4}),
        ("MPI_Win_unlock", turned, {"peer": 1}),
        ("MPI_Win_post", turned, {"counts": [before]}),
        ("MPI_Win_start", turned, {"counts": [after]}),
        ("MPI_Put", turned, {"peer": 3 - after, "size_bytes": 12}),
        ("MPI_Win_complete", turned, {}),
        ("MPI_Win_wait", turned, {}),
        ("MPI_Win_free", turned, {}),
        ("MPI_Comm_split", WORLD, {}),
        ("MPI_File_open", half, {}),
        ("MPI_File_write_at_all", half, {"size_bytes": 16}),
        ("MPI_File_close", half, {}),
        ("MPI_Comm_free", half, {}),
        ("MPI_Comm_free", turned, {}),
    ]


def _expected(rank: int) -> list[Expected]:
    middle = [*_messages(rank), *_collectives(rank), *_communicators(rank), *_memory_and_files(rank)]
    return [("MPI_Init", WORLD, {}), *middle, ("MPI_Finalize", (), {})]


def _as_expected(call: Call) -> Expected:
    fields = {k: call.fields[k] for k in CHECKED if call.fields[k] not in (DEFAULTS.get(k, []), ())}
    return call.op, call.members, {k: list(v) if isinstance(v, list | tuple) else v for k, v in fields.items()}


def _plain(expected: Expected) -> Expected:
    op, members, fields = expected
    return op, members, {k: v for k, v in fields.items() if v != DEFAULTS.get(k, [])}


def _without_failed_tests(calls: list[Call]) -> list[Call]:
    return [c for c in calls if not (c.op == "MPI_Test" and not c.completed)]


def test_every_field(lab: Lab, fallow: Fallow) -> None:
    """Operation, communicator, peer, tag, bytes both ways, counts and flags of every call of every rank."""
    trace, file = record(lab, fallow, SIZE, lab.program("traced.c"))
    for rank, calls in enumerate(trace.ranks):
        found = [_as_expected(c) for c in _without_failed_tests(calls)]
        wanted = [_plain(e) for e in _expected(rank)]
        if rank == 0:  # received from any source
            found[1:SIZE] = sorted(found[1:SIZE], key=lambda e: e[2]["peer"])
        assert len(found) == len(wanted)
        for i, (f, w) in enumerate(zip(found, wanted, strict=True)):
            assert f == w, f"rank {rank}, call {i}"
        check_requests(calls)
        for a, b in itertools.pairwise(calls):
            assert a.enter_ns <= a.exit_ns <= b.enter_ns
            assert b.compute_ns == b.enter_ns - a.exit_ns
    assert replay(fallow, file)["program"]["events"] == sum(map(len, trace.ranks))


def test_communicators_agree(lab: Lab, fallow: Fallow) -> None:
    """A communicator has one number on all its ranks, and two of the same group have two."""
    trace, _ = record(lab, fallow, SIZE, lab.program("traced.c"))
    broadcasts = [[c.comm for c in calls if c.op == "MPI_Bcast"] for calls in trace.ranks]
    assert broadcasts[0][1:5] == broadcasts[2][1:5] and broadcasts[1][1:5] == broadcasts[3][1:5]
    for numbers in broadcasts:
        split, dup, idup, again = numbers[1:5]
        assert len({split, dup, idup, again, 1}) == 5
    inter = [numbers[5] for numbers in broadcasts]
    assert len(set(inter)) == 1 and inter[0] not in broadcasts[0][:5]


def test_communicators_made_in_different_orders(lab: Lab, fallow: Fallow) -> None:
    """Ranks that make communicators of the same members in different orders mean the same ones."""
    trace, file = record(lab, fallow, SIZE, lab.program("orders.c"))
    broadcasts = [{c.size_bytes: c.comm for c in calls if c.op == "MPI_Bcast"} for calls in trace.ranks]
    assert all(b == broadcasts[0] for b in broadcasts)
    assert set(broadcasts[0]) == {4, 8, 12, 16, 20} and len({1, *broadcasts[0].values()}) == 6
    assert replay(fallow, file)["program"]["events"] == sum(map(len, trace.ranks))


def test_communicators_of_two_sides_that_connect(lab: Lab, fallow: Fallow) -> None:
    """What one side accepts and the other connects to is one communicator."""
    if lab.family.name == "mpich":
        return  # Debian's has no ports
    trace, file = record(lab, fallow, 3, lab.program("connected.c"))
    assert len({c.comm for calls in trace.ranks for c in calls if c.op == "MPI_Bcast"}) == 1
    replay(fallow, file)


def test_sessions(lab: Lab, fallow: Fallow) -> None:
    """Communicators made from a session's process set are known, and what is sent on them is replayed."""
    if lab.family.name == "openmpi":
        return  # 4.1 has no sessions
    trace, file = record(lab, fallow, 2, lab.program("sessions.c"))
    exchanged = [[c for c in calls if c.op == "MPI_Sendrecv"] for calls in trace.ranks]
    assert exchanged[0] and all(c.comm not in (0, 1, 2) for calls in exchanged for c in calls), exchanged
    assert [c.comm for c in exchanged[0]] == [c.comm for c in exchanged[1]]
    assert replay(fallow, file)["simulations"][0]["raw"]["messages"] >= 2 * len(exchanged[0])


@pytest.mark.parametrize("binding", BINDINGS)
def test_bindings(lab: Lab, fallow: Fallow, binding: str) -> None:
    """C and Fortran: each call once, consistent requests, call sites in the program, and a replay to the end."""
    if binding != "c" and not lab.family.fc:
        return
    trace, file = record(lab, fallow, RANKS, calls_program(lab.family, BINDINGS[binding]))
    for calls in trace.ranks:
        counts: dict[str, int] = {}
        for call in calls:
            counts[call.op] = counts.get(call.op, 0) + 1
        assert counts == CALLS
        check_requests(calls)
        assert all(c.site != 0 for c in calls)
    assert replay(fallow, file)["program"]["events"] == RANKS * sum(CALLS.values())


def test_partitions_that_are_ready_are_recorded(lab: Lab, fallow: Fallow) -> None:
    """How many a partitioned send has, and how many each call makes ready: a replay sends when all are."""
    trace, file = record(lab, fallow, 2, lab.program("partitioned.c"))
    told = [(c.op, c.counts) for c in trace.ranks[0] if c.counts]
    if not any(c.op == "MPI_Psend_init" for c in trace.ranks[0]):
        return  # an MPI of version 3
    assert told == [("MPI_Psend_init", [6]), ("MPI_Pready", [1]), ("MPI_Pready_range", [3]), ("MPI_Pready_list", [2])]
    for simulation in replay(fallow, file)["simulations"]:
        assert simulation["ranks"][1]["waiting_s"] > 0.5 * 100e-3  # the receiver may start late


def test_persistent_requests_that_the_library_replaces(lab: Lab, fallow: Fallow) -> None:
    """Each start names its request and each wait ends it, whatever its handle is by then; the bytes of each start count."""
    rounds, size = 10, 16384
    file = lab.scratch / "trace.ftr"
    trial = lab.run(MODE, 2, lab.program("buffered_again.c"), str(rounds), str(size), options=("--trace", str(file)))
    assert trial.outcome.rc == 0, trial.outcome.describe()
    for calls in read_trace(lab.fallow, file).ranks:
        check_requests(calls)
        assert [len(c.requests) for c in calls if c.op in ("MPI_Start", "MPI_Startall")] == [1] * rounds + [2] * rounds
        assert sum(len(c.completed) for c in calls) == 3 * rounds
    assert [r.bytes_sent for r in trial.ranks()] == [3 * rounds * size, 0]
    assert trial.ranks()[1].bytes_received == 3 * rounds * size
    assert replay(fallow, file)["simulations"][0]["raw"]["messages"] >= 3 * rounds


def test_subjects_replay(lab: Lab, fallow: Fallow) -> None:
    """A program that uses nearly everything there is in MPI 3.1 is recorded in full and replayed to the end."""
    file = lab.scratch / "driver.ftr"
    trial = lab.run(MODE, 4, lab.driver(), options=("--trace", str(file)))
    said = re.search(r"([\d ]+) events of 4 ranks, [0-9.]+ [KM]iB, [0-9.]+ bytes an event$", trial.outcome.err, re.MULTILINE)
    assert trial.outcome.rc == 0 and said is not None, trial.outcome.describe()
    assert replay(fallow, file)["program"]["events"] == int(said[1].replace(" ", ""))  # up to a million: too many to look at each


@pytest.mark.parametrize("name", ["mg", "bt", "sp", "cg", "ft", "lu"])
def test_examples_replay(lab: Lab, fallow: Fallow, name: str) -> None:
    """Each example, on more ranks than here are cores: it replays, and in at most eight bytes a call."""
    if lab.family.name != "openmpi":
        return  # the programs' calls are the same
    source = REPOSITORY / "examples" / f"{name}.c"
    program = build(lab.family, name, [source], ["-O2", f"-I{REPOSITORY / 'include'}"], source.parent.glob("*.h"), libs=["-lm"])
    small = {"cg": ("-i", "2"), "bt": ("-i", "10"), "sp": ("-i", "10"), "lu": ("-i", "10")}.get(name, ())
    trace, file = record(lab, fallow, 16, program, *small, options=("--clock", "cpu"))
    events = sum(map(len, trace.ranks))
    assert replay(fallow, file)["program"]["events"] == events
    for calls in trace.ranks:
        check_requests(calls)


def _steps_measured(lab: Lab, fallow: Fallow, *options: str) -> tuple[Trace, list[list[tuple[int, int]]]]:
    """A trace of ranks that share a core, and what each rank's steps took by its own clocks: CPU and wall time."""
    own = lab.scratch / ("own" + "".join(options))
    own.mkdir()
    trace, _ = record(lab, fallow, 8, lab.program("shared_core.c"), str(own), options=options)
    lines = [(own / str(rank)).read_text().splitlines() for rank in range(8)]
    return trace, [[(int(cpu), int(wall)) for cpu, wall in map(str.split, rank)] for rank in lines]


@pytest.mark.one_family
def test_clocks(lab: Lab, fallow: Fallow) -> None:
    """Computation is the CPU time that a rank used, however many share its core; by the wall clock, what went by."""
    by_cpu, own_cpu = _steps_measured(lab, fallow, "--clock", "cpu")
    by_wall, own_wall = _steps_measured(lab, fallow)
    assert by_cpu.clock == "cpu" and by_wall.clock == "wall"
    for which, trace, own in ((0, by_cpu, own_cpu), (1, by_wall, own_wall)):
        for calls, measured in zip(trace.ranks, own, strict=True):
            barriers = [c for c in calls if c.op == "MPI_Barrier"]
            assert all(bool(c.flags & CPU_TIME) == (which == 0) for c in barriers)
            ratios = [call.compute_ns / step[which] for call, step in zip(barriers, measured, strict=True)]
            assert all(ratio > 0.98 for ratio in ratios), ratios  # a step lies within what Fallow counts
            if which == 0:  # and is nearly all of it, except where a virtual machine takes the core away unseen
                assert statistics.median(ratios) < 1.05, ratios
    shared = sum(cpu for rank in own_cpu for cpu, _ in rank) < 0.7 * sum(wall for rank in own_cpu for _, wall in rank)
    if not shared:
        pytest.skip("each rank had a core of its own while it computed: the clocks tell the same")


@pytest.mark.parametrize("mode", ["auto", "spin"])
def test_waits_are_those_of_the_report(lab: Lab, fallow: Fallow, mode: str) -> None:
    """Also where ranks share a core, and waits are over after too few polls to be noticed as such."""
    own, file = lab.scratch / "own", lab.scratch / "waits.ftr"
    own.mkdir()
    trial = lab.run(mode, 8, lab.program("shared_core.c"), str(own), options=("--trace", str(file)))
    assert trial.outcome.rc == 0, trial.outcome.describe()
    recorded = sum(call.wait_ns for calls in read_trace(fallow, file).ranks for call in calls) * 1e-9
    reported = sum(rank.wait_awake_s + rank.wait_asleep_s for rank in trial.ranks())
    assert reported > 0.1 and recorded == pytest.approx(reported, rel=0.01)


def _significant_bits(ns: int) -> int:
    return len(f"{ns:b}".rstrip("0"))


@pytest.mark.one_family
def test_rounded_times(lab: Lab, fallow: Fallow) -> None:
    """Durations are rounded to 9 bits where asked for, and with the CPU clock; else every nanosecond is kept."""
    most: dict[tuple[str, ...], int] = {}
    for options in ((), ("--trace-times", "rounded"), ("--clock", "cpu"), ("--clock", "cpu", "--trace-times", "exact")):
        trace, _ = record(lab, fallow, 2, lab.program("steady.c"), options=options)
        calls = list(itertools.chain.from_iterable(trace.ranks))
        most[options] = max(_significant_bits(c.exit_ns - c.enter_ns) for c in calls)
        if "cpu" in options:
            most[options] = max(most[options], *(_significant_bits(c.compute_ns) for c in calls))
        for rank in trace.ranks:
            assert all(a.exit_ns <= b.enter_ns for a, b in itertools.pairwise(rank))
    exact, rounded, cpu, exact_cpu = most.values()
    assert rounded <= 9 and cpu <= 9 and exact > 9 and exact_cpu > 9, most


def test_many_communicators(lab: Lab, fallow: Fallow) -> None:
    """Calls on thousands of communicators at a time, or one after the other, are on those communicators."""
    many = "3500" if lab.family.name == "openmpi" else "1000"  # MPICH has 2,000
    trace, _ = record(lab, fallow, 1, lab.program("communicators.c"), many, "5000")
    looks = [call for call in trace.ranks[0] if call.op == "MPI_Iprobe"]
    assert len(looks) == int(many) + 5000
    assert sum(call.members != (0,) for call in looks) == 0


def test_threads(lab: Lab, fallow: Fallow) -> None:
    """Each thread's calls are recorded in order under a number of its own; calls that wait for those of another thread are replayed."""
    trace, file = record(lab, fallow, 2, lab.program("threads.c"))
    assert replay(fallow, file)["program"]["events"] == sum(map(len, trace.ranks))
    for calls in trace.ranks:
        assert len({c.thread for c in calls}) > 1
        for thread in {c.thread for c in calls}:
            own = [c for c in calls if c.thread == thread]
            assert all(a.exit_ns <= b.enter_ns for a, b in itertools.pairwise(own))


def test_one_rank(lab: Lab, fallow: Fallow) -> None:
    """A program of one rank with communicators of its own and two threads that meet their first call sites at once."""
    trace, _ = record(lab, fallow, 1, lab.program("helper_thread.c"))
    assert [len({c.thread for c in calls}) for calls in trace.ranks] == [2]
    assert sum(c.op == "MPI_Sendrecv" for c in trace.ranks[0]) == 40


def test_a_thread_that_is_to_end(lab: Lab, fallow: Fallow) -> None:
    """The files of a trace are no points of cancellation: a thread ends where the program says, and all its calls are there."""
    trace, _ = record(lab, fallow, 1, lab.program("cancelled.c"))
    assert sum(c.op == "MPI_Test" for c in trace.ranks[0]) == 20_000


@pytest.mark.one_family
def test_dense_calls(lab: Lab, fallow: Fallow) -> None:
    """A program that never waits loses no call, and meets nothing of what packs its trace."""
    trace, _ = record(lab, fallow, 2, lab.program("dense.c"))
    for calls in trace.ranks:
        probes = [c for c in calls if c.op == "MPI_Iprobe"]
        assert len(probes) == 80_000
        assert [c.tag for c in probes[:6]] == [0, 1, 2, 0, 1, 2]
        assert all(a.exit_ns <= b.enter_ns for a, b in itertools.pairwise(calls))


@pytest.mark.one_family
def test_no_descriptor_is_kept(lab: Lab, fallow: Fallow) -> None:
    """The trace's file is not open while the program's code runs."""
    record(lab, fallow, 2, lab.program("descriptors.c"))


def test_several_launches(lab: Lab, fallow: Fallow) -> None:
    """A script that starts a program twice leaves two traces."""
    program = lab.program("steady.c")
    line = " ".join(map(str, lab.family.launch(2, program)))
    running, _ = lab.start(MODE, ["sh", "-c", f"{line} && {line}"], options=("--trace", str(lab.scratch / "out")))
    outcome = running.finish()
    assert outcome.rc == 0, outcome.describe()
    files = sorted((lab.scratch / "out").iterdir())
    assert [f.name for f in files] == ["trace.ftr", "trace2.ftr"], outcome.describe()
    first, second = (read_trace(fallow, f) for f in files)
    for trace in (first, second):
        assert trace.complete == [True, True] and all(trace.ranks)


def test_existing_trace_is_kept(lab: Lab) -> None:
    """A directory with a trace in it is not written over; the command does not run."""
    out = lab.scratch / "out"
    out.mkdir()
    (out / "trace.ftr").write_text("precious")
    trial = lab.run(MODE, 1, lab.program("steady.c"), options=("--trace", str(out)))
    assert trial.outcome.rc == 2 and "there is a trace already" in trial.outcome.err
    assert (out / "trace.ftr").read_text() == "precious"
