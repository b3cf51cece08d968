"""Converters: round trips where a format can carry it, what it cannot is said, damaged texts are refused."""

from __future__ import annotations

import json
import random
import re
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import trace_samples as samples
from fallow.errors import UserError
from fallow.traces import convert, model, otf2_errors, paraver
from fallow.traces.model import COMM_SELF, CPU_TIME, FIRST_COMM, FileSource, Info, MemorySource, Source, write_source
from fallow.traces.text import Losses, RequestNumbers, site_of, site_text

MUTATIONS = 400
Fallow = Callable[..., "subprocess.CompletedProcess[str]"]


def same(a: Source, b: Source) -> None:
    assert a.info.size == b.info.size
    for rank in range(a.info.size):
        for x, y in zip(a.events(rank), b.events(rank), strict=True):
            assert x == y._replace(counts=tuple(y.counts))


def test_our_own_format_carries_everything(tmp_path: Path) -> None:
    source = samples.rich()
    write_source(source, tmp_path / "a.ftr")
    back = FileSource([tmp_path / "a.ftr"])
    same(source, back)
    assert back.info.program == "/bin/app"
    assert back.info.hosts == ["n0", "n0", "n1", "n1"]
    assert back.info.comms == source.info.comms
    assert back.info.sites == source.info.sites
    assert back.info.start_wall_ns == 123456789


@pytest.mark.parametrize("ending", ["prv", "otf2"])
def test_rich_formats_carry_everything(tmp_path: Path, ending: str) -> None:
    source = samples.rich()
    source.info.clock = "cpu"
    source.info.program, source.info.mpi_version = '/opt/caf\u00e9 "2"/app', "MPI 9\n\tof a \\ day"
    for events in source.lists:
        events[:] = [e._replace(flags=e.flags | CPU_TIME) for e in events]
    lost = convert.convert(source, tmp_path / f"a.{ending}", None)
    assert lost[0].endswith("cannot carry when the run began")
    undrawn = "Paraver cannot carry receives from any source, of which the trace does not tell who sent, as messages (20 times)"
    assert lost[1:] == ([f"the archive is {tmp_path / 'a' / 'traces.otf2'}"] if ending == "otf2" else [undrawn])
    path = tmp_path / "a" / "traces.otf2" if ending == "otf2" else tmp_path / "a.prv"
    back = convert.open_source([path], None)
    same(source, back)
    assert back.info.comms == source.info.comms
    used = {e.site for events in source.lists for e in events} - {0}
    assert [back.info.sites[n - 1] for n in used] == [source.info.sites[n - 1] for n in used]
    assert used
    assert (back.info.clock, back.info.hosts) == ("cpu", source.info.hosts)
    assert (back.info.program, back.info.mpi_version) == (source.info.program, source.info.mpi_version)


@pytest.mark.parametrize("ending", ["prv", "otf2"])
def test_threads_keep_their_numbers(tmp_path: Path, ending: str) -> None:
    """Also where a thread's first call comes after that of one with a higher number."""
    source = samples.rich(2)
    for events in source.lists:
        events[:] = [e._replace(thread=0 if n == 0 else 3 - n % 3) for n, e in enumerate(events)]
    convert.convert(source, tmp_path / f"a.{ending}", None)
    back = convert.open_source([tmp_path / "a" / "traces.otf2" if ending == "otf2" else tmp_path / "a.prv"], None)
    for rank, events in enumerate(source.lists):
        assert [e.thread for e in back.events(rank)] == [e.thread for e in events]


def test_call_sites_that_nobody_names_are_none(tmp_path: Path) -> None:
    convert.convert(samples.rich(), tmp_path / "a.prv", None)
    (tmp_path / "a.pcf").unlink()
    back = convert.open_source([tmp_path / "a.prv"], None)
    assert back.info.sites == [] and not any(e.site for rank in range(4) for e in back.events(rank))


