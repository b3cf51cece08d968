"""OTF2 archives as other tools write them: which of OTF2's records they have, and what these say of calls."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import trace_samples as samples
from fallow.errors import UserError
from fallow.traces import convert, model, otf2_format
from fallow.traces.model import COMM_WORLD, FIRST_COMM, Event

Fallow = Callable[..., "subprocess.CompletedProcess[str]"]
otf2 = pytest.importorskip("otf2")
pytest.importorskip("otf2.writer")
pytest.importorskip("otf2.events")


class Archive:
    """An archive of ranks with one thread each, and what is defined in it."""

    def __init__(self, trace: Any, ranks: int) -> None:
        d, mpi = trace.definitions, otf2.Paradigm.MPI
        self.definitions = d
        node = d.system_tree_node("n", parent=d.system_tree_node("m"))
        groups = [d.location_group(f"MPI Rank {r}", system_tree_parent=node) for r in range(ranks)]
        self.masters = tuple(d.location(f"master {r}", group=group) for r, group in enumerate(groups))
        d.group("MPI", group_type=otf2.GroupType.COMM_LOCATIONS, paradigm=mpi, members=self.masters)
        group = d.group("world", group_type=otf2.GroupType.COMM_GROUP, paradigm=mpi, members=self.masters)
        self.world = d.comm("world", group=group)
        self.ranks = [trace.event_writer_from_location(location) for location in self.masters]

    def region(self, name: str) -> Any:
        return self.definitions.region(name, region_role=otf2.RegionRole.FUNCTION, paradigm=otf2.Paradigm.MPI)

    @contextlib.contextmanager
    def call(self, rank: int, name: str, enter: int, leave: int) -> Iterator[Any]:
        self.ranks[rank].enter(enter, self.region(name))
        yield self.ranks[rank]
        self.ranks[rank].leave(leave, self.region(name))


@contextlib.contextmanager
def archive(tmp_path: Path, ranks: int = 2, ticks_per_s: int = 10**9) -> Iterator[Archive]:
    with otf2.writer.open(str(tmp_path / "archive"), timer_resolution=ticks_per_s) as trace:
        yield Archive(trace, ranks)


def calls(tmp_path: Path, rank: int) -> dict[str, Event]:
    source = convert.open_source([tmp_path / "archive"], None)
    return {model.ops()[e.op].name: e for e in source.events(rank)}


def replayed(tmp_path: Path, fallow: Fallow) -> dict[str, Any]:
    """What a replay with everything on says."""
    done = fallow("trace", "convert", tmp_path / "archive", "-o", tmp_path / "a.ftr")
    assert done.returncode == 0, done.stderr
    done = fallow("sim", tmp_path / "a.ftr", "--policy", "always-on", "--json")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["simulations"]
    raw: dict[str, Any] = found["raw"]
    return raw


@pytest.mark.parametrize("starts", [False, True])
def test_non_blocking_and_persistent_collectives(tmp_path: Path, fallow: Fallow, starts: bool) -> None:
    """Their communicator, sizes and root stand where they complete, and of persistent ones also which they are."""
    began = "MPI_Start" if starts else "MPI_Ibcast"
    op = otf2.CollectiveOp.BCAST
    with archive(tmp_path) as made:
        for rank in range(2):
            with made.call(rank, began, 100, 120) as w:
                w.non_blocking_collective_request(110, 7)
            with made.call(rank, "MPI_Test", 200, 210) as w:
                w.mpi_request_test(205, 7)
            with made.call(rank, "MPI_Wait", 300, 400) as w:
                w.non_blocking_collective_complete(390, op, made.world, 1, 1000 * rank, 500, 7)
    for rank in range(2):
        found = calls(tmp_path, rank)
        begun = found["MPI_Ibcast"]
        assert (begun.comm, begun.root, begun.size_bytes, begun.requests) == (COMM_WORLD, 1, 500, (0,))
        assert (found["MPI_Test"].completed, found["MPI_Wait"].completed) == ((), (0,))
    raw = replayed(tmp_path, fallow)
    assert raw["messages"] == 1 and "unplaced" not in raw


def test_functions_with_parentheses(tmp_path: Path) -> None:
    """As TAU names them."""
    with archive(tmp_path) as made:
        with made.call(0, "MPI_Send()", 100, 200) as w:
            w.mpi_send(150, 1, made.world, 3, 64)
        with made.call(1, "MPI_Recv()", 100, 300) as w:
            w.mpi_recv(290, 0, made.world, 3, 64)
    assert calls(tmp_path, 0)["MPI_Send"].peer == 1
    assert calls(tmp_path, 1)["MPI_Recv"].size_bytes == 64


def test_calls_within_their_context(tmp_path: Path) -> None:
    """Score-P writes these in place of Enter and Leave where it unwinds the stack."""
    with archive(tmp_path) as made:
        context = made.definitions.calling_context(made.region("MPI_Send"), None, None)
        other = made.definitions.calling_context(made.region("main"), None, None)
        w = made.ranks[0]
        w.calling_context_enter(50, other, 1)
        w.calling_context_enter(100, context, 1)
        w.mpi_send(150, 1, made.world, 3, 64)
        w.calling_context_leave(200, context)
        w.calling_context_leave(250, other)
    (sent,) = calls(tmp_path, 0).values()
    assert (sent.peer, sent.enter_ns - sent.exit_ns) == (1, -100)


def test_requests_that_were_cancelled(tmp_path: Path, fallow: Fallow) -> None:
    """No data moved, and their numbers are free again."""
    with archive(tmp_path) as made:
        with made.call(0, "MPI_Irecv", 100, 120) as w:
            w.mpi_irecv_request(110, 7)
        with made.call(0, "MPI_Isend", 130, 140) as w:
            w.mpi_isend(135, 1, made.world, 3, 1 << 20, 8)
        with made.call(0, "MPI_Waitall", 300, 400) as w:
            w.mpi_request_cancelled(350, 7)
            w.mpi_request_cancelled(351, 8)
        with made.call(1, "MPI_Barrier", 300, 400) as w:
            w.mpi_collective_end(350, otf2.CollectiveOp.BARRIER, made.world, 0xFFFFFFFF, 0, 0)
        with made.call(0, "MPI_Barrier", 500, 600) as w:
            w.mpi_collective_end(550, otf2.CollectiveOp.BARRIER, made.world, 0xFFFFFFFF, 0, 0)
    found = calls(tmp_path, 0)
    assert (found["MPI_Irecv"].peer, found["MPI_Isend"].peer) == (model.NULL_PEER, model.NULL_PEER)
    assert found["MPI_Waitall"].completed == (0, 1)
    raw = replayed(tmp_path, fallow)
    assert "unplaced" not in raw and "unreceived" not in raw


def test_messages_that_a_probe_has_matched(tmp_path: Path, fallow: Fallow) -> None:
    with archive(tmp_path) as made:
        for tag in (3, 4):
            with made.call(0, "MPI_Send", 100 * tag, 100 * tag + 50) as w:
                w.mpi_send(100 * tag + 10, 1, made.world, tag, 64)
        for tag, at in ((3, 300), (4, 600)):
            with made.call(1, "MPI_Mprobe", at, at + 50) as w:
                w.mpi_probe(at + 40, 0, made.world, tag, tag)
        with made.call(1, "MPI_Imrecv", 700, 710) as w:
            w.mpi_imrecv_request(705, 4, 9)
        with made.call(1, "MPI_Mrecv", 720, 730) as w:
            w.mpi_mrecv(725, 3, 64)
        with made.call(1, "MPI_Wait", 740, 750) as w:
            w.mpi_imrecv(745, 9, 64)
    found = calls(tmp_path, 1)
    assert [(e.comm, e.peer, e.tag, e.size_bytes) for e in (found["MPI_Mrecv"], found["MPI_Imrecv"])] == [(COMM_WORLD, 0, 3, 64), (COMM_WORLD, 0, 4, 64)]
    assert (found["MPI_Imrecv"].requests, found["MPI_Wait"].completed) == ((0,), (0,))
    raw = replayed(tmp_path, fallow)
    assert "unplaced" not in raw and "unreceived" not in raw


def test_a_call_without_an_end(tmp_path: Path) -> None:
    """At the end of a rank it is what the rank was killed in. Before others these would be taken for part of it."""
    for rest in (0, 1):
        place = tmp_path / str(rest)
        with archive(place) as made:
            with made.call(0, "MPI_Barrier", 100, 200):
                pass
            made.ranks[0].enter(300, made.region("MPI_Send"))
            for _ in range(rest):
                with made.call(0, "MPI_Recv", 400, 500):
                    pass
            with made.call(1, "MPI_Barrier", 100, 200):
                pass
            made.ranks[1].enter(300, made.region("MPI_Finalize"))
    source = convert.open_source([tmp_path / "0" / "archive"], None)
    assert source.info.incomplete == {0}
    assert [len(list(source.events(r))) for r in (0, 1)] == [1, 1]
    with pytest.raises(UserError, match="MPI_Send of rank 0, 200 ns after the beginning, has no end"):
        convert.open_source([tmp_path / "1" / "archive"], None)


def test_calls_that_end_in_each_other(tmp_path: Path) -> None:
    with archive(tmp_path) as made:
        w = made.ranks[0]
        for at, name in ((100, "MPI_Send"), (200, "MPI_Recv")):
            w.enter(at, made.region(name))
        for at, name in ((300, "MPI_Send"), (400, "MPI_Recv")):
            w.leave(at, made.region(name))
    with pytest.raises(UserError, match="MPI_Send of rank 0 ends inside MPI_Recv"):
        convert.open_source([tmp_path / "archive"], None)


def test_intercommunicators(tmp_path: Path, fallow: Fallow) -> None:
    """OTF2's library in Python can neither write nor read them by itself."""
    otf2_format.library()
    with archive(tmp_path, 3) as made:
        d, mpi = made.definitions, otf2.Paradigm.MPI
        sides = [d.group(n, group_type=otf2.GroupType.COMM_GROUP, paradigm=mpi, members=m) for n, m in (("a", made.masters[:2]), ("b", made.masters[2:]))]
        between = d.inter_comm("between", *sides, made.world)
        with made.call(0, "MPI_Send", 100, 200) as w:
            w.mpi_send(150, 0, between, 3, 64)
        with made.call(2, "MPI_Recv", 100, 200) as w:
            w.mpi_recv(190, 0, between, 3, 64)
        for rank, root in ((0, 0xFFFFFFFE), (1, 0xFFFFFFFD), (2, 0)):
            with made.call(rank, "MPI_Bcast", 300, 400) as w:
                w.mpi_collective_end(390, otf2.CollectiveOp.BCAST, between, root, 0, 500)
    source = convert.open_source([tmp_path / "archive"], None)
    assert source.info.comms == [([(0, 2, 1)], [(2, 1, 1)])]
    assert [next(iter(source.events(r))).comm for r in (0, 2)] == [FIRST_COMM, FIRST_COMM]
    assert [calls(tmp_path, r)["MPI_Bcast"].root for r in range(3)] == [model.ROOT_HERE, model.NULL_PEER, 0]
    raw = replayed(tmp_path, fallow)
    assert raw["messages"] == 2 and "unplaced" not in raw and "unreceived" not in raw
    lost = convert.convert(source, tmp_path / "again", "otf2")
    assert not any("group" in line for line in lost), lost
    assert convert.open_source([tmp_path / "again"], None).info.comms == source.info.comms


