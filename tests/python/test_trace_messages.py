"""Messages in other tools' formats: each send meets the receive that took it, however both were made."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from fallow.traces import convert, model
from fallow.traces.model import COMM_WORLD, FIRST_COMM, FileSource, Info, MemorySource, write_source
from trace_samples import Rank

CANCELLED, FROM_0 = 1, 3
Fallow = Callable[..., "subprocess.CompletedProcess[str]"]


def drawn(source: MemorySource, path: Path) -> tuple[list[tuple[int, ...]], list[str]]:
    """Of each message in a .prv: sender, receiver, when its receive was called and was through, bytes, tag; and what is lost."""
    lost = convert.convert(source, path, "paraver")
    lines = [[int(x) for x in line.split(":")] for line in path.read_text().splitlines() if line.startswith("3:")]
    return [(f[3] - 1, f[9] - 1, f[11], f[12], f[13], f[14]) for f in lines], lost


def two_ranks() -> tuple[MemorySource, Rank, Rank]:
    source = MemorySource(Info(size=2))
    return source, Rank(source, 0), Rank(source, 1)


def test_receives_take_messages_in_the_order_in_which_they_were_posted(tmp_path: Path) -> None:
    source, sender, receiver = two_ranks()
    for size in (10, 20):
        sender.call("MPI_Send", comm=COMM_WORLD, peer=1, tag=5, size_bytes=size)
    for request in (0, 1):
        receiver.call("MPI_Irecv", comm=COMM_WORLD, peer=0, tag=5, size_bytes=99, requests=(request,))
    for request in (1, 0):  # the second one is asked for first
        receiver.call("MPI_Wait", completed=(request,))
    found, lost = drawn(source, tmp_path / "a.prv")
    assert found == [(0, 1, 1000, 5200, 10, 5), (0, 1, 2300, 3900, 20, 5)]
    assert not any("message" in line for line in lost)


def test_a_message_is_there_no_earlier_than_it_was_sent(tmp_path: Path) -> None:
    """As clocks of two machines may have it: lines back in time are none for Paraver."""
    source, sender, receiver = two_ranks()
    sender.call("MPI_Send", gap=9000, comm=COMM_WORLD, peer=1, tag=5, size_bytes=8)
    receiver.call("MPI_Recv", comm=COMM_WORLD, peer=0, tag=5, size_bytes=8)
    assert drawn(source, tmp_path / "a.prv")[0] == [(0, 1, 1000, 9000, 8, 5)]


def test_receives_from_any_source_are_drawn_where_it_is_known_who_sent(tmp_path: Path) -> None:
    source, sender, receiver = two_ranks()
    for tag in (5, 6):
        sender.call("MPI_Send", comm=COMM_WORLD, peer=1, tag=tag, size_bytes=tag)
    for request in range(4):
        receiver.call("MPI_Irecv", comm=COMM_WORLD, peer=model.ANY_PEER, tag=model.ANY_TAG, requests=(request,))
    receiver.call("MPI_Waitall", completed=(0, 1, 2), counts=(FROM_0, FROM_0, CANCELLED), recv_counts=(5, 6, 0))
    receiver.call("MPI_Wait", completed=(3,))
    found, lost = drawn(source, tmp_path / "a.prv")
    assert [(f[4], f[5]) for f in found] == [(5, 5), (6, 6)]
    assert [line for line in lost if "any source" in line] == [
        "Paraver cannot carry receives from any source, of which the trace does not tell who sent, as messages"
    ]


def persistent(steps: int = 3) -> MemorySource:
    """Two ranks that exchange by persistent requests, one of them with both at once, and broadcast by one."""
    source = MemorySource(Info(size=2))
    for r in range(2):
        rank = Rank(source, r)
        rank.call("MPI_Send_init", gap=0, lasts=0, comm=COMM_WORLD, peer=1 - r, tag=7, size_bytes=4096, requests=(0,))
        rank.call("MPI_Recv_init", gap=0, lasts=0, comm=COMM_WORLD, peer=1 - r, tag=7, size_bytes=4096, requests=(1,))
        rank.call("MPI_Bcast_init", gap=0, lasts=0, comm=COMM_WORLD, root=0, size_bytes=64, requests=(2,))
        for _ in range(steps):
            for started in [(0, 1)] if r == 0 else [(0,), (1,)]:
                rank.call("MPI_Startall" if r == 0 else "MPI_Start", lasts=0, requests=started)
            for request in (0, 1):
                rank.call("MPI_Wait", lasts=0, completed=(request,))
            rank.call("MPI_Start", lasts=0, requests=(2,))
            rank.call("MPI_Wait", lasts=0, completed=(2,))
        for request in range(3):
            rank.call("MPI_Request_free", gap=0, lasts=0, requests=(request,))
    return source


def test_persistent_messages_are_drawn(tmp_path: Path) -> None:
    found, lost = drawn(persistent(), tmp_path / "a.prv")
    assert Counter(f[:2] for f in found) == {(0, 1): 3, (1, 0): 3}
    assert all(f[4:] == (4096, 7) for f in found)
    assert not any("message" in line for line in lost)


@pytest.mark.parametrize("ending", ["dim", "tit"])
def test_starts_of_persistent_requests_become_calls_of_their_own(tmp_path: Path, ending: str) -> None:
    lost = convert.convert(persistent(), tmp_path / f"a.{ending}", None)
    assert any("persistent requests as such" in line for line in lost) and not any("MPI_Start" in line for line in lost)
    back = convert.open_source([tmp_path / f"a.{ending}"], None)
    for rank in range(2):
        calls = Counter(model.ops()[e.op].name for e in back.events(rank))
        assert {name: calls[name] for name in ("MPI_Isend", "MPI_Irecv", "MPI_Bcast")} == {"MPI_Isend": 3, "MPI_Irecv": 3, "MPI_Bcast": 3}
        assert sum(e.compute_ns for e in back.events(rank)) == sum(e.compute_ns for e in persistent().lists[rank])


def test_what_a_persistent_receive_took_is_written(tmp_path: Path) -> None:
    source, sender, receiver = two_ranks()
    sender.call("MPI_Send", comm=COMM_WORLD, peer=1, tag=5, size_bytes=8)
    receiver.call("MPI_Recv_init", comm=COMM_WORLD, peer=model.ANY_PEER, tag=model.ANY_TAG, size_bytes=8, requests=(0,))
    for outcome in (FROM_0, CANCELLED):
        receiver.call("MPI_Start", requests=(0,))
        receiver.call("MPI_Wait", completed=(0,), counts=(outcome,), recv_counts=(5,))
    write_source(source, tmp_path / "a.ftr")
    convert.convert(FileSource([tmp_path / "a.ftr"]), tmp_path / "a.dim", None)
    received = [e for e in convert.open_source([tmp_path / "a.dim"], None).events(1) if model.ops()[e.op].name == "MPI_Irecv"]
    assert [(e.peer, e.tag) for e in received] == [(0, 5)]


def test_an_archive_has_the_messages_of_persistent_and_any_source_requests(tmp_path: Path) -> None:
    otf2 = pytest.importorskip("otf2")
    source = persistent()
    sender, receiver = Rank(source, 0), Rank(source, 1)
    sender.now = receiver.now = 10**6
    sender.call("MPI_Send", comm=COMM_WORLD, peer=1, tag=5, size_bytes=8)
    receiver.call("MPI_Irecv", comm=COMM_WORLD, peer=model.ANY_PEER, tag=model.ANY_TAG, size_bytes=8, requests=(0,))
    receiver.call("MPI_Irecv", comm=COMM_WORLD, peer=model.NULL_PEER, requests=(1,))
    receiver.call("MPI_Waitall", completed=(0, 1), counts=(FROM_0, 2), recv_counts=(5, 0))
    convert.convert(source, tmp_path / "a.otf2", None)
    kinds: Counter[str] = Counter()
    with otf2.reader.open(str(tmp_path / "a" / "traces.otf2")) as trace:
        for _, event in trace.events:
            kinds[type(event).__name__] += 1
    assert kinds["MpiIsend"] == kinds["MpiIsendComplete"] == 6
    assert kinds["MpiIrecvRequest"] == kinds["MpiIrecv"] == 7


def goal_messages(path: Path) -> tuple[Counter[tuple[int, ...]], Counter[tuple[int, ...]]]:
    """(from, to, tag, bytes) of what is sent and of what is received."""
    rank, sent, received = -1, Counter(), Counter()
    for line in path.read_text().splitlines():
        if line.startswith("rank"):
            rank = int(line.split()[1])
        elif found := re.match(r"l\d+: (send|recv) (\d+)b (?:to|from) (\d+) tag (\d+)", line):
            size, other, tag = (int(x) for x in found.groups()[1:])
            (sent if found[1] == "send" else received)[(rank, other, tag, size) if found[1] == "send" else (other, rank, tag, size)] += 1
    return sent, received


def test_goal_has_both_messages_of_a_non_blocking_exchange(tmp_path: Path) -> None:
    source = MemorySource(Info(size=2))
    for r in range(2):
        rank, both = Rank(source, r), {"peer": 1 - r, "tag": 3, "size_bytes": 8, "recv_peer": 1 - r, "recv_tag": 3, "recv_bytes": 8}
        rank.call("MPI_Isendrecv", comm=COMM_WORLD, requests=(0,), **both)
        rank.call("MPI_Wait", completed=(0,))
    convert.convert(source, tmp_path / "a.goal", None)
    sent, received = goal_messages(tmp_path / "a.goal")
    assert sent == received == {(0, 1, 3, 8): 1, (1, 0, 3, 8): 1}
    assert (tmp_path / "a.goal").read_text().count("requires l1\n") == 2  # the wait of each rank is for both


@pytest.mark.parametrize("name", ["MPI_Isendrecv", "MPI_Isendrecv_replace"])
@pytest.mark.parametrize("ending", ["dim", "tit"])
def test_a_non_blocking_exchange_meets_plain_calls(fallow: Fallow, tmp_path: Path, ending: str, name: str) -> None:
    """Were its messages left out, its partner's receive would wait for ever."""
    source, first, second = two_ranks()
    both = {"peer": 1, "tag": 3, "size_bytes": 1 << 20, "recv_peer": 1, "recv_tag": 4, "recv_bytes": 1 << 20}
    first.call(name, comm=COMM_WORLD, requests=(0,), **both)
    first.call("MPI_Wait", completed=(0,))
    second.call("MPI_Recv", comm=COMM_WORLD, peer=0, tag=3, size_bytes=1 << 20)
    second.call("MPI_Ssend", comm=COMM_WORLD, peer=0, tag=4, size_bytes=1 << 20)
    out = tmp_path / f"out.{ending}"
    convert.convert(source, out, None)
    back = convert.open_source([out], None)
    assert {(model.ops()[e.op].name, e.peer, e.tag, e.size_bytes) for e in back.events(0)} >= {
        ("MPI_Irecv", 1, 4, 1 << 20),
        ("MPI_Isend", 1, 3, 1 << 20),
    }
    convert.convert(back, tmp_path / "back.ftr", None)
    done = fallow("sim", str(tmp_path / "back.ftr"), "--json")
    assert done.returncode == 0, done.stderr