@pytest.mark.parametrize("site", [(0x10F6, "/opt/app", "solve"), (7, "/a (b)/c+0x1", ""), (1, "", "f(int, int) const")])
def test_a_call_site_is_read_back_from_its_line(site: tuple[int, str, str]) -> None:
    assert site_of(site_text(site)) == site


def test_an_archive_has_the_name_that_is_asked_for(tmp_path: Path) -> None:
    convert.convert(samples.plain(), tmp_path / "a.b", "otf2")
    same(samples.plain(), convert.open_source([tmp_path / "a.b"], None))


def test_nodes_of_other_tools_traces_are_read(tmp_path: Path) -> None:
    convert.convert(samples.rich(), tmp_path / "a.prv", None)
    (tmp_path / "a.row").unlink()
    hosts = convert.open_source([tmp_path / "a.prv"], None).info.hosts
    assert hosts == ["node1", "node1", "node2", "node2"]


@pytest.mark.parametrize("ending", ["dim", "tit", "prv", "ftr", "otf2"])
def test_plain_traces_survive_every_format(tmp_path: Path, ending: str) -> None:
    source = samples.plain()
    convert.convert(source, tmp_path / f"a.{ending}", None)
    path = tmp_path / "a" if ending == "otf2" else tmp_path / f"a.{ending}"
    same(source, convert.open_source([path], None))


@pytest.mark.parametrize("ending", ["dim", "tit", "goal", "json"])
def test_what_a_format_cannot_carry_is_said_once(tmp_path: Path, ending: str) -> None:
    lost = convert.convert(samples.rich(), tmp_path / f"a.{ending}", None)
    assert lost
    assert len(set(lost)) == len(lost)
    assert all("cannot carry" in line for line in lost)


@pytest.mark.parametrize("ending", ["otf2", "prv", "dim", "tit", "json", "parquet", "goal", "ftr"])
def test_a_conversion_shows_how_far_it_is(tmp_path: Path, ending: str) -> None:
    write_source(samples.rich(), tmp_path / "a.ftr")
    shares: list[float] = []
    convert.convert(FileSource([tmp_path / "a.ftr"]), tmp_path / f"b.{ending}", None, shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1, abs=0.25)


def test_of_many_ranks_few_calls_each_are_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_source(samples.plain(), tmp_path / "a.ftr")
    monkeypatch.setattr(model, "_FETCHED", 16)
    monkeypatch.setattr(model, "_LEAST_BATCH", 2)
    source, read = FileSource([tmp_path / "a.ftr"]), []
    source.watch = read.append
    same(samples.plain(), source)
    assert max(read) == 4  # of four ranks