def two_sides(ranks: int, comms: list[tuple[list[model.Run], list[model.Run]]]) -> model.MemorySource:
    """Every rank sends to the last one of the other group, which has more or fewer members than its own."""
    source = model.MemorySource(model.Info(size=ranks, comms=comms))
    for r in range(ranks):
        rank = samples.Rank(source, r)
        for number in range(FIRST_COMM, FIRST_COMM + len(comms)):
            theirs = source.info.members(number, r, remote=True)
            rank.call("MPI_Isend", comm=number, peer=len(theirs) - 1, tag=1, size_bytes=8, requests=(0,))
            rank.call("MPI_Wait", completed=(0,))
    return source


@pytest.mark.parametrize("ending", ["prv", "otf2"])
def test_both_groups_of_intercommunicators_are_kept(tmp_path: Path, ending: str) -> None:
    source = two_sides(5, [([(0, 3, 2)], [(1, 2, 2)]), ([(3, 2, -2), (4, 1, 1)], [(2, 1, 1), (0, 1, 1)]), ([(0, 5, 1)], [])])
    lost = convert.convert(source, tmp_path / f"a.{ending}", None)
    assert not any("cannot carry intercommunicators" in line for line in lost), lost
    back = convert.open_source([tmp_path / "a" / "traces.otf2" if ending == "otf2" else tmp_path / "a.prv"], None)
    for r in range(5):
        for mine, read in zip(source.events(r), back.events(r), strict=True):
            assert mine._replace(comm=0) == read._replace(comm=0)
            for remote in (False, True):
                assert list(source.info.members(mine.comm, r, remote=remote)) == list(back.info.members(read.comm, r, remote=remote))


