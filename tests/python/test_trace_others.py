"""Traces as other tools write them: what these say differently from ours."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import trace_samples as samples
from fallow.errors import UserError
from fallow.traces import convert, model, otf2_format, others, simgrid, simgrid_read
from fallow.traces.model import FIRST_COMM, Info
from fallow.traces.others import collective_sizes
from fallow.traces.text import Losses, RequestNumbers

Fallow = Callable[..., "subprocess.CompletedProcess[str]"]


def call(kind: int, value: int, begin: int, end: int, *more: tuple[int, int]) -> list[tuple[int, str]]:
    """Records of a call: (time, what follows the time)."""
    pairs = ":".join(f"{t}:{v}" for t, v in ((kind, value), *more))
    return [(begin, pairs), (end, f"{kind}:0")]


def extrae(path: Path, unit: str = "") -> Path:
    """Two ranks as Extrae records them: no requests, a receive's begin at the end of MPI_Irecv, roots where they are."""
    p2p, collective = 50000001, 50000002
    lines = [f"#Paraver (01/02/2020 at 10:11):1400{unit}:1(2):1:2(1:1,1:1),1", "c:1:1:2:1:2"]
    for rank, (sent, got) in enumerate([((50100001, 800), (50100002, 0)), ((50100001, 0), (50100002, 800))]):
        records = call(p2p, 3, 100, 101) + call(p2p, 4, 110, 112) + call(p2p, 6, 120, 500)
        records += call(collective, 7, 600, 700, sent, got, *([(50100003, 1)] if rank == 0 else []), (50100004, 1))
        records += call(collective, 11, 1000, 1100, (50100001, 64), (50100002, 0), (50100004, 1))
        records += call(p2p, 41, 1200, 1300)
        lines += [f"2:{rank + 1}:1:{rank + 1}:1:{time}:{pairs}" for time, pairs in records]
    for a, b in ((1, 2), (2, 1)):
        lines.append(f"3:{a}:1:{a}:1:100:100:{b}:1:{b}:1:112:400:4096:{a}")
        lines.append(f"3:{a}:1:{a}:1:1200:1200:{b}:1:{b}:1:1200:1290:2048:9")
    path.write_text("\n".join(lines) + "\n")
    path.with_suffix(".pcf").write_text(
        "EVENT_TYPE\n9    50000001    MPI Point-to-point\nVALUES\n0   End\n3   MPI_Isend\n4   MPI_Irecv\n6   MPI_Waitall\n"
        "41   MPI_Sendrecv\n"
    )
    return path


@pytest.mark.parametrize(("unit", "ns"), [("", 1000), ("_us", 1000), ("_ns", 1)])
def test_times_without_a_unit_are_microseconds(tmp_path: Path, unit: str, ns: int) -> None:
    source = convert.open_source([extrae(tmp_path / "x.prv", unit)], None)
    first, second, *_ = source.events(0)
    assert (first.enter_ns, first.exit_ns, second.compute_ns) == (100 * ns, 101 * ns, 9 * ns)


def test_receives_are_completed_by_the_wait_in_which_their_message_came(tmp_path: Path) -> None:
    source = convert.open_source([extrae(tmp_path / "x.prv")], None)
    for rank in (0, 1):
        calls = {model.ops()[e.op].name: e for e in source.events(rank)}
        received, waited, exchanged = calls["MPI_Irecv"], calls["MPI_Waitall"], calls["MPI_Sendrecv"]
        assert (received.peer, received.tag, received.size_bytes) == (1 - rank, 2 - rank, 4096)
        assert received.requests == (0,) and waited.completed == (0,)
        assert (exchanged.peer, exchanged.size_bytes, exchanged.recv_peer, exchanged.recv_bytes) == (1 - rank, 2048) * 2
        assert (exchanged.tag, exchanged.recv_tag) == (9, 9)


def test_collectives_are_the_same_on_all_ranks(tmp_path: Path) -> None:
    source = convert.open_source([extrae(tmp_path / "x.prv")], None)
    for rank in (0, 1):
        calls = {model.ops()[e.op].name: e for e in source.events(rank)}
        assert (calls["MPI_Bcast"].root, calls["MPI_Bcast"].size_bytes, calls["MPI_Bcast"].recv_bytes) == (0, 800, 0)
        assert (calls["MPI_Alltoall"].size_bytes, calls["MPI_Alltoall"].recv_bytes) == (128, 128)