def test_collectives_of_unknown_communicators_are_none_of_the_world(tmp_path: Path) -> None:
    """As those with spawned processes are recorded: a replay would have the other ranks wait for them."""
    source, one, _ = two_ranks()
    one.call("MPI_Bcast", comm=model.COMM_NONE, root=model.ROOT_HERE, size_bytes=4)
    one.call("MPI_Barrier", comm=model.COMM_NONE)
    lost = convert.convert(source, tmp_path / "a.dim", None)
    assert "Dimemas cannot carry collectives of unknown communicators (2 times)" in lost
    assert not any(line.startswith("10:") for line in (tmp_path / "a.dim").read_text().splitlines())


def test_collectives_between_two_groups_are_not_made_up(tmp_path: Path) -> None:
    source = MemorySource(Info(size=4, comms=[([(0, 2, 1)], [(2, 2, 1)])]))
    for r in range(4):
        Rank(source, r).call("MPI_Allreduce", comm=FIRST_COMM, size_bytes=8)
    lost = convert.convert(source, tmp_path / "a.goal", None)
    assert "GOAL cannot carry collectives of intercommunicators (4 times)" in lost
    assert goal_messages(tmp_path / "a.goal") == (Counter(), Counter())


@pytest.mark.parametrize("ending", ["dim", "tit"])
def test_that_threads_are_lost_is_said(tmp_path: Path, ending: str) -> None:
    source = MemorySource(Info(size=1))
    first = Rank(source, 0)
    first.call("MPI_Barrier", comm=COMM_WORLD)
    first.call("MPI_Barrier", comm=COMM_WORLD, thread=1)
    lost = convert.convert(source, tmp_path / f"a.{ending}", None)
    assert any("the threads of a rank" in line for line in lost), lost