class _Broken:
    """A trace that cannot be read to its end."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.info = source.info

    def events(self, rank: int) -> Iterator[model.Event]:
        if rank == self.info.size - 1:
            raise UserError("the last rank is damaged")
        yield from self._source.events(rank)


@pytest.mark.parametrize("ending", [".prv", ".dim", ".tit", ".json", ".parquet", ".goal"])
def test_a_trace_that_breaks_off_leaves_what_was_there(tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"a{ending}"
    convert.convert(samples.plain(), out, None)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    with pytest.raises(UserError, match="the last rank is damaged"):
        convert.convert(_Broken(samples.rich()), out, None)
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before
    convert.convert(samples.plain(), out, None)  # and over it


def test_an_archive_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    for name in ("new", "given"):
        with pytest.raises(UserError, match="the last rank is damaged"):
            convert.convert(_Broken(samples.rich()), tmp_path / name, "otf2")
    assert list(tmp_path.rglob("*")) == [tmp_path / "given"]
    convert.convert(samples.plain(), tmp_path / "given", "otf2")


def test_an_archive_that_does_not_fit_on_the_disk_says_so(tmp_path: Path, fallow: Fallow) -> None:
    write_source(samples.rich(), tmp_path / "a.ftr")
    for limit in (60, 1000):
        little = {"preexec_fn": lambda limit=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))}
        done = fallow("trace", "convert", "a.ftr", "--to", "otf2", "-o", "new", **little)
        assert done.returncode == 2
        assert re.fullmatch(r"fallow: new\S*: File is too large\n", done.stderr)
        assert not (tmp_path / "new").exists()


def test_damaged_archives_name_the_file(tmp_path: Path, fallow: Fallow) -> None:
    convert.convert(samples.rich(), tmp_path / "good", "otf2")

    def told(part: str, change: Callable[[bytes], bytes]) -> str:
        shutil.rmtree(tmp_path / "bad", ignore_errors=True)
        shutil.copytree(tmp_path / "good", tmp_path / "bad")
        damaged = tmp_path / "bad" / part
        damaged.write_bytes(change(damaged.read_bytes()))
        done = fallow("trace", "convert", "bad", "-o", "x.ftr")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        return str(done.stderr)

    for part in ("traces.def", "traces/1.evt", "traces/2.def"):
        for cut in (0, 10):
            assert told(part, lambda content, cut=cut: content[:cut]).startswith(f"fallow: bad/{part}: ")

    def not_utf8(content: bytes) -> bytes:
        return content.replace(b"MPI_Waitall", b"MPI_W\xffitall")

    assert told("traces.def", not_utf8).startswith("fallow: bad/traces.def: not a trace that can be read: UnicodeDecode")
    assert "bad/traces.def: not a trace that can be read: 'peer=x3" in told(
        "traces.def", lambda content: content.replace(b"peer=3 tag=", b"peer=x3tag=")
    )


def test_what_an_archive_names_and_does_not_define_is_told() -> None:
    """The library's Python part looks it up by number."""
    told = otf2_errors.Complaints()
    told.python.write("Traceback (most recent call last):\n  File ...\nKeyError: 58\n")
    assert told.reason(RuntimeError("x")) == "it names definition 58 of a kind that has none of this number"


def test_dimemas_header_says_where_the_offsets_are(tmp_path: Path) -> None:
    path = tmp_path / "a.dim"
    convert.convert(samples.plain(), path, None)
    text = path.read_bytes()
    found = re.match(rb'#DIMEMAS:"a.dim":1,(\d+):4\(1,1,1,1\),1 *\n', text)
    assert found
    lines = text[int(found[1]) :].decode().splitlines()
    assert [line.split(":")[:2] for line in lines] == [["s", str(r)] for r in range(4)]
    for line in lines:
        _, rank, offset = line.split(":")
        assert text[int(offset) :].startswith(f"1:{rank}:0:".encode())


def test_dimemas_defines_every_communicator_that_it_names(tmp_path: Path) -> None:
    source = MemorySource(Info(size=4, comms=[([(0, 2, 1)], [(2, 2, 1)])]))
    for r in range(4):
        rank = samples.Rank(source, r)
        rank.call("MPI_Sendrecv", comm=COMM_SELF, peer=0, recv_peer=0, tag=1, recv_tag=1, size_bytes=8, recv_bytes=8)
        rank.call("MPI_Allreduce", comm=COMM_SELF, size_bytes=8)
        rank.call("MPI_Send" if r < 2 else "MPI_Recv", comm=FIRST_COMM, peer=1 - r % 2, tag=3, size_bytes=64)
        rank.call("MPI_Bcast", comm=FIRST_COMM, root=model.ROOT_HERE if r == 0 else 0, size_bytes=8)
    lost = convert.convert(source, tmp_path / "a.dim", None)
    assert any("both groups are written as one communicator" in line for line in lost)
    assert any("collectives of intercommunicators (4 times)" in line for line in lost)
    back = convert.open_source([tmp_path / "a.dim"], None)
    assert back.info.comms == [([(0, 4, 1)], []), *(([(r, 1, 1)], []) for r in range(4))]
    for r in range(4):
        events = list(back.events(r))
        assert [model.ops()[e.op].name for e in events][3] == "MPI_Allreduce"
        assert list(back.info.members(events[3].comm, r)) == [r]
        message = events[4]
        assert back.info.world_rank(message.comm, r, message.peer) == {0: 3, 1: 2, 2: 1, 3: 0}[r]
        assert [model.ops()[e.op].name for e in events[5:]] == ["MPI_Finalize"]