def test_groups_that_are_not_those_of_the_communicator_are_refused(tmp_path: Path) -> None:
    convert.convert(two_sides(5, [([(0, 3, 2)], [(1, 2, 2)])]), tmp_path / "a.prv", None)
    names = tmp_path / "a.pcf"
    for groups in ("0-4/2 and 3-1/2", "0-4/2 and 1", "0-999999999 and 1-3/2"):
        names.write_text(names.read_text().replace("0-4/2 and 1-3/2", groups))
        with pytest.raises(UserError, match=r"a.prv: line 3: communicator 3 has other tasks than the two groups"):
            convert.open_source([tmp_path / "a.prv"], None)
        names.write_text(names.read_text().replace(groups, "0-4/2 and 1-3/2"))


def test_one_sided_calls(tmp_path: Path, fallow: Fallow) -> None:
    with archive(tmp_path) as made:
        win, barrier = made.definitions.rma_win("window", made.world), otf2.CollectiveOp.BARRIER
        for rank in range(2):
            for at in (100, 300):
                with made.call(rank, "MPI_Win_fence", at, at + 20) as w:
                    w.rma_collective_begin(at + 1)
                    w.rma_collective_end(at + 19, barrier, otf2.RmaSyncLevel.PROCESS, win, 0xFFFFFFFF, 0, 0)
                with made.call(rank, "MPI_Put", at + 40, at + 50) as w:
                    w.rma_put(at + 45, win, 1 - rank, 4096, 7)
        with made.call(0, "MPI_Win_post", 400, 410) as w:
            w.rma_group_sync(405, otf2.RmaSyncLevel.PROCESS, win, made.world.group)
        with made.call(0, "MPI_Fetch_and_op", 500, 510) as w:
            w.rma_atomic(505, win, 1, otf2.RmaAtomicType.FETCH_AND_ADD, 8, 4, 9)
        with made.call(0, "MPI_Win_unlock", 600, 610) as w:
            w.rma_release_lock(605, win, 1, 0)
    found = calls(tmp_path, 0)
    assert {e.comm for e in found.values()} == {COMM_WORLD}
    assert (found["MPI_Put"].peer, found["MPI_Put"].size_bytes) == (1, 4096)
    assert (found["MPI_Fetch_and_op"].peer, found["MPI_Fetch_and_op"].size_bytes, found["MPI_Fetch_and_op"].recv_bytes) == (1, 8, 4)
    assert (found["MPI_Win_post"].counts, found["MPI_Win_unlock"].peer) == ((0, 1), 1)
    assert replayed(tmp_path, fallow)["messages"] >= 2


