"""Where `fallow run` puts a record and a trace: over nothing that is there, and nothing is left of what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import trace_samples as samples
from fallow.traces.model import FileSource, write_source


@pytest.fixture
def part(tmp_path: Path) -> Path:
    """What a rank might leave."""
    write_source(samples.rich(), tmp_path / "part")
    return tmp_path / "part"


def programs(part: Path, *keys: str) -> list[str]:
    """A command that leaves a part each of so many programs."""
    return ["--", "sh", "-c", "; ".join(f'cp {part} "$FALLOW_TRACE/trace-{key * 8}-0-node-1.ftr"' for key in keys)]


def names(directory: Path) -> set[str]:
    return {p.name for p in directory.iterdir() if not p.name.startswith("fallow-run-")}


def test_traces_of_several_programs_are_in_a_file_each(run, tmp_path, part):
    done = run("-q", "--trace", "app.ftr", *programs(part, "a", "b", "c"))
    assert done.returncode == 0 and done.stderr.count("fallow: trace ") == 3, done.stderr
    assert names(tmp_path) == {"lib", "part", "app.ftr", "app2.ftr", "app3.ftr"}


def test_a_trace_that_is_there_is_told_before_the_run(run, tmp_path):
    (tmp_path / "app.ftr").write_text("precious")
    done = run("--trace", "app.ftr", "--", "touch", "ran")
    assert done.returncode == 2 and "take another name" in done.stderr
    assert names(tmp_path) == {"lib", "app.ftr"} and (tmp_path / "app.ftr").read_text() == "precious"


@pytest.mark.parametrize("place", ["app.ftr", "a b/app.ftr", "traces"])
def test_a_trace_that_is_there_is_never_replaced(run, tmp_path, part, place):
    """The parts of the program whose trace would take its name stay, and the line about them says how to go on."""
    first = tmp_path / (place if place.endswith(".ftr") else f"{place}/trace.ftr")
    third = first.with_name(f"{first.stem}3.ftr")
    *shell, script = programs(part, "a", "b", "c", "d")
    done = run("-q", "--trace", place, *shell, f"{script}; echo precious > '{third}'")
    assert done.returncode == 0 and done.stderr.count("fallow: trace ") == 3, done.stderr
    (told,) = [line for line in done.stderr.splitlines() if "parts are left" in line]
    assert f"{third} is there already" in told and third.read_text() == "precious\n"
    words = f"{sys.executable} -m fallow {told.split('fallow ')[1]}".replace("FILE", str(tmp_path / "kept.ftr"))
    subprocess.run(["sh", "-c", words], cwd=tmp_path, check=True, timeout=240)
    assert list(FileSource([tmp_path / "kept.ftr"]).events(3)) == list(samples.rich().events(3))


def test_a_trace_that_seems_to_go_on_is_told(run, tmp_path, part):
    """Most runs start one program, whose trace may have any name that is free."""
    for number, keys in ((2, "a"), (3, "ab")):
        (other := tmp_path / f"app{number}.ftr").write_text("of another run")
        done = run("-q", "--trace", "app.ftr", *programs(part, *keys))
        assert f"NOTE: {other} was there before; it is not of this run" in done.stderr and done.returncode == 0
        (tmp_path / "app.ftr").unlink()
        other.unlink()
    assert "app3.ftr" not in run("-q", "--trace", "new.ftr", *programs(part, "a")).stderr


def test_parts_that_were_left_are_not_mixed_with_new_ones(run, tmp_path):
    (tmp_path / "app.ftr.parts").mkdir()
    (tmp_path / "app.ftr.parts" / "trace-aaaaaaaa-0-node-1.ftr").touch()
    done = run("--trace", "app.ftr", "--", "touch", "ran")
    assert done.returncode == 2 and f"fallow trace merge {tmp_path}/app.ftr.parts -o FILE" in done.stderr
    assert names(tmp_path) == {"lib", "app.ftr.parts"}


@pytest.mark.parametrize("place", ["out/t.ftr", "out/sub", "out"])
def test_a_trace_may_lie_in_the_run_directory(run, tmp_path, part, place):
    done = run("-q", "--out", "out", "--trace", place, *programs(part, "a"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / (place if place.endswith(".ftr") else f"{place}/trace.ftr")).is_file()
    assert (tmp_path / "out" / "run.json").is_file() and not list(tmp_path.rglob("*.parts"))


@pytest.mark.parametrize("place", ["t.ftr", "new/t.ftr", "traces"])
def test_a_run_directory_that_is_refused_leaves_no_place_for_a_trace(run, tmp_path, place):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "file").touch()
    done = run("--out", "out", "--trace", place, "--", "touch", "ran")
    assert done.returncode == 2 and "out is not empty" in done.stderr
    assert names(tmp_path) == {"lib", "out"}


def test_a_trace_that_is_refused_leaves_no_run_directory(run, tmp_path):
    (tmp_path / "t.ftr").write_text("precious")
    assert run("--out", "out", "--trace", "t.ftr", "--", "touch", "ran").returncode == 2
    assert names(tmp_path) == {"lib", "t.ftr"}


def test_without_a_run_directory_no_place_for_a_trace_is_left(run, tmp_path):
    """The ranks would record nothing there."""
    done = run("-q", "--out", "/proc/nowhere", "--trace", "t.ftr", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert names(tmp_path) == {"lib"}


def test_a_comparison_of_what_cannot_be_started_leaves_nothing(run, tmp_path):
    """The next try, with the name put right, takes the same place."""
    assert run("--compare", "1", "--out", "series", "--", "nosuch", stdin=-3).returncode == 127
    assert list((tmp_path / "series").iterdir()) == []
    assert run("--compare", "1", "--out", "series", "--", "true", stdin=-3).returncode == 0
    before = set(tmp_path.iterdir())
    assert run("--compare", "1", "--", "nosuch", stdin=-3).returncode == 127
    assert set(tmp_path.iterdir()) == before


def test_a_comparison_keeps_the_runs_before_one_that_cannot_be_started(run, fallow, tmp_path):
    command = tmp_path / "command"
    command.write_text("#!/bin/sh\nrm command\n")
    command.chmod(0o755)
    assert run("--compare", "1", "--out", "series", "--", command, stdin=-3).returncode == 127
    (kept,) = (tmp_path / "series").iterdir()
    assert kept.name.startswith("01-") and (kept / "run.json").is_file()


@pytest.mark.parametrize("last", [1, 2])
def test_a_comparison_that_was_killed_is_called_that(run, fallow, tmp_path, last):
    ends = f"echo >> runs; [ $(wc -l < runs) = {last} ] && kill -9 $PPID"
    assert run("--compare", "3", "--out", "series", "--", "sh", "-c", ends, stdin=-3).returncode == -9
    done = fallow("report", "series")
    assert done.returncode == 2 and "series: a comparison that still runs, or was killed: compare.json" in done.stderr
    shown = [f"fallow report {d.relative_to(tmp_path)}" for d in (tmp_path / "series").glob("*-fallow")]
    assert all(words in done.stderr for words in shown) and (shown or "nor is the record of a run with" in done.stderr)
    assert "no run directory" not in done.stderr