def test_a_trace_of_extrae_is_replayed_as_it_ran(tmp_path: Path, fallow: Fallow) -> None:
    assert fallow("trace", "convert", extrae(tmp_path / "x.prv"), "-o", tmp_path / "x.ftr").returncode == 0
    done = fallow("sim", tmp_path / "x.ftr", "--policy", "always-on", "--json")
    assert done.returncode == 0, done.stderr
    (policy,) = json.loads(done.stdout)["simulations"]
    assert 0.0004 < policy["run_time_s"] < 0.0015


@pytest.mark.parametrize(
    ("name", "given", "got", "sizes"),
    [
        ("MPI_Bcast", 4 * 100, 100, (100, 0)),  # Score-P's root counts each rank
        ("MPI_Bcast", 0, 100, (100, 0)),
        ("MPI_Bcast", 100, 0, (100, 0)),  # Extrae's root
        ("MPI_Reduce", 0, 100, (100, 0)),
        ("MPI_Allgather", 100, 400, (100, 400)),
        ("MPI_Allgather", 400, 400, (100, 400)),
        ("MPI_Allgather", 100, 0, (100, 400)),
        ("MPI_Alltoall", 400, 400, (400, 400)),
        ("MPI_Alltoall", 100, 400, (400, 400)),
        ("MPI_Alltoall", 100, 0, (400, 400)),
        ("MPI_Gatherv", 7, 9, (7, 9)),
    ],
)
def test_sizes_of_collectives_as_tools_count_them(name: str, given: int, got: int, sizes: tuple[int, int]) -> None:
    assert collective_sizes(name, given, got, 4) == sizes


def test_simgrid_counts_elements_of_datatypes(tmp_path: Path) -> None:
    path = tmp_path / "x.tit"
    path.write_text("x.0\nx.1\n")
    body = (
        "send {peer} 0 10\nrecv {peer} 0 10 1\nbcast 100\nbcast 100 0 2\nallreduce 5 1e3\nallreduce 5 1e3 6\nfinalize\n"
    )
    for init, each in (("init", 1), ("init 0", 8)):
        for rank in (0, 1):
            lines = f"{rank} {init}\n" + "".join(f"{rank} {line}\n" for line in body.splitlines())
            (tmp_path / f"x.{rank}").write_text(lines.format(peer=1 - rank))
        source = convert.open_source([path], None)
        sizes = [e.size_bytes for e in source.events(0) if e.size_bytes]
        assert sizes == [10 * each, 40, 100 * each, 100, 5 * each, 5]


def test_names_that_a_format_cannot_hold(tmp_path: Path, fallow: Fallow) -> None:
    convert.convert(samples.plain(2, 2), tmp_path / "a.ftr", None)
    assert fallow("trace", "convert", "a.ftr", "-o", 'gro\u00df "1".dim').returncode == 0
    assert convert.open_source([tmp_path / 'gro\u00df "1".dim'], None).info.size == 2
    done = fallow("trace", "convert", "a.ftr", "-o", "x.row", "--to", "paraver")
    assert (done.returncode, done.stderr) == (2, "fallow: x.row: names and labels are put there, beside a .prv; say -o x.prv\n")
    for ending in ("dim", "tit", "parquet", "otf2", "prv"):
        done = fallow("trace", "convert", "a.ftr", "-o", f"x\udcff.{ending}")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1) and "the name is not UTF-8" in done.stderr
    for flag in ("--platform", "--topology", "--cores", "--core-state"):
        done = fallow("sim", "--synth", "cg", flag, "/x\udcff")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1) and "the name is not UTF-8" in done.stderr, flag


@pytest.mark.parametrize("ending", ["prv", "dim", "tit", "otf2"])
def test_files_without_lines_are_not_read_to_their_end(tmp_path: Path, ending: str, fallow: Fallow) -> None:
    with (tmp_path / f"x.{ending}").open("wb") as file:
        file.truncate(5 << 30)
    most = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))}
    done = fallow("trace", "convert", f"x.{ending}", "-o", "y.ftr", **most)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1) and f"x.{ending}: " in done.stderr, done.stderr