def test_one_sided_calls_of_which_nothing_is_told(tmp_path: Path, fallow: Fallow) -> None:
    """They move nothing in a replay, which says so."""
    with archive(tmp_path) as made:
        for rank in range(2):
            for at, name in ((100, "MPI_Win_fence"), (200, "MPI_Put"), (300, "MPI_Win_fence")):
                with made.call(rank, name, at, at + 50):
                    pass
    assert replayed(tmp_path, fallow)["unplaced"] == 6


def test_readers_need_little_memory_for_each_rank_of_ours(tmp_path: Path) -> None:
    """They have a chunk of each location in memory: with the library's usual size, 10 GB for 10,000 ranks."""
    source = model.MemorySource(model.Info(size=1), [[Event(op=1, enter_ns=1, exit_ns=2)]])
    convert.convert(source, tmp_path / "a.otf2", "otf2")
    with otf2.reader.open(str(tmp_path / "a" / "traces.otf2")) as trace:
        events, _ = pytest.importorskip("_otf2").Reader_GetChunkSize(trace.handle)
    assert events == 1 << 18


def test_other_tools_are_told_when_and_how_much(tmp_path: Path) -> None:
    """Messages are there, and collectives over, at the end of their calls; sizes are what is sent, then what is received."""
    def event(name: str, at: int, **fields: Any) -> Event:
        return Event(op=model.op_number(name), comm=COMM_WORLD, enter_ns=at, exit_ns=at + 5, **fields)

    first = [
        event("MPI_Isend", 10, peer=1, tag=3, size_bytes=8, requests=(0,)), event("MPI_Wait", 20, completed=(0,)),
        event("MPI_Gather", 30, root=0, size_bytes=4, recv_bytes=12),
    ]  # fmt: skip
    second = [
        event("MPI_Recv", 12, peer=0, tag=3, size_bytes=16), event("MPI_Irecv", 40, peer=0, tag=4, size_bytes=32, requests=(0,)),
        event("MPI_Wait", 50, completed=(0,)),
    ]  # fmt: skip
    convert.convert(model.MemorySource(model.Info(size=2), [first, second]), tmp_path / "a.otf2", None)
    with otf2.reader.open(str(tmp_path / "a" / "traces.otf2")) as trace:
        found = {type(e).__name__: e for _, e in trace.events}
    assert (found["MpiIsend"].time, found["MpiIsendComplete"].time) == (10, 25)
    assert (found["MpiRecv"].time, found["MpiRecv"].msg_length) == (17, 16)
    assert (found["MpiIrecvRequest"].time, found["MpiIrecv"].time, found["MpiIrecv"].msg_length) == (40, 55, 32)
    end = found["MpiCollectiveEnd"]
    assert (end.time, end.root, end.size_sent, end.size_received) == (35, 0, 4, 12)