def test_paraver_records_come_in_order_and_messages_are_matched(tmp_path: Path) -> None:
    convert.convert(samples.plain(), tmp_path / "a.prv", None)
    times, messages = [], 0
    for line in (tmp_path / "a.prv").read_text().splitlines():
        if line[0] in "123":
            times.append(int(line.split(":")[5]))
        messages += line.startswith("3:")
    assert times == sorted(times)
    assert messages == 4 * 6 * 2
    assert "MPI_Send" in (tmp_path / "a.pcf").read_text()
    assert "THREAD 1.4.1" in (tmp_path / "a.row").read_text()


@pytest.mark.parametrize("sample", [samples.plain, samples.rich])
def test_paraver_counts_the_communicators_that_follow(tmp_path: Path, sample: Callable[[], Source]) -> None:
    convert.convert(sample(), tmp_path / "a.prv", None)
    header, *lines = (tmp_path / "a.prv").read_text().splitlines()
    count = int(header.rpartition(",")[2])  # Paraver takes so many lines, whatever they are, and refuses others
    assert [line[0] == "c" for line in lines[: count + 1]] == [True] * count + [False]


def test_paraver_numbers_processors_node_by_node(tmp_path: Path) -> None:
    source = samples.plain()
    source.info.hosts = ["left", "right", "left", "right"]  # as mpirun --map-by node places ranks
    paraver.write(source, tmp_path / "a.prv", Losses(), [paraver.RestState(1, "core", 100, 200, paraver.CORE_AT_REST)])
    header, *lines = (tmp_path / "a.prv").read_text().splitlines()
    assert ":2(2,2):" in header and "(3:1,3:2,3:1,3:2)" in header
    places = set()
    for f in (line.split(":") for line in lines if line[0] in "123"):
        places.add((int(f[3]), int(f[1])))  # task and processor
        if f[0] == "3":
            places.add((int(f[9]), int(f[7])))
    assert places == {(1, 1), (2, 3), (3, 2), (4, 4)}


def test_paraver_has_rows_for_core_and_link(tmp_path: Path) -> None:
    states = [
        paraver.RestState(2, "core", 100, 200, paraver.CORE_AT_REST),
        paraver.RestState(2, "link", 100, 150, paraver.LINK_AT_REST),
    ]
    paraver.write(samples.plain(), tmp_path / "a.prv", Losses(), states)
    text = (tmp_path / "a.prv").read_text()
    assert "(3:1,3:1,3:1,3:1)" in text.splitlines()[0]
    assert "1:3:1:3:2:100:200:22" in text
    assert "1:3:1:3:3:100:150:24" in text
    assert "LINK 1.3" in (tmp_path / "a.row").read_text()
    same(samples.plain(), convert.open_source([tmp_path / "a.prv"], None))


def test_goal_sends_and_receives_match(tmp_path: Path) -> None:
    convert.convert(samples.plain(), tmp_path / "a.goal", None)
    rank, sends, receives = -1, [], []
    for line in (tmp_path / "a.goal").read_text().splitlines():
        if line.startswith("rank"):
            rank = int(line.split()[1])
        if found := re.match(r"l\d+: (send|recv) (\d+)b (?:to|from) (\d+) tag (\d+)", line):
            size, other, tag = (int(x) for x in found.groups()[1:])
            (sends if found[1] == "send" else receives).append(
                (rank, other, tag, size) if found[1] == "send" else (other, rank, tag, size)
            )
    assert sends
    assert sorted(sends) == sorted(receives)


