"""Where what a command prints goes nowhere: a full disk, a reader that has left, a stream that was closed."""

from __future__ import annotations

import argparse
import fcntl
import os
import select
import struct
import subprocess
import sys
import termios
from pathlib import Path
from types import SimpleNamespace

import pytest

from fallow import analyse, cli, help_text, launch, predict_study, progress, runner, text
from fallow.errors import UserError, about
from fallow.sim import machine

COMMANDS = [["config"], ["config", "--json"], ["report", "RUN"], ["report", "RUN", "--json"], ["report", "RUN", "RUN"],
            ["--help"], ["--version"], ["sim", "--help"]]  # fmt: skip


def _shell(run_dir: Path, command: list[str], redirection: str) -> subprocess.CompletedProcess[str]:
    words = [str(run_dir) if word == "RUN" else word for word in command]
    line = f'"$@" {redirection}'
    return subprocess.run(
        ["bash", "-c", line, "bash", sys.executable, "-m", "fallow", *words],
        cwd=run_dir.parent, env=os.environ | {"PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": ""}, capture_output=True, text=True, timeout=240,
        check=False,
    )  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_full_disk_is_told(run_dir, command):
    out = _shell(run_dir, command, ">/dev/full")
    assert (out.returncode, out.stderr) == (2, "fallow: standard output: No space left on device\n")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_reader_that_has_left_is_no_error(run_dir, command):
    out = _shell(run_dir, command, "| true; exit ${PIPESTATUS[0]}")
    assert (out.returncode, out.stderr) == (0, "")


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_closed_streams_take_nothing(run_dir, command, closed):
    out = _shell(run_dir, command, closed)
    assert (out.returncode, out.stderr) == (0, "")
    assert bool(out.stdout) == (closed == "2>&-")


def test_an_error_is_not_told_on_standard_output(run_dir):
    out = _shell(run_dir, ["report", "nowhere"], "2>&-")
    assert (out.returncode, out.stdout) == (2, "")


def _read_until(terminal: int, end: str) -> str:
    """What came to the terminal's other side: the kernel hands on as much at a time as it has got there."""
    shown = ""
    while not shown.endswith(end) and select.select([terminal], [], [], 60.0)[0]:
        shown += os.read(terminal, 4096).decode()
    return shown


