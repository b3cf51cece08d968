"""Where what a command prints goes nowhere: a full disk, a reader that has left, a stream that was closed."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from fallow import progress

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


@pytest.mark.parametrize("columns", [40, 80])
def test_a_progress_bar_keeps_to_its_line(columns, monkeypatch):
    """What wraps is not drawn over, so that the terminal fills with it."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    monkeypatch.setattr(progress, "_QUIET_S", -1.0)
    with os.fdopen(theirs, "w") as terminal:
        bar = progress.Bar("sweeping", terminal)
        bar.show(0.5, ", 1234 of 2000 points, 12 failed, and a long story beside")
        shown = os.read(ours, 4096).decode()
        bar.close()
        cleared = os.read(ours, 4096).decode()
    os.close(ours)
    assert shown.startswith("\rsweeping [") and len(shown.strip("\r")) == columns - 1
    assert cleared == "\r" + " " * (columns - 1) + "\r"