def test_perfetto_is_json_with_a_slice_for_each_call(tmp_path: Path) -> None:
    convert.convert(samples.plain(2, 1), tmp_path / "a.json", None)
    events = json.loads((tmp_path / "a.json").read_text())["traceEvents"]
    assert sum(e["ph"] == "X" for e in events) == 22
    assert {e["pid"] for e in events} == {0, 1}
    source = samples.rich(2, 1)
    convert.convert(source, tmp_path / "b.json", None)
    drawn = [e for e in json.loads((tmp_path / "b.json").read_text())["traceEvents"] if e["ph"] == "X" and e["pid"] == 1]
    assert [(e["ts"], e["dur"]) for e in drawn] == [(e.enter_ns / 1000, (e.exit_ns - e.enter_ns) / 1000) for e in source.lists[1]]


def test_perfetto_names_both_sides_of_an_exchange_and_call_sites(tmp_path: Path) -> None:
    source = model.MemorySource(model.Info(size=1, clock="cpu", sites=[(0x4F20, "/opt/app", "solve")], comms=[([(0, 1, 1)], [])]))
    source.lists[0] += [
        model.Event(op=model.op_number("MPI_Sendrecv"), comm=3, site=1, peer=0, tag=3, recv_peer=model.ANY_PEER, recv_tag=9, size_bytes=8,
              recv_bytes=16, enter_ns=1000, exit_ns=2000, compute_ns=400, flags=model.CPU_TIME),
        model.Event(op=model.op_number("MPI_Recv"), comm=1, peer=model.ANY_PEER, tag=model.ANY_TAG, recv_bytes=16, enter_ns=2000, exit_ns=3000, flags=7),
    ]  # fmt: skip
    notes = convert.convert(source, tmp_path / "a.json", None)
    both, taken = [e["args"] for e in json.loads((tmp_path / "a.json").read_text())["traceEvents"] if e["ph"] == "X"]
    assert both == {"comm": 3, "size_bytes": 8, "peer": 0, "tag": 3, "recv_peer": "any", "recv_tag": 9, "recv_bytes": 16,
                    "compute_ns": 400, "site": "solve at 0x4f20 in /opt/app"}  # fmt: skip
    assert [taken[k] for k in ("peer", "tag", "flags")] == ["any", "any", "any source, any tag, failed"] and "site" not in taken
    assert any("the members of communicators" in line for line in notes)


def test_simgrid_reads_what_its_tools_write(tmp_path: Path) -> None:
    (tmp_path / "r0.txt").write_text(
        "0 init\n0 compute 2e6\n0 isend 1 0 100\n0 wait 0 1 0\n0 gather 68 68 0 0 0\n0 finalize\n"
    )
    (tmp_path / "r1.txt").write_text("1 init\n1 irecv 0 0 100\n1 waitall\n1 gather 68 68 0 0 0\n1 finalize\n")
    (tmp_path / "list.tit").write_text("r0.txt\nr1.txt\n")
    source = convert.open_source([tmp_path / "list.tit"], None)
    names = [[model.ops()[e.op].name for e in source.events(r)] for r in range(2)]
    assert names == [["MPI_Isend", "MPI_Wait", "MPI_Gather"], ["MPI_Irecv", "MPI_Waitall", "MPI_Gather"]]
    first = next(iter(source.events(0)))
    assert (first.enter_ns, first.compute_ns, first.peer) == (2_000_000, 2_000_000, 1)


@pytest.mark.parametrize("ending", ["tit", "dim"])
def test_computation_before_the_first_call_and_after_the_last_is_replayed(tmp_path: Path, ending: str) -> None:
    if ending == "tit":
        steps = ("init", *["compute 1e9", "barrier"] * 2, "compute 1e9", "finalize")
        text = "".join(f"{rank} {step}\n" for rank in range(2) for step in steps)
    else:
        burst, barrier = "1:{0}:0:1.0\n", "10:{0}:0:0:1:0:0:0:0:1\n"
        text = '#DIMEMAS:"x":1,0:2(1,1),1\nd:1:1:2:0:1\n'
        text += "".join((burst + barrier + burst + barrier + burst).format(rank) for rank in range(2))
    (tmp_path / f"x.{ending}").write_text(text)
    source = convert.open_source([tmp_path / f"x.{ending}"], None)
    convert.convert(source, tmp_path / "x.ftr", None)
    back = FileSource([tmp_path / "x.ftr"])
    same(source, back)
    assert [[e.compute_ns for e in back.events(r)] for r in range(2)] == [[10**9] * 3] * 2
    assert [model.ops()[e.op].name for e in back.events(0)] == ["MPI_Barrier", "MPI_Barrier", "MPI_Finalize"]
    convert.convert(back, tmp_path / f"y.{ending}", None)
    same(source, convert.open_source([tmp_path / f"y.{ending}"], None))
    convert.convert(back, tmp_path / "y.prv", None)
    again = convert.open_source([tmp_path / "y.prv"], None)
    same(source, again)
    assert again.info.clock == "wall"