def test_starts_in_archives_of_other_tools_begin_calls_of_their_own(tmp_path: Path, fallow: Fallow) -> None:
    """As Score-P has them: the requests' making says nothing, a start has a record for each message that it begins."""
    pytest.importorskip("otf2.writer")
    otf2 = pytest.importorskip("otf2")
    with otf2.writer.open(str(tmp_path / "archive"), timer_resolution=10**9) as trace:
        d, mpi = trace.definitions, otf2.Paradigm.MPI
        node = d.system_tree_node("n", parent=d.system_tree_node("m"))
        masters = [d.location(f"master {r}", group=d.location_group(f"MPI Rank {r}", system_tree_parent=node)) for r in range(2)]
        d.group("MPI", group_type=otf2.GroupType.COMM_LOCATIONS, paradigm=mpi, members=tuple(masters))
        world = d.comm("world", group=d.group("world", group_type=otf2.GroupType.COMM_GROUP, paradigm=mpi, members=tuple(masters)))
        names = ("MPI_Send_init", "MPI_Recv_init", "MPI_Startall", "MPI_Waitall")
        region = {n: d.region(n, region_role=otf2.RegionRole.FUNCTION, paradigm=mpi) for n in names}
        for rank, location in enumerate(masters):
            w = trace.event_writer_from_location(location)
            for at, name in ((10, "MPI_Send_init"), (30, "MPI_Recv_init")):
                w.enter(at, region[name])
                w.leave(at + 10, region[name])
            for step in range(3):
                at, send, receive = 1000 * (step + 1), 10 * step + 1, 10 * step + 2
                w.enter(at, region["MPI_Startall"])
                w.mpi_isend(at + 5, 1 - rank, world, 7, 64, send)
                w.mpi_irecv_request(at + 6, receive)
                w.leave(at + 50, region["MPI_Startall"])
                w.enter(at + 100, region["MPI_Waitall"])
                w.mpi_isend_complete(at + 140, send)
                w.mpi_irecv(at + 140, 1 - rank, world, 7, 64, receive)
                w.leave(at + 150, region["MPI_Waitall"])
    source = convert.open_source([tmp_path / "archive"], None)
    for rank in range(2):
        calls = [e for e in source.events(rank) if model.ops()[e.op].name in ("MPI_Isend", "MPI_Irecv")]
        assert [(model.ops()[e.op].name, e.peer, e.tag, e.size_bytes) for e in calls] == 3 * [
            ("MPI_Isend", 1 - rank, 7, 64), ("MPI_Irecv", 1 - rank, 7, 64)
        ]  # fmt: skip
        assert sum(e.compute_ns for e in calls) == 960 + 2 * 850
    assert fallow("trace", "convert", "archive", "-o", "a.ftr").returncode == 0
    done = fallow("sim", "a.ftr", "--policy", "oracle")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("ending", ["dim", "tit"])