@pytest.mark.parametrize("columns", [40, 80])
def test_a_progress_bar_keeps_to_its_line(columns, monkeypatch):
    """What wraps is not drawn over, so that the terminal fills with it."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    monkeypatch.setattr(progress, "_QUIET_S", -1.0)
    with os.fdopen(theirs, "w") as terminal:
        bar = progress.Bar("sweeping", terminal)
        bar.show(0.5, ", 1234 of 2000 points, 12 failed, and a long story beside")
        bar.close()
        cleared = "\r" + " " * (columns - 1) + "\r"
        shown = _read_until(ours, cleared)
    os.close(ours)
    assert shown.endswith(cleared)
    shown = shown.removesuffix(cleared)
    assert shown.startswith("\rsweeping [") and len(shown.strip("\r")) == columns - 1


@pytest.mark.parametrize("columns", [40, 80])
def test_words_of_progress_say_what_is_left(columns, monkeypatch):
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with os.fdopen(theirs, "w") as terminal:
        words = progress.Words(terminal)
        for passed, what, share in ((0.0, "thresholds", 0.0), (30.0, "thresholds", 1 / 3), (1.0, "joining ranks", 0.2), (90.0, "joining ranks", 0.6)):
            now[0] += passed
            words.show(what, share)
        terminal.write("end")
        terminal.flush()
        shown = _read_until(ours, "end")
    os.close(ours)
    wanted = ["fallow: thresholds: 33 %, 60.0 s left", "fallow: joining ranks: 20 %", "fallow: joining ranks: 60 %, 90.0 s left"]
    assert shown.removesuffix("end").split("\r\x1b[K")[1:] == [line[: columns - 1] for line in wanted]


def test_a_table_that_is_too_wide_goes_on_below():
    header = ["policy", "run time", "energy"]
    rows = [["always-on, with everything", "1 s", "12 J"], ["oracle", "1 s", "8.5 J"]]
    wide = text.table(header, rows, text.Style(False, True, 112))
    assert len(wide) == 3
    for width in (41, 40, 30, 20):
        style = text.Style(False, True, width)
        narrow = text.table(header, rows, style)
        assert all(len(line) <= max(width - 2, 16 + 2 + 8) for line in narrow), width  # indented by two
        shown = " ".join(narrow)
        assert all(word in shown for word in ("run time", "energy", "12 J", "8.5 J"))
    assert len(text.table(header, rows, text.Style(False, True, 26, False))) == 3  # one row is one line in a pipe
    assert [line.split()[0] for line in text.table(header, rows, text.Style(False, True, 26))] == ["policy", "always-on,", "oracle"] * 2


def test_places_without_symbols_can_be_told_apart_where_they_are_shortened():
    rows = [[f"libvtkParallelMPI-pv5.11.so.1+0x{offset}", "1 s"] for offset in ("1f2e", "2a03c")] + [["vtkMPICommunicator::ReceiveDataInternal(char*)", "2 s"]]
    shown = [line.split()[0] for line in text.table(["called from", "time"], rows, text.Style(False, True, 36))]
    assert shown == ["called", "libvtkParallelMPI-pv…+0x1f2e", "libvtkParallelMPI-p…+0x2a03c", "vtkMPICommunicator::Receive…"]
    assert text.table(["called from", "time"], rows, text.Style(False, False, 36))[1].split()[0] == "libvtkParallelMPI-pv~+0x1f2e"


@pytest.mark.parametrize("columns", [40, 60, 72])
def test_notes_and_tables_fit_into_the_terminal(columns):
    style = text.Style(False, True, columns)
    note = "the trace does not say where they ran; --ranks-per-node says how many share a link"
    lines = text.paragraph(f"NOTE: {note}", style, "  ", "    ")
    assert max(map(len, lines)) <= columns and " ".join(line.strip() for line in lines) == f"NOTE: {note}"
    assert text.note(note, text.Style(False, True, columns, False), "  ! ") == [f"  ! {note}"]  # for grep
    assert len(text.note(note, style, "  ! ")) > 1
    path = "/a/path/that/is/longer/than/any/terminal/of/these/is/wide/and/yet/in/one/piece/so/that/it/can/be/copied"
    assert f"    {path}" in text.paragraph(f"see {path}", style, "  ", "    ")


def test_no_file_is_left_open(tmp_path, fallow):
    """Where warnings are errors, as some sites have it, each one would be told at the end."""
    strict = {"PYTHONWARNINGS": "error::ResourceWarning"}
    (tmp_path / "s.toml").write_text('[[synth]]\nprogram = "cg"\nranks = 4\niterations = 3\n[policy]\npolicy = "oracle"\n')
    out = fallow("sweep", "s.toml", "--on", "local:1", env=strict)
    assert (out.returncode, out.stderr) == (0, "")
    (tmp_path / "trace-00000000-0-host.ftr").write_bytes(bytes(64))
    script = "from pathlib import Path; from fallow.traces.found import launches; print(len(launches(list(Path().glob('*.ftr')))))"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=os.environ | strict, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_a_sweep_needs_no_stderr(tmp_path):
    """Its workers begin without one, too."""
    (tmp_path / "s.toml").write_text('[[synth]]\nprogram = "cg"\nranks = 4\niterations = 3\n[policy]\npolicy = "oracle"\n')
    out = _shell(tmp_path / "none", ["sweep", "s.toml", "--on", "local:1"], "2>&-")
    assert (out.returncode, out.stdout.splitlines()[0]) == (0, "s: 2 points done, 0 failed: s.results/results.parquet")


@pytest.mark.parametrize("error", [MemoryError(), MemoryError("std::bad_alloc")])
def test_memory_that_runs_out_is_called_that(monkeypatch, capsys, run_dir, error):
    def fails(*_):
        raise error

    monkeypatch.setattr(analyse, "load", fails)
    assert cli.main(["report", str(run_dir)]) == 2
    assert capsys.readouterr().err == "fallow: not enough memory\n"
    ended = SimpleNamespace(info=SimpleNamespace(with_fallow=True), directory=run_dir, outcome=None)
    monkeypatch.setattr(runner, "run", lambda *_: ended)
    monkeypatch.setattr(launch, "exit_like", lambda _: 0)
    assert cli.main(["run", "--out", str(run_dir / "new"), "--", "true"]) == 0
    assert capsys.readouterr().err == "fallow: no summary: not enough memory\n"


@pytest.mark.parametrize("error", [MemoryError(), MemoryError("std::bad_alloc")])
def test_memory_that_runs_out_in_a_library_is_called_that(monkeypatch, capsys, error):
    def fails(*_):
        raise error

    whole = machine.require
    monkeypatch.setattr(machine, "require", lambda part: fails if part == "simulate" else whole(part))
    assert cli.main(["sim", "--synth", "cg", "--ranks", "4"]) == 2
    assert capsys.readouterr().err == "fallow: not enough memory for this simulation\n"
    with pytest.raises(UserError, match=r"^not enough memory$"):
        predict_study._Runner(None, progress.Words(sys.stderr)).run("predicting", fails)
    assert str(about("x.ftr", error)) == "x.ftr: not enough memory"


@pytest.mark.parametrize("columns", ["80", "60"])
@pytest.mark.parametrize(
    "command", ["", "run", "report", "doctor", "config", "trace", "trace info", "trace merge", "trace cut", "trace convert", "predict", "sim", "synth",
                "sweep", "reproduce"],
)  # fmt: skip
def test_help_fits_into_the_terminal(command, columns, monkeypatch, capsys):
    """All but examples that are longer by themselves, which are to be copied."""
    monkeypatch.setenv("COLUMNS", columns)
    with pytest.raises(SystemExit):
        cli.main([*command.split(), "--help"])
    lines = capsys.readouterr().out.splitlines()
    assert "examples:" in lines
    assert not [line for line in lines if len(line) > int(columns) and not (columns == "60" and line.startswith("  fallow"))]


def test_what_examples_do_stands_beside_them_or_below():
    parser = argparse.ArgumentParser(prog="x", formatter_class=help_text.HelpFormatter)
    words = "Of two lines\nhere, one\nthere.\n\nexamples:\n  do this          and that it does, in some more words\n  do\n                   less\n  do [it]\n"
    text = parser._get_formatter()._fill_text(words, 44, "")
    assert text.splitlines() == [
        "Of two lines here, one there.", "", "examples:", "  do this          and that it does, in some", "                   more words", "  do",
        "                   less", "  do [it]",
    ]  # fmt: skip