def test_a_page_does_not_take_the_place_of_what_is_read(tmp_path: Path, fallow: Fallow) -> None:
    convert.convert(samples.plain(2, 2), tmp_path / "a.ftr", None)
    kept = (tmp_path / "a.ftr").read_bytes()
    (tmp_path / "link.html").symlink_to("a.ftr")
    for command in (
        ["sim", "a.ftr", "--html", "a.ftr"],
        ["sim", "a.ftr", "--html", "link.html"],
        ["sim", "a.ftr", "--html", "x.json", "--timeline", "./x.json"],
        ["predict", "a.ftr", "--html", "./a.ftr"],
    ):
        done = fallow(*command)
        assert done.returncode == 2 and done.stderr.endswith(": is named twice, and would be written over\n"), command
    assert (tmp_path / "a.ftr").read_bytes() == kept and not (tmp_path / "x.json").exists()


def test_simgrid_has_blocks_that_are_reduced_and_scattered_as_counts(tmp_path: Path) -> None:
    """It knows no MPI_Reduce_scatter_block; the counts of all ranks are the same then."""
    op = model.op_number("MPI_Reduce_scatter_block")
    events = [model.Event(op=op, comm=model.COMM_WORLD, size_bytes=120, recv_bytes=40)]
    losses = Losses()
    simgrid.write(model.MemorySource(model.Info(size=3), [events] * 3), tmp_path / "t.tit", losses)
    assert (tmp_path / "t.tit.ranks/rank-1.txt").read_text().splitlines()[1] == "1 reducescatter 40 40 40 0"
    assert not any("Reduce_scatter" in line for line in losses.lines("it"))
    back = simgrid_read.read(tmp_path / "t.tit")
    assert [(e.size_bytes, e.recv_bytes) for e in back.events(2)] == [(120, 40)]


@pytest.mark.parametrize("name", ["a b.tit", "#a.tit", "a\n.tit"])
def test_a_simgrid_file_whose_name_cannot_be_listed_is_refused(tmp_path: Path, name: str) -> None:
    convert.convert(samples.plain(2, 2), tmp_path / "x.ftr", None)
    with pytest.raises(UserError, match="its name can have no white space"):
        convert.convert(samples.plain(2, 2), tmp_path / name, None)
    assert list(tmp_path.iterdir()) == [tmp_path / "x.ftr"]


def test_a_simgrid_trace_takes_the_place_of_one_of_more_ranks(tmp_path: Path) -> None:
    convert.convert(samples.plain(12, 2), tmp_path / "a.tit", None)
    folder = tmp_path / "a.tit.ranks"
    for other in ("rank-03.txt", "rank-9.txt.old", "notes.txt"):
        (folder / other).touch()
    convert.convert(samples.plain(2, 2), tmp_path / "a.tit", None)
    assert {p.name for p in folder.iterdir()} == {"rank-0.txt", "rank-1.txt", "rank-03.txt", "rank-9.txt.old", "notes.txt"}
    assert convert.open_source([tmp_path / "a.tit"], None).info.size == 2


@pytest.mark.parametrize(
    ("line", "why"),
    [("0 send x 0 8", "'x' is no whole number"), ("0 send 1 0 much", "'much' is no number"), ("0 compute long", "'long' is no number"),
     ("0 bcast 8 0 int", "'int' is no whole number"), ("zero barrier", "'zero' is no whole number"), ("0 send " + "9" * 5000 + " 0 8", "is no whole number"),
     ("0 send \x1b[2Jx 0 8", "'?[2Jx' is no whole number")],
)  # fmt: skip
def test_what_is_no_number_is_said_in_words(tmp_path: Path, line: str, why: str) -> None:
    (tmp_path / "x.tit").write_text(f"0 init\n1 init\n{line}\n")
    with pytest.raises(UserError, match=f"x.tit: line 3: .*{re.escape(why)}$") as error:
        convert.open_source([tmp_path / "x.tit"], None)
    assert len(str(error.value)) < 200 + len(str(tmp_path))


@pytest.mark.parametrize("first", ["# made by hand\n0 init\n", "p0 init\n"])
def test_one_simgrid_file_of_all_ranks(tmp_path: Path, first: str) -> None:
    """Comments are no ranks, and p0 is rank 0."""
    (tmp_path / "x.tit").write_text(f"{first}1 init\n0 send 1 0 8\n# half way\n1 recv 0 0 8\n0 barrier\n1 barrier\n")
    source = convert.open_source([tmp_path / "x.tit"], None)
    assert source.info.size == 2
    assert [[model.ops()[e.op].name for e in source.events(r)] for r in (0, 1)] == [["MPI_Send", "MPI_Barrier"], ["MPI_Recv", "MPI_Barrier"]]