def test_a_receive_of_any_tag_is_not_made_one_of_tag_0(tmp_path: Path, fallow: Fallow, ending: str) -> None:
    """The program ignored the statuses: nobody knows which tag it was."""
    source, sender, receiver = two_ranks()
    sender.call("MPI_Send", comm=COMM_WORLD, peer=1, tag=5, size_bytes=8)
    receiver.call("MPI_Irecv", comm=COMM_WORLD, peer=0, tag=model.ANY_TAG, size_bytes=8, requests=(0,))
    receiver.call("MPI_Wait", completed=(0,))
    sender.call("MPI_Send", comm=COMM_WORLD, peer=1, tag=6, size_bytes=8)
    receiver.call("MPI_Sendrecv", comm=COMM_WORLD, peer=model.NULL_PEER, recv_peer=0, recv_tag=model.ANY_TAG, recv_bytes=8)
    lost = convert.convert(source, tmp_path / f"a.{ending}", None)
    assert any("receives of any tag" in line for line in lost), lost
    assert fallow("trace", "convert", f"a.{ending}", "-o", "a.ftr").returncode == 0
    done = fallow("sim", "a.ftr", "--policy", "oracle")
    assert done.returncode == 0, done.stderr


def test_goal_has_no_message_without_bytes(tmp_path: Path) -> None:
    """LogGOPSim would take the largest number of bytes for one less than none."""
    source = MemorySource(Info(size=2))
    for r in range(2):
        rank = Rank(source, r)
        rank.call("MPI_Send" if r else "MPI_Recv", comm=COMM_WORLD, peer=1 - r, tag=3)
        rank.call("MPI_Bcast", comm=COMM_WORLD, root=0)
        rank.call("MPI_Gather", comm=COMM_WORLD, root=0)
        rank.call("MPI_Scatter", comm=COMM_WORLD, root=0)
    lost = convert.convert(source, tmp_path / "a.goal", None)
    sent, received = goal_messages(tmp_path / "a.goal")
    assert sent == received and sum(sent.values()) == 4
    assert all(size == 1 for _, _, _, size in sent)
    assert any("without bytes" in line for line in lost)