def test_times_are_nanoseconds_whatever_the_clock_of_the_archive(tmp_path: Path) -> None:
    with archive(tmp_path, ticks_per_s=4_000_000) as a, a.call(0, "MPI_Barrier", 1000, 1100), a.call(1, "MPI_Barrier", 1050, 1101):
        pass
    found = [calls(tmp_path, r)["MPI_Barrier"] for r in (0, 1)]
    assert [(e.exit_ns - e.enter_ns, e.enter_ns - found[0].enter_ns) for e in found] == [(25_000, 0), (12_750, 12_500)]


def test_an_exchange_has_both_its_messages(tmp_path: Path) -> None:
    with archive(tmp_path) as a:
        for rank in (0, 1):
            with a.call(rank, "MPI_Sendrecv", 100, 200) as w:
                w.mpi_send(110, 1 - rank, a.world, 5 + rank, 64)
                w.mpi_recv(190, 1 - rank, a.world, 6 - rank, 32)
    e = calls(tmp_path, 0)["MPI_Sendrecv"]
    assert (e.peer, e.tag, e.size_bytes, e.recv_peer, e.recv_tag, e.recv_bytes) == (1, 5, 64, 1, 6, 32)


def test_roots_of_collectives_are_those_of_the_records(tmp_path: Path) -> None:
    with archive(tmp_path, 3) as a:
        for rank in range(3):
            with a.call(rank, "MPI_Bcast", 100, 200) as w:
                w.mpi_collective_end(200, otf2.CollectiveOp.BCAST, a.world, 2, 0, 8)
    assert [calls(tmp_path, r)["MPI_Bcast"].root for r in range(3)] == [2, 2, 2]