def test_paraver_of_other_tools_takes_names_from_its_pcf(tmp_path: Path) -> None:
    (tmp_path / "x.prv").write_text(
        "#Paraver (01/02/2020 at 10:11):1000_ns:1(2):1:2(1:1,1:1),1\n"
        "c:1:1:2:1:2\n"
        "2:1:1:1:1:100:50000001:77\n"
        "3:1:1:1:1:100:110:2:1:2:1:90:120:4096:5\n"
        "2:1:1:1:1:150:50000001:0\n"
        "2:2:1:2:1:90:50000001:2\n"
        "2:2:1:2:1:200:50000001:0\n"
    )
    (tmp_path / "x.pcf").write_text(
        "EVENT_TYPE\n9    50000001    MPI Point-to-point\nVALUES\n0   End\n77   MPI_Ssend\n2   MPI_Recv\n"
    )
    source = convert.open_source([tmp_path / "x.prv"], None)
    sent, received = next(iter(source.events(0))), next(iter(source.events(1)))
    assert model.ops()[sent.op].name == "MPI_Ssend"
    assert (sent.peer, sent.tag, sent.size_bytes, sent.enter_ns, sent.exit_ns) == (1, 5, 4096, 100, 150)
    assert (received.peer, received.size_bytes) == (0, 4096)


@pytest.mark.parametrize("ending", ["dim", "tit", "prv"])
def test_damaged_texts_are_read_or_refused_by_line(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    convert.convert(samples.plain(2, 2), path, None)
    target = tmp_path / "a.tit.ranks" / "rank-1.txt" if ending == "tit" else path
    good = target.read_bytes()
    chance = random.Random(5)
    refused = 0
    for _ in range(MUTATIONS):
        target.write_bytes(samples.mutate(good, chance))
        try:
            source = convert.open_source([path], None)
        except UserError as error:
            refused += 1
            assert "line" in str(error), error
        else:
            for rank in range(source.info.size):
                list(source.events(rank))
    assert refused > MUTATIONS // 4


@pytest.mark.parametrize("ending", ["dim", "tit", "prv", "ftr", "otf2"])
def test_files_that_are_nothing_are_refused(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    for content in (b"", b"\n\n", b"hello there\n", bytes(range(256)) * 8):
        path.write_bytes(content)
        with pytest.raises(UserError):
            convert.open_source([path], None)
    path.unlink()
    with pytest.raises(UserError):
        convert.open_source([path], None)


def test_a_number_beyond_our_format_is_refused_with_the_call(tmp_path: Path) -> None:
    (tmp_path / "x.tit").write_text("".join(f"{rank} init\n{rank} alltoall 4e18 4e18\n" for rank in range(8)))
    with pytest.raises(UserError, match="rank 0: MPI_Alltoall has a number that a trace cannot hold"):
        convert.convert(convert.open_source([tmp_path / "x.tit"], None), tmp_path / "x.ftr", None)


def test_request_numbers_are_small_and_used_again() -> None:
    numbers = RequestNumbers()
    assert [numbers.add((i,)) for i in range(3)] == [0, 1, 2]
    assert numbers.complete((1,)) == 1
    assert numbers.complete((1,)) is None
    assert numbers.add((9,)) == 1
    assert numbers.complete_all() == (0, 1, 2)
