"""`fallow trace`: what it prints, writes and refuses."""

from __future__ import annotations

import functools
import json
import os
import shlex
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import trace_samples as samples
from fallow import cli, cli_trace
from fallow.errors import UserError
from fallow.text import Style
from fallow.traces import convert, parts
from fallow.traces.found import launches
from fallow.traces.model import COMM_WORLD, Event, FileSource, Info, MemorySource, write_source


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "a.ftr"
    write_source(samples.rich(), path)
    return path


def test_info_says_what_is_in_it(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["trace", "info", str(trace)]) == 0
    text = capsys.readouterr().out
    assert "4 ranks on 2 hosts" in text
    assert "MPI_Alltoallv" in text
    assert "bytes per event" in text
    assert "20-200 us" in text


def test_info_as_json(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["trace", "info", "--json", str(trace)]) == 0
    d = json.loads(capsys.readouterr().out)
    assert d["ranks"] == 4
    assert d["events"] == 4 * 57
    assert sum(g["count"] for g in d["gaps"]) == 4 * 56
    assert d["gaps"][2]["count"] == 4 * 5
    assert {o["name"]: o["calls"] for o in d["operations"]}["MPI_Isend"] == 20
    assert d["problems"] == []


@pytest.mark.parametrize("ending", ["prv", "otf2"])
def test_what_is_read_back_is_replayed_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str) -> None:
    """Collective calls of no bytes take no messages where the MPI library is named, as then their size is known."""
    source = MemorySource(Info(size=2, mpi_version="MPI 9"))
    for r in range(2):
        rank = samples.Rank(source, r)
        rank.call("MPI_Init")
        rank.call("MPI_Allreduce", comm=COMM_WORLD, gap=1000 * (1 + r))
        rank.call("MPI_Finalize")
    write_source(source, tmp_path / "a.ftr")
    out = tmp_path / f"a.{ending}"
    assert cli.main(["trace", "convert", str(tmp_path / "a.ftr"), "-o", str(out)]) == 0
    theirs = out.with_suffix("") / "traces.otf2" if ending == "otf2" else out
    assert cli.main(["trace", "convert", str(theirs), "-o", str(tmp_path / "b.ftr")]) == 0
    capsys.readouterr()
    found = []
    for name in ("a.ftr", "b.ftr"):
        assert cli.main(["sim", str(tmp_path / name), "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out)["simulations"])
    assert found[0][0]["raw"]["messages"] == 0
    assert found[0] == found[1]


def test_info_has_each_number_under_its_heading(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of three ranks one recorded nothing, one lacks calls."""
    calls = [Event(op=1, enter_ns=1000, exit_ns=2000), Event(op=1, enter_ns=12_000, exit_ns=14_000, wait_ns=500, compute_ns=10_000),
             Event(op=2, enter_ns=114_000, exit_ns=115_000, compute_ns=100_000)]  # fmt: skip
    write_source(MemorySource(Info(size=3, clock="wall", dropped={1: 7}), [calls, [calls[0]], []]), tmp_path / "a.ftr")
    assert cli.main(["trace", "info", str(tmp_path / "a.ftr"), "--json"]) == 0
    d = json.loads(capsys.readouterr().out)
    assert (d["events_dropped"], d["ranks_empty"], d["ranks_incomplete"]) == (7, 1, 0)
    assert (d["mpi_s"], d["compute_s"]) == (pytest.approx(5e-6), pytest.approx(110e-6))
    assert cli.main(["trace", "info", str(tmp_path / "a.ftr")]) == 0
    words = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["MPI_Send", "3", "0", "0.000004", "0.000001"] in words  # rounded
    assert ["<", "20", "us", "1", "50.00", "0.000010", "9.09"] in words and ["20-200", "us", "1", "50.00", "0.000100", "90.91"] in words
    notes = [" ".join(line) for line in words]
    assert "7 events not recorded, as they came too fast: gaps there are too long" in notes and "without events: 1 rank" in notes
    assert not any("as they passed" in line for line in notes)  # of the CPU-time clock


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_info_fits_into_the_terminal(trace: Path, columns: int) -> None:
    found = cli_trace._summary(FileSource([trace])) | {"program": "/opt/" + "x" * 90, "clock": "cpu", "events_dropped": 7}
    lines = list(cli_trace._info_lines(found, Style(False, True, columns)))
    assert max(map(len, lines)) <= columns
    piped = list(cli_trace._info_lines(found, Style(False, True, columns, breaks=False)))
    assert piped[0] == found["program"] and sum("MPI_Alltoallv " in line for line in piped) == 1


def test_a_trace_without_calls_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_source(MemorySource(Info(size=2), [[], []]), tmp_path / "a.ftr")
    assert cli.main(["trace", "info", str(tmp_path / "a.ftr"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes_per_event"] is None
    assert cli.main(["trace", "info", str(tmp_path / "a.ftr")]) == 0
    assert "  without events: 2 ranks\n" in capsys.readouterr().out


def test_windows_that_meet_have_each_call_once(trace: Path, tmp_path: Path) -> None:
    """One that begins where the first ends is in the second, however exactly."""
    whole = [list(FileSource([trace]).events(r)) for r in range(4)]
    at = whole[0][7].enter_ns
    for place, window in (("b.ftr", ["--to", f"{at}ns"]), ("c.ftr", ["--from", f"{at}ns"])):
        assert cli.main(["trace", "cut", str(trace), *window, "-o", str(tmp_path / place)]) == 0
    before, after = (FileSource([tmp_path / place]) for place in ("b.ftr", "c.ftr"))
    assert len(list(before.events(0))) == 7
    for rank in range(4):
        joined = [*before.events(rank), *(e._replace(enter_ns=e.enter_ns + at) for e in after.events(rank))]
        assert [(e.op, e.enter_ns) for e in joined] == [(e.op, e.enter_ns) for e in whole[rank]]


def test_cut_keeps_window_and_ranks(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "b.ftr"
    assert (
        cli.main(["trace", "cut", str(trace), "--from", "10us", "--to", "1ms", "--ranks", "1-2", "-o", str(out)]) == 0
    )
    cut = FileSource([out])
    assert not list(cut.events(0))
    kept = list(cut.events(1))
    assert kept
    assert kept[0].enter_ns < 2000
    assert kept[-1].enter_ns < 990_000


def test_a_window_behind_the_end_is_refused(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["trace", "cut", str(trace), "--from", "1000s", "-o", str(tmp_path / "b.ftr")]) == 2
    assert "--from is after the end of the trace" in capsys.readouterr().err
    assert not (tmp_path / "b.ftr").exists()


def test_a_window_without_calls_is_told(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["trace", "cut", str(trace), "--to", "1ns", "--ranks", "1-2", "-o", str(tmp_path / "b.ftr")]) == 0
    assert "NOTE: no call of these ranks begins in this window: " in capsys.readouterr().err
    assert cli.main(["trace", "cut", str(trace), "--ranks", "1", "-o", str(tmp_path / "c.ftr")]) == 0
    assert capsys.readouterr().err == ""


def test_convert_keeps_that_ranks_ended_early_or_says_that_it_is_lost(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = samples.rich()
    source.info.incomplete, source.info.dropped = frozenset({1, 3}), {2: 7}
    write_source(source, trace)
    for name in ("b.ftr", "c.ftr"):
        assert cli.main(["trace", "convert", str(trace), "-o", str(tmp_path / name)]) == 0
        assert capsys.readouterr().err == ""
        trace = tmp_path / name
    info = FileSource([trace]).info
    assert (info.incomplete, info.dropped) == (frozenset({1, 3}), {2: 7})
    assert cli.main(["trace", "info", str(trace)]) == 0
    assert "as its end is missing: 2 ranks" in capsys.readouterr().out
    for ending in ("prv", "dim", "json"):
        assert cli.main(["trace", "convert", str(trace), "-o", str(tmp_path / f"d.{ending}")]) == 0
        said = capsys.readouterr().err
        assert "cannot carry that the trace ends early for 2 ranks" in said
        assert "cannot carry that it lacks 7 events, which came too fast" in said


def test_what_was_cut_away_is_told_in_parquet_and_said_to_be_lost_elsewhere(tmp_path: Path) -> None:
    source = samples.rich()
    source.info.left_out = {0: 4, 2: 5}
    convert.convert(source, tmp_path / "a.parquet", None)
    told = json.loads(pq.read_schema(tmp_path / "a.parquet").metadata[b"fallow"])["ranks"]
    assert [r["left_out"] for r in told] == [4, 0, 5, 0]
    for ending, name in (("prv", "Paraver"), ("goal", "GOAL")):
        said = convert.convert(source, tmp_path / f"a.{ending}", None)
        assert f"{name} cannot carry that 9 events of it were cut away" in said


def test_merge_of_one_trace_is_the_same(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "b.ftr"
    assert cli.main(["trace", "merge", str(trace), "-o", str(out)]) == 0
    assert list(FileSource([out]).events(3)) == list(FileSource([trace]).events(3))


def test_convert_says_once_what_is_lost(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["trace", "convert", str(trace), "-o", str(tmp_path / "a.dim")]) == 0
    errors = capsys.readouterr().err
    assert errors.count("times inside MPI") == 1
    assert "times inside MPI\n" in errors  # all of them: not "once"
    assert cli.main(["trace", "convert", str(tmp_path / "a.dim"), "-o", str(tmp_path / "b.ftr")]) == 0
    assert FileSource([tmp_path / "b.ftr"]).info.size == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["info", "missing.ftr"], "missing.ftr: No such file"),
        (["info", "{dir}"], "no trace in this directory"),
        (["info", "{several}"], "traces of several programs; name one of them: trace.ftr, trace2.ftr, trace10.ftr"),
        (["convert", "missing", "-o", "x.prv"], "missing: No such file or directory"),
        (["convert", "{trace}", "-o", "x.unknown"], "does not tell the format; say --to one of"),
        (["info", "{trace}.prv"], "a trace of another tool; first: fallow trace convert {trace}.prv -o NEW.ftr"),
        (["info", "archive"], "archive: a trace of another tool; first: fallow trace convert archive -o NEW.ftr"),
        (["convert", "x.unknown", "-o", "y.ftr"], "paraver (.prv), dimemas (.dim), simgrid (.tit .ti)\n"),
        (["convert", "{trace}", "-o", "{trace}"], "over itself"),
        (["convert", "x.json", "-o", "y.ftr"], "can be written, not read"),
        (["convert", "{trace}", "-o", "../empty/../a.ftr"], "../empty/../a.ftr: would be written over itself"),
        (["cut", "{trace}", "-o", "{trace}"], "over itself; give another name with -o"),
        (["merge", "x.ftr", "{trace}", "-o", "{trace}"], "over itself"),
        (["cut", "{trace}", "--ranks", "9", "-o", "x.ftr"], "rank 9 is not in this trace"),
        (["cut", "{trace}", "--from", "2s", "--to", "1s", "-o", "x.ftr"], "--from must be before --to"),
        (["merge", "{trace}", "-o", "/nowhere/x.ftr"], "/nowhere/x.ftr"),
        (["merge", "{trace}", "{trace}", "-o", "x.ftr"], "a.ftr too: only parts of one trace go together\n"),
        (["merge", "{trace}", "-o", "-"], "-o -: a trace is not written to standard output; name a file"),
        (["cut", "{trace}", "-o", "-"], "-o -: a trace is not"),
        (["convert", "{trace}", "--to", "goal", "-o", "-"], "-o -: a trace is not"),
        (["merge", "{trace}", "-o", "x.prv"], "x.prv: this would be a trace of Fallow's own, not Paraver: name it x.ftr; fallow trace convert makes the other of it"),
        (["cut", "{trace}", "-o", "x.json"], "x.json: this would be a trace of Fallow's own, not Perfetto: name it x.ftr"),
    ],
)
def test_errors_are_one_line_and_status_2(
    trace: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = trace.parent / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    (trace.parent / f"{trace.name}.prv").touch()
    Path("x.unknown").touch()
    Path("archive").mkdir()
    Path("archive/traces.otf2").touch()
    several = trace.parent / "several"
    several.mkdir()
    for name in ("trace10.ftr", "trace2.ftr", "trace.ftr"):
        (several / name).touch()
    places = {"{trace}": str(trace), "{dir}": str(empty), "{several}": str(several)}
    filled = [functools.reduce(lambda a, place: a.replace(*place), places.items(), a) for a in arguments]
    assert cli.main(["trace", *filled]) == 2
    error = capsys.readouterr().err
    assert message.replace("{trace}", str(trace)) in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("command", [["synth", "cg"], ["trace", "merge", "{trace}"], ["trace", "convert", "{trace}", "--to", "fallow"]])
def test_what_cannot_be_written_over_is_named_once(
    trace: Path, tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert cli.main([a.replace("{trace}", str(trace)) for a in command] + ["-o", str(pipe)]) == 2
    error = capsys.readouterr().err
    assert error.count("pipe: ") == 1, error
    assert "regular file" in error
    assert pipe.is_fifo()


@pytest.mark.parametrize("form", ["paraver", "simgrid"])
def test_nothing_is_put_beside_a_device_or_a_directory(trace: Path, tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    before = sorted(tmp_path.iterdir())
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # so that opening it would not wait
    try:
        assert cli.main(["trace", "convert", str(trace), "--to", form, "-o", str(pipe)]) == 2
    finally:
        os.close(reader)
    assert "pipe: is not a regular file, and others would be put beside it" in capsys.readouterr().err
    (tmp_path / "place").mkdir()
    assert cli.main(["trace", "convert", str(trace), "--to", form, "-o", str(tmp_path / "place")]) == 2
    assert "place: Is a directory" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == sorted([*before, tmp_path / "place"])


@pytest.mark.parametrize("command", [["trace", "info"], ["predict"], ["sim"]])
def test_a_trace_whose_parts_were_left_is_looked_for_there(
    trace: Path, tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """As `fallow run` leaves them when it is killed."""
    left = tmp_path / "my run.ftr.parts"
    left.mkdir()
    shutil.copy(trace, left / "trace-00000001-000000-n0-1.ftr")
    whole = tmp_path / "my run.ftr"
    assert cli.main([*command, str(whole)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"fallow: {whole}: is not there yet, its parts are")
    words = shlex.split(error.partition(": fallow ")[2])
    assert cli.main(words) == 0
    assert FileSource([whole]).calls == FileSource([trace]).calls


@pytest.mark.parametrize(
    "command",
    [["trace", "info", "ODD"], ["trace", "merge", "a.ftr", "-o", "ODD"], ["trace", "cut", "a.ftr", "-o", "ODD"],
     ["trace", "convert", "a.ftr", "-o", "ODD"], ["synth", "cg", "-o", "ODD"], ["sim", "ODD"], ["predict", "ODD"]],
)  # fmt: skip
def test_a_name_that_is_not_utf_8_is_told(
    trace: Path, command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trace.parent)
    assert cli.main([os.fsdecode(b"caf\xe9.ftr") if a == "ODD" else a for a in command]) == 2
    assert "caf\\udce9.ftr: the name is not UTF-8" in capsys.readouterr().err


def test_damage_is_named_with_its_offset(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = bytearray(trace.read_bytes())
    data[len(data) // 2] ^= 0xFF
    trace.write_bytes(data)
    assert cli.main(["trace", "info", str(trace)]) == 2
    assert "at offset" in capsys.readouterr().err


def test_a_part_that_was_cut_short_is_read_and_noted(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short = tmp_path / "trace-000000.ftr"
    short.write_bytes(trace.read_bytes()[:-40])
    assert cli.main(["trace", "info", str(tmp_path), "--json"]) == 0
    said = capsys.readouterr()
    assert "NOTE" in said.err
    assert json.loads(said.out)["events"] > 0
    assert cli.main(["trace", "convert", str(tmp_path / "trace-000000.ftr"), "-o", str(tmp_path / "b.ftr")]) == 0
    assert said.err in capsys.readouterr().err
    assert cli.main(["trace", "cut", str(tmp_path), "-o", str(short)]) == 2
    assert "would be written over itself" in capsys.readouterr().err


def test_of_a_killed_rank_it_is_said_what_may_be_missing_at_most(tmp_path: Path) -> None:
    """A short run may lack milliseconds, or nothing."""
    source = samples.plain(2, 2)
    source.info.incomplete = frozenset({1})
    write_source(source, tmp_path / "a.ftr")
    said = parts.merge([tmp_path / "a.ftr"], tmp_path / "b.ftr", print)
    assert "; it ends early for 1 rank, without at most their last 10 s, or their last minute" in said


@pytest.mark.parametrize("text", ["3-", "-3", "", "1,", "1-2-3", "2-1", "0x1", "1_0", "2097152", "9" * 5000])
def test_ranks_that_are_none_are_refused(trace: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["trace", "cut", str(trace), f"--ranks={text}", "-o", "x.ftr"])
    assert stopped.value.code == 2 and "is no list of ranks; say 0,4-7\n" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["x", "-1s", "1h", "nan", "1e30s"])
def test_times_that_are_none_are_refused(trace: Path, text: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["trace", "cut", str(trace), f"--from={text}", "-o", "x.ftr"])
    assert stopped.value.code == 2


def test_a_made_up_program_is_not_written_to_a_file_called_dash(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["synth", "cg", "--ranks", "2", "-o", "x.tit"]) == 2
    assert capsys.readouterr().err.startswith("fallow: x.tit: this would be a trace of Fallow's own, not SimGrid's time-independent format: name it x.ftr; ")
    assert cli.main(["synth", "cg", "--ranks", "2", "-o", "-"]) == 2
    assert capsys.readouterr().err == "fallow: -o -: a trace is not written to standard output; name a file\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("place", ["file/new", "/proc/new"])
def test_an_archive_that_cannot_be_begun_ends_in_one_line(fallow, trace: Path, tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    done = fallow("trace", "convert", trace, "--to", "otf2", "-o", place)
    assert done.returncode == 2 and done.stderr.startswith(f"fallow: {place}: ") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("form", ["otf2", "fallow", "paraver"])
def test_no_directories_are_made_around_a_trace(fallow, trace: Path, tmp_path: Path, form: str) -> None:
    """As elsewhere: a slip of the pen would become a place."""
    done = fallow("trace", "convert", trace, "--to", form, "-o", "none/a/b")
    assert done.returncode == 2 and done.stderr == "fallow: none/a/b: No such file or directory\n"
    assert list(tmp_path.iterdir()) == [trace]


def test_parts_of_several_starts_are_in_the_order_of_these(tmp_path: Path) -> None:
    """By when they began; their names say only which belong together."""
    made = [("bbbbbbbb", 0, 100), ("aaaaaaaa", 0, 200), ("aaaaaaaa", 1, 201), ("bbbbbbbb", 1, 101), ("bbbbbbbb", 0, 300)]
    paths = []
    for number, (key, rank, start) in enumerate(made):
        paths.append(tmp_path / f"trace-{key}-{rank}-host-{number}.ftr")
        paths[-1].write_bytes(bytes(24) + start.to_bytes(8, "little"))
    found = launches(sorted(paths))
    assert [[paths.index(p) for p in group] for group in found] == [[0, 3], [1, 2], [4]]


def test_parts_of_several_programs_become_several_traces(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As a run leaves them whose command was killed: the message names what makes traces of them."""
    cut_off = tmp_path / "cut off"
    cut_off.mkdir()
    for key in ("aaaaaaaa", "bbbbbbbb"):
        (cut_off / f"trace-{key}-0-host-1.ftr").write_bytes(trace.read_bytes())
    assert cli.main(["trace", "info", str(cut_off)]) == 2
    assert capsys.readouterr().err == f"fallow: {cut_off}: parts of 2 traces; first: fallow trace merge '{cut_off}' -o NEW.ftr\n"
    assert cli.main(["trace", "merge", str(cut_off), "-o", str(tmp_path / "new.ftr")]) == 0
    assert f"fallow: trace {tmp_path}/new2.ftr: 4 ranks of " in capsys.readouterr().err
    for name in ("new.ftr", "new2.ftr"):
        assert list(FileSource([tmp_path / name]).events(3)) == list(FileSource([trace]).events(3))
    (tmp_path / "new.ftr").unlink()
    assert cli.main(["trace", "merge", str(cut_off), "-o", str(tmp_path / "new.ftr")]) == 2
    assert capsys.readouterr().err.startswith(f"fallow: {tmp_path}/new2.ftr is there already")
    assert not (tmp_path / "new.ftr").exists()


def test_of_many_programs_few_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(2, 120):
        (tmp_path / f"trace{number}.ftr").touch()
    assert cli.main(["trace", "info", str(tmp_path)]) == 2
    assert capsys.readouterr().err.endswith("name one of them: trace2.ftr, trace3.ftr, trace4.ftr ... trace119.ftr (118 in all)\n")


def test_windows_of_traces_say_so(fallow, tmp_path):
    """Calls and notes tell that a part was cut out, and what cannot be replayed for that says so."""
    assert fallow("synth", "stencil3d", "--ranks", "8", "--iterations", "20", "-o", "whole.ftr").returncode == 0
    assert fallow("trace", "cut", "whole.ftr", "-o", "all.ftr").returncode == 0
    assert "cut out" not in fallow("trace", "info", "all.ftr").stderr
    assert fallow("trace", "cut", "whole.ftr", "--to", "9.9995ms", "-o", "begin.ftr").returncode == 0  # whole iterations
    said = "cut out of a longer trace, without 1232 calls of it"
    assert fallow("trace", "merge", "begin.ftr", "-o", "merged.ftr").returncode == 0
    assert fallow("trace", "convert", "begin.ftr", "-o", "again.ftr").returncode == 0
    for name in ("begin.ftr", "merged.ftr", "again.ftr"):
        assert any(said in note for note in json.loads(fallow("sim", name, "--json").stdout)["program"]["notes"])
    assert said in fallow("predict", "begin.ftr").stderr and said in fallow("trace", "info", "begin.ftr").stderr
    assert fallow("trace", "cut", "begin.ftr", "--from", "2000020ns", "-o", "middle.ftr").returncode == 0
    done = fallow("sim", "middle.ftr")
    assert done.returncode == 2 and "which does not exist\nThe trace was cut out of a longer one: a replay needs the whole" in done.stderr
    assert fallow("trace", "cut", "whole.ftr", "--ranks", "0", "-o", "first.ftr").returncode == 0
    assert "The trace was cut out of a longer one" in fallow("sim", "first.ftr").stderr


def test_a_name_that_could_not_be_merged_is_refused_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"not UTF-8; take another"):
        parts.plan(tmp_path / os.fsdecode(b"a\xfe.ftr"))