def test_a_receive_of_otf2_is_of_its_own_thread(tmp_path: Path) -> None:
    """While a thread is in MPI_Irecv a call of another ends: what was received is the former's all the same."""
    pytest.importorskip("otf2.writer")
    otf2 = pytest.importorskip("otf2")
    with otf2.writer.open(str(tmp_path / "archive"), timer_resolution=10**9) as trace:
        d, mpi = trace.definitions, otf2.Paradigm.MPI
        node = d.system_tree_node("n", parent=d.system_tree_node("m"))
        ranks = [d.location_group(f"MPI Rank {r}", system_tree_parent=node) for r in range(2)]
        masters = [d.location(f"master {r}", group=group) for r, group in enumerate(ranks)]
        second = d.location("thread 1", group=ranks[0])
        d.group("MPI", group_type=otf2.GroupType.COMM_LOCATIONS, paradigm=mpi, members=tuple(masters))
        world = d.comm("world", group=d.group("world", group_type=otf2.GroupType.COMM_GROUP, paradigm=mpi, members=tuple(masters)))
        names = ("MPI_Irecv", "MPI_Wait", "MPI_Send", "MPI_Iprobe")
        region = {n: d.region(n, region_role=otf2.RegionRole.FUNCTION, paradigm=mpi) for n in names}
        first, other, sender = (trace.event_writer_from_location(x) for x in (masters[0], second, masters[1]))
        other.enter(90, region["MPI_Iprobe"])
        first.enter(100, region["MPI_Irecv"])
        first.mpi_irecv_request(105, 7)
        other.leave(120, region["MPI_Iprobe"])
        first.leave(130, region["MPI_Irecv"])
        first.enter(200, region["MPI_Wait"])
        first.mpi_irecv(290, 1, world, 5, 64, 7)
        first.leave(300, region["MPI_Wait"])
        sender.enter(150, region["MPI_Send"])
        sender.mpi_send(151, 0, world, 5, 64)
        sender.leave(160, region["MPI_Send"])
    calls = {model.ops()[e.op].name: e for e in convert.open_source([tmp_path / "archive"], None).events(0)}
    assert (calls["MPI_Irecv"].peer, calls["MPI_Irecv"].tag, calls["MPI_Irecv"].size_bytes) == (1, 5, 64)
    assert (calls["MPI_Iprobe"].peer, calls["MPI_Iprobe"].size_bytes) == (-1, 0)