@pytest.mark.parametrize("name", ["MPI_Gatherv", "MPI_Scatterv"])
def test_goal_has_blocks_of_different_sizes_alike_on_both_sides(tmp_path: Path, name: str) -> None:
    sizes = (10, 20, 40)
    source = MemorySource(Info(size=3))
    for rank in range(3):
        gathers, root = name == "MPI_Gatherv", rank == 1
        own, all_of_them = sizes[rank], sizes if root else ()
        fields = {"size_bytes": own, "recv_bytes": 70 * root, "recv_counts": all_of_them} if gathers else {"size_bytes": 70 * root, "recv_bytes": own, "counts": all_of_them}
        Rank(source, rank).call(name, comm=COMM_WORLD, root=1, **fields)
    convert.convert(source, tmp_path / "a.goal", None)
    lines = re.findall(r"(rank|send|recv) (\d+)(?:b (?:to|from) (\d+))?", (tmp_path / "a.goal").read_text())
    found, rank = {"send": set(), "recv": set()}, ""
    for word, number, other in lines:
        if word == "rank":
            rank = number
        else:
            found[word].add((rank, other, number) if word == "send" else (other, rank, number))
    assert found["send"] == found["recv"] and sorted(n for *_, n in found["send"]) == ["10", "40"]


def test_goal_hands_on_the_blocks_of_an_allgatherv(tmp_path: Path) -> None:
    """Whoever gives little passes on what the others give: each rank receives all blocks but its own."""
    sizes = (10, 20, 40)
    source = MemorySource(Info(size=3))
    for rank in range(3):
        Rank(source, rank).call("MPI_Allgatherv", comm=COMM_WORLD, size_bytes=sizes[rank], recv_bytes=70, recv_counts=sizes)
    convert.convert(source, tmp_path / "a.goal", None)
    ranks = (tmp_path / "a.goal").read_text().split("rank ")[1:]
    moved = [[re.findall(rf"{verb} (\d+)b", text) for verb in ("send", "recv")] for text in ranks]
    assert [received for _, received in moved] == [["40", "20"], ["10", "40"], ["20", "10"]]
    assert [moved[(r - 1) % 3][0] for r in range(3)] == [received for _, received in moved]