def records(path: Path) -> list[Any]:
    with otf2.reader.open(str(path / "traces.otf2")) as trace:
        return [e for _, e in trace.events if type(e).__name__ not in ("Enter", "Leave")]


def test_other_tools_are_told_of_non_blocking_collectives(tmp_path: Path) -> None:
    def event(name: str, at: int, **fields: Any) -> Event:
        return Event(op=model.op_number(name), enter_ns=at, exit_ns=at + 5, **fields)

    calls_made = [
        event("MPI_Ibcast", 10, comm=COMM_WORLD, root=0, size_bytes=8, requests=(0,)),
        event("MPI_Allgather_init", 20, comm=COMM_WORLD, size_bytes=4, recv_bytes=4, requests=(1,)),
        event("MPI_Ineighbor_alltoall", 25, comm=COMM_WORLD, requests=(2,)),
        event("MPI_Start", 30, requests=(1,)), event("MPI_Waitall", 40, completed=(1, 0, 2)),
    ]  # fmt: skip
    convert.convert(model.MemorySource(model.Info(size=1), [calls_made]), tmp_path / "a.otf2", None)
    first, second, gathered, broadcast = records(tmp_path / "a")
    assert [(type(e).__name__, e.time) for e in (first, second)] == [("NonBlockingCollectiveRequest", at) for at in (10, 30)]
    assert (broadcast.request_id, gathered.request_id) == (first.request_id, second.request_id)
    assert (broadcast.time, gathered.time) == (45, 45)
    kinds = otf2.CollectiveOp
    assert (broadcast.collective_op, broadcast.root, broadcast.size_sent) == (kinds.BCAST, 0, 8)
    assert (gathered.collective_op, gathered.size_sent, gathered.size_received) == (kinds.ALLGATHER, 4, 4)
    back = convert.open_source([tmp_path / "a"], None).events(0)
    assert [e._replace(compute_ns=0) for e in back] == calls_made


def test_calls_of_a_rank_with_itself_are_on_a_communicator_of_its_own(tmp_path: Path) -> None:
    """Not on the world's, where rank 0 would get their messages and others be waited for; where none is known there is no record."""
    source = model.MemorySource(model.Info(size=2))
    one = samples.Rank(source, 1)
    for comm in (model.COMM_SELF, model.COMM_NONE):
        one.call("MPI_Isend", comm=comm, peer=0, tag=1, size_bytes=8, requests=(0,))
        one.call("MPI_Recv", comm=comm, peer=0, tag=1, size_bytes=8)
        one.call("MPI_Wait", completed=(0,))
        one.call("MPI_Barrier", comm=comm)
    lost = convert.convert(source, tmp_path / "a.otf2", None)
    assert [type(e).__name__ for e in records(tmp_path / "a")] == [
        "MpiIsend", "MpiRecv", "MpiIsendComplete", "MpiCollectiveBegin", "MpiCollectiveEnd"
    ]  # fmt: skip
    comms = {e.communicator for e in records(tmp_path / "a") if hasattr(e, "communicator")}
    assert [(c.name, c.group.group_type) for c in comms] == [("MPI_COMM_SELF", otf2.GroupType.COMM_SELF)]
    assert "OTF2 cannot carry messages and collectives of unknown communicators as such (3 times)" in lost
    assert list(convert.open_source([tmp_path / "a"], None).events(1)) == source.lists[1]


@pytest.mark.parametrize("error", [KeyboardInterrupt, UserError])
def test_an_archive_that_is_given_up_is_not_finished_first(tmp_path, monkeypatch, error):
    """Of thousands of ranks that takes half a minute, before it is thrown away."""

    class Ends(model.MemorySource):
        def events(self, rank):
            if rank == 1:
                raise error
            return super().events(rank)

    def finish(_):
        raise AssertionError

    monkeypatch.setattr(otf2.writer._otf2, "Archive_Close", finish)
    source = samples.rich()
    with pytest.raises(error):
        convert.convert(Ends(source.info, source.lists), tmp_path / "archive", "otf2")
    assert list(tmp_path.iterdir()) == []