@pytest.mark.parametrize("scattered", [
    (150, (50, 100, 0), (50, 100, 0), (50, 100, 0)), (90, (0, 0, 0), (), (30, 30, 30)), (150, (50, 50, 50), (), (50, 50, 50)),
])  # fmt: skip
def test_who_gets_what_of_a_scatterv(tmp_path: Path, fallow: Fallow, scattered: Any) -> None:
    """Dimemas has the sum alone: the others say what each gets, and to whom nothing is sent."""
    given, got, counts, received = scattered
    lines = ['#DIMEMAS:"x":1,0:3(1,1,1),1', "d:1:1:3:0:1:2"]
    for rank in range(3):
        lines += [f"1:{rank}:0:0.001", f"10:{rank}:0:5:1:0:0:{given if rank == 0 else 0}:{got[rank]}:1"]
    (tmp_path / "x.dim").write_text("\n".join(lines) + "\n")
    source = convert.open_source([tmp_path / "x.dim"], None)
    root, *others = (next(iter(source.events(rank))) for rank in range(3))
    assert tuple(root.counts) == counts
    assert tuple(e.recv_bytes for e in (root, *others)) == received and not any(e.counts for e in others)
    assert fallow("trace", "convert", "x.dim", "-o", "x.ftr").returncode == 0
    done = fallow("sim", "x.ftr", "--policy", "always-on", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["simulations"][0]["raw"]["messages"] == sum(1 for n in received[1:] if n)


def test_places_in_communicators_are_looked_up_not_searched_for() -> None:
    """Formats name world ranks; of thousands in a communicator none is searched for at every call."""
    shuffled = [3, 1, 4, 0]
    info = Info(size=6, comms=[(model.runs_of(shuffled), []), (model.runs_of([1, 3, 5]), []), ([(2, 1, 1)], [(4, 1, 1), (3, 1, 1)])])
    assert [info.place(FIRST_COMM, 3, r) for r in range(6)] == [3, 1, -1, 0, 2, -1]
    assert [info.place(FIRST_COMM + 1, 3, r) for r in range(6)] == [-1, 0, -1, 1, -1, 2]
    assert [info.place(FIRST_COMM + 2, 3, r) for r in range(6)] == [-1, -1, -1, 1, 0, -1]
    assert [info.place(FIRST_COMM + 2, 2, r) for r in range(6)] == [-1, -1, 0, -1, -1, -1]
    assert [info.place(model.COMM_SELF, c, r) for c, r in ((1, 1), (2, 2), (2, 1))] == [0, 0, -1]
    assert (info.place(model.COMM_WORLD, 0, 5), info.place(model.COMM_WORLD, 0, 6), info.place(99, 0, 0)) == (5, -1, -1)
    group = info.members(FIRST_COMM, 3)
    assert isinstance(group, tuple) and info.members(FIRST_COMM, 1) is group  # by which they are kept


@pytest.mark.parametrize(
    ("records", "why"),
    [
        (["1:0:1:0.5"], "line 3: tasks of more than one thread cannot be read"),
        (["3:0:0:1:0:8:0:1:2"], "line 3: wait for a message that was not started"),
        (["2:0:0:7:0:8:0:1:0"], "line 3: 7 is out of range"),
        (["2:0:0:1:0:8:0:5:0"], "line 3: communicator 5 is not defined"),
        (["40:0:0:1", "99:0:0:1"], "line 4: unknown record '99'"),
    ],
)
def test_dimemas_records_that_cannot_be_are_refused(tmp_path: Path, records: list[str], why: str) -> None:
    file = tmp_path / "x.dim"
    file.write_text("\n".join(['#DIMEMAS:"x":1,0:2(1,1),1', "d:1:1:2:0:1", *records]) + "\n")
    with pytest.raises(UserError, match=re.escape(f"{file}: {why}")):
        convert.open_source([file], None)


def test_a_dimemas_header_has_threads_of_each_task(tmp_path: Path) -> None:
    (tmp_path / "x.dim").write_text('#DIMEMAS:"x":1,0:2(1,1,1),1\n')
    with pytest.raises(UserError, match="line 1: 2 tasks, but threads of 3"):
        convert.open_source([tmp_path / "x.dim"], None)


def test_a_call_of_paraver_that_ends_before_it_begins_is_refused(tmp_path: Path) -> None:
    lines = ["#Paraver (01/02/2020 at 10:11):90_ns:1(1):1:1(1:1),1", "c:1:1:1:1", "2:1:1:1:1:50:50000001:1", "2:1:1:1:1:40:50000001:0"]
    (tmp_path / "x.prv").write_text("\n".join(lines) + "\n")
    with pytest.raises(UserError, match="line 4: a call ends before it begins"):
        convert.open_source([tmp_path / "x.prv"], None)


def test_paraver_has_calls_by_the_numbers_that_its_configurations_know(tmp_path: Path) -> None:
    """Extrae's, and states by the kind of call."""
    names = ("MPI_Send", "MPI_Recv", "MPI_Irecv", "MPI_Wait", "MPI_Barrier")
    events = [model.Event(op=model.op_number(name), comm=1, enter_ns=10 * n, exit_ns=10 * n + 5) for n, name in enumerate(names)]
    convert.convert(model.MemorySource(Info(size=1), [events]), tmp_path / "x.prv", None)
    records = [line.split(":") for line in (tmp_path / "x.prv").read_text().splitlines()[2:]]
    starts = [r for r in records if r[0] == "2" and r[7] != "0"]
    assert [(r[6], r[7]) for r in starts] == [("50000001", v) for v in ("1", "2", "4", "5")] + [("50000002", "8")]
    states = [r[7] for r in records if r[0] == "1" and r[7] != "1"]
    assert states == ["4", "3", "10", "8", "13"]  # blocking send, waiting a message, immediate, wait, group communication


def test_a_receive_is_completed_by_no_call_but_one_that_lasts_when_its_message_is_there(tmp_path: Path) -> None:
    """Not by a wait before it, nor by one that was over."""
    irecv, wait = model.op_number("MPI_Irecv"), model.op_number("MPI_Wait")

    def completed(arrived_ns: int) -> list[tuple[int, ...]]:
        made = [(wait, 10, 20), (irecv, 30, 40), (wait, 50, 60), (wait, 80, 90)]
        events = [model.Event(op=op, enter_ns=begin, exit_ns=end) for op, begin, end in made]
        source = model.MemorySource(Info(size=2), [events, [model.Event(op=model.op_number("MPI_Send"), enter_ns=5, exit_ns=6)]])
        others.complete(source, [others.Message(1, (0, 5), 0, (0, 30), arrived_ns, 8, 1)], [set(), set()])
        assert bool(source.lists[0][1].requests) == any(e.completed for e in source.lists[0])
        return [tuple(e.completed) for e in source.lists[0]]

    assert completed(55) == [(), (), (0,), ()]
    assert completed(85) == [(), (), (), (0,)]
    assert completed(70) == completed(35) == completed(15) == [(), (), (), ()]


def test_a_scatterv_of_which_nobody_says_what_came_is_even(tmp_path: Path) -> None:
    op = model.op_number("MPI_Scatterv")
    lists = [[model.Event(op=op, comm=model.COMM_WORLD, root=0, size_bytes=90 if rank == 0 else 0)] for rank in range(3)]
    source = model.MemorySource(Info(size=3), lists)
    others.scatter_counts(source)
    assert [events[0].recv_bytes for events in source.lists] == [30, 30, 30]
    assert source.lists[0][0].counts == ()


def test_actions_of_simgrid_say_who_gets_what(tmp_path: Path) -> None:
    """Of three ranks; the root alone gets what is gathered, and numbers behind the counts may be displacements."""
    lines = ["{} init", "{} sleep 0.25", "{} gather 4 4 1", "{} reducescatter 10 20 30 0", "{} allgatherv 10 10 20 30 0 10 30", "{} finalize"]
    (tmp_path / "x.tit").write_text("".join(line.format(rank) + "\n" for rank in range(3) for line in lines))
    source = convert.open_source([tmp_path / "x.tit"], None)
    gathers, reduced, all_gathered = zip(*(source.events(rank) for rank in range(3)), strict=True)
    assert [(e.compute_ns, e.size_bytes, e.recv_bytes, e.root) for e in gathers] == [(250_000_000, 4, 0, 1), (250_000_000, 4, 12, 1), (250_000_000, 4, 0, 1)]
    assert [(e.size_bytes, e.recv_bytes) for e in reduced] == [(60, 10), (60, 20), (60, 30)]
    assert [(e.size_bytes, e.recv_bytes, tuple(e.recv_counts)) for e in all_gathered] == [(10, 60, (10, 20, 30))] * 3


@pytest.mark.parametrize(
    ("name", "event", "words"),
    [
        ("MPI_Gather", {"size_bytes": 0, "recv_bytes": 24, "root": 2}, "gather 0 8 2"),
        ("MPI_Gather", {"size_bytes": 8, "root": 2}, "gather 8 8 2"),
        ("MPI_Reduce", {"size_bytes": 8, "root": 2}, "reduce 8 0 2"),
        ("MPI_Reduce_scatter", {"size_bytes": 60, "recv_counts": (10, 20, 30)}, "reducescatter 10 20 30 0"),
        ("MPI_Bsend", {"size_bytes": 8, "peer": 1, "tag": 4}, "isend 1 4 8"),
        ("MPI_Ssend", {"size_bytes": 8, "peer": 1, "tag": 4}, "send 1 4 8"),
    ],
)
def test_calls_as_actions_of_simgrid(tmp_path: Path, name: str, event: dict[str, Any], words: str) -> None:
    made = model.Event(op=model.op_number(name), comm=model.COMM_WORLD, **event)
    convert.convert(model.MemorySource(Info(size=3), [[made], [], []]), tmp_path / "x.tit", None)
    assert (tmp_path / "x.tit.ranks/rank-0.txt").read_text().splitlines() == ["0 init", f"0 {words}", "0 finalize"]


def test_many_open_requests_take_no_longer_each() -> None:
    numbers, n, begun = RequestNumbers(), 40_000, time.process_time()
    for _ in range(2):
        assert [numbers.add((i,)) for i in range(n)] == list(range(n))
        assert numbers.complete_all() == tuple(range(n))
    assert time.process_time() - begun < 3


def test_collectives_of_a_duplicate_of_the_world_are_actions_of_simgrid(tmp_path: Path) -> None:
    """It has the world's ranks in their order; those of other communicators are left out, and that is said."""
    orders: list[list[model.Run]] = [[(0, 2, 1)], [(1, 2, -1)], [(0, 1, 1)]]
    source = model.MemorySource(Info(size=2, comms=[(group, []) for group in orders] + [([(0, 1, 1)], [(1, 1, 1)])]))
    for number in range(FIRST_COMM, FIRST_COMM + 4):
        source.lists[0].append(model.Event(op=model.op_number("MPI_Bcast"), comm=number, root=0, size_bytes=number))
    source.lists[0].append(model.Event(op=model.op_number("MPI_Iallreduce"), comm=FIRST_COMM, size_bytes=8, requests=(0,)))
    source.lists[0].append(model.Event(op=model.op_number("MPI_Ireduce"), comm=FIRST_COMM + 1, root=0, requests=(1,)))
    lost = convert.convert(source, tmp_path / "a.tit", None)
    actions = (tmp_path / "a.tit.ranks" / "rank-0.txt").read_text().splitlines()
    assert actions == ["0 init", f"0 bcast {FIRST_COMM} 0", "0 allreduce 8 0", "0 finalize"]
    name = "SimGrid's time-independent format cannot carry"
    assert f"{name} collectives of communicators other than the world's (they are left out) (4 times)" in lost
    assert f"{name} non-blocking collectives (written as blocking ones)" in lost, "but not of those that are left out"


@pytest.mark.parametrize("ending", ["prv", "otf2"])
def test_collectives_are_shown_to_other_tools_as_these_count_them(tmp_path: Path, ending: str) -> None:
    """Bytes given and got, of rank 0 and of rank 1, which is the root, and as a trace of ours has them."""
    wanted = {
        "MPI_Bcast": [(0, 8), (8, 0)], "MPI_Ireduce": [(8, 0), (8, 8)], "MPI_Allreduce": [(8, 8), (8, 8)],
        "MPI_Iexscan": [(8, 8), (8, 8)], "MPI_Barrier": [(0, 0), (0, 0)],
    }  # fmt: skip
    source = model.MemorySource(Info(size=4, comms=[([(2, 2, 1)], []), ([(0, 2, 1)], [(2, 2, 1)])]))
    for r in (2, 3):
        rank = samples.Rank(source, r)
        for name in wanted:
            root, size = (1 if name in ("MPI_Bcast", "MPI_Ireduce") else -1), (8 if name != "MPI_Barrier" else 0)
            requests = (0,) if name.startswith("MPI_I") else ()
            rank.call(name, comm=FIRST_COMM, root=root, size_bytes=size, requests=requests)
            rank.call("MPI_Wait", completed=requests)
        rank.call("MPI_Alltoallv", comm=FIRST_COMM, size_bytes=3, recv_bytes=0, counts=(1, 2), recv_counts=(0, 0))
        rank.call("MPI_Bcast", comm=FIRST_COMM + 1, root=model.ROOT_HERE if r == 2 else model.NULL_PEER, size_bytes=4)
    convert.convert(source, tmp_path / f"a.{ending}", None)
    path = tmp_path / "a" if ending == "otf2" else tmp_path / "a.prv"
    all_wanted = [*wanted.values(), [(3, 0), (3, 0)], [(4, 0), (4, 0)]]
    for place, rank_found in enumerate(shown_sizes(path)[2:]):
        assert rank_found == [both[place] for both in all_wanted]
    back = convert.open_source([path], None)
    assert [list(back.events(r)) for r in range(4)] == source.lists


def shown_sizes(path: Path) -> list[list[tuple[int, int]]]:
    """By rank."""
    found: list[list[tuple[int, int]]] = [[] for _ in range(4)]
    if path.suffix == ".prv":
        roots = []
        for line in path.read_text().splitlines():
            words = line.split(":")
            pairs = dict(zip(words[6::2], words[7::2], strict=False))
            if words[0] == "2" and "50100001" in pairs:
                found[int(words[3]) - 1].append((int(pairs["50100001"]), int(pairs["50100002"])))
                roots += [int(words[3]) - 1] * ("50100003" in pairs)
        assert sorted(roots) == [2, 3, 3]
        return found
    otf2 = pytest.importorskip("otf2")
    otf2_format.library()
    with otf2.reader.open(str(path / "traces.otf2")) as trace:
        for location, event in trace.events:
            if hasattr(event, "collective_op"):
                found[int(location.name.split()[1])].append((event.size_sent, event.size_received))
    return found