@pytest.mark.parametrize("ending", ["dim", "tit", "goal"])
def test_nobody_waits_for_a_request_that_was_freed(tmp_path: Path, ending: str) -> None:
    """A receive that was cancelled, and freed; the next request has its number."""
    source = MemorySource(Info(size=2))
    for r in range(2):
        rank, other = Rank(source, r), 1 - r
        rank.call("MPI_Irecv", comm=COMM_WORLD, peer=other, tag=9, size_bytes=8, requests=(0,))
        rank.call("MPI_Cancel", requests=(0,))
        rank.call("MPI_Request_free", requests=(0,))
        rank.call("MPI_Isend", comm=COMM_WORLD, peer=other, tag=1, size_bytes=8, requests=(0,))
        rank.call("MPI_Recv", comm=COMM_WORLD, peer=other, tag=1, size_bytes=8)
        rank.call("MPI_Waitall", completed=(0,))
    out = tmp_path / f"out.{ending}"
    convert.convert(source, out, None)
    if ending == "goal":
        text = out.read_text()
        label = re.search(r"(l\d+): recv 8b from 1 tag 9\n", text)
        assert label is not None
        assert f"requires {label[1]}\n" not in text
        return
    read = list(convert.open_source([out], None).events(0))
    begun = [e for e in read if model.ops()[e.op].name == "MPI_Irecv"]
    assert [e.tag for e in begun] == [9]
    assert not [e for e in read if begun[0].requests[0] in e.completed]


@pytest.mark.parametrize("name", ["MPI_Bsend", "MPI_Ibsend"])
@pytest.mark.parametrize("ending", ["dim", "tit", "goal"])
def test_buffered_sends_wait_for_no_receiver(fallow: Fallow, tmp_path: Path, ending: str, name: str) -> None:
    """A ring in which each rank sends before it receives: by sends that waited, none would come to its receive."""
    source = MemorySource(Info(size=3))
    for r in range(3):
        rank = Rank(source, r)
        request = {"requests": (0,)} if name == "MPI_Ibsend" else {}
        rank.call(name, comm=COMM_WORLD, peer=(r + 1) % 3, tag=1, size_bytes=1 << 20, **request)
        if request:
            rank.call("MPI_Wait", completed=(0,))
        rank.call("MPI_Recv", comm=COMM_WORLD, peer=(r - 1) % 3, tag=1, size_bytes=1 << 20)
    out = tmp_path / f"out.{ending}"
    convert.convert(source, out, None)
    if ending == "goal":
        assert not re.search(r"requires l1\n", out.read_text())
        return
    convert.convert(convert.open_source([out], None), tmp_path / "back.ftr", None)
    done = fallow("sim", str(tmp_path / "back.ftr"), "--json")
    assert done.returncode == 0, done.stderr


def test_goal_takes_messages_from_any_source_of_any_tag(tmp_path: Path) -> None:
    source = MemorySource(Info(size=2))
    anything = {"comm": COMM_WORLD, "peer": model.ANY_PEER, "tag": model.ANY_TAG, "size_bytes": 8}
    source.lists[0].append(model.Event(op=model.op_number("MPI_Recv"), **anything))
    source.lists[0].append(model.Event(op=model.op_number("MPI_Recv"), **anything | {"peer": 1}))
    for tag in (5, 6):
        source.lists[1].append(model.Event(op=model.op_number("MPI_Send"), comm=COMM_WORLD, peer=0, tag=tag, size_bytes=8))
    lost = convert.convert(source, tmp_path / "a.goal", None)
    found = re.findall(r"(?:send|recv) .*", (tmp_path / "a.goal").read_text())
    assert found == ["recv 8b from -1 tag -1", "recv 8b from 1 tag -1", "send 8b to 0 tag 5", "send 8b to 0 tag 6"]
    assert not any("partner" in line for line in lost)
