"""Ctrl-C ends what takes long at once, quietly, and leaves nothing half done."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest


def started(args: list[str], place: Path) -> subprocess.Popen[str]:
    def heard() -> None:  # tests may run in the background, or under nohup
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)

    return subprocess.Popen([sys.executable, "-m", "fallow", *args], cwd=place, stderr=subprocess.PIPE, text=True, preexec_fn=heard)  # noqa: PLW1509 (one thread)


def wait_until_it_simulates(running: subprocess.Popen[str]) -> None:
    threads = Path(f"/proc/{running.pid}/task")
    end = time.monotonic() + 240
    while len(list(threads.iterdir())) < 2 and time.monotonic() < end:
        time.sleep(0.05)


def interrupted(running: subprocess.Popen[str], within_s: float) -> str:
    """What it says when it is interrupted."""
    running.send_signal(signal.SIGINT)
    try:
        return running.communicate(timeout=within_s)[1]
    finally:
        running.kill()


def test_an_interrupt_ends_a_long_simulation(tmp_path):
    args = ["sim", "--synth", "stencil3d", "--ranks", "64", "--iterations", "100000000", "--policy", "oracle"]
    running = started(args, tmp_path)
    wait_until_it_simulates(running)
    errors = interrupted(running, 240)
    assert running.returncode == 130 and "Traceback" not in errors


def test_an_interrupt_ends_the_writing_of_a_program(tmp_path):
    (tmp_path / "x.ftr").write_text("old")
    args = ["synth", "alltoall", "--ranks", "512", "--iterations", "2000000", "--jitter", "50%", "-o", "x.ftr"]
    running = started(args, tmp_path)
    end = time.monotonic() + 240
    while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < end:  # until it writes
        time.sleep(0.05)
    errors = interrupted(running, 10)
    assert (running.returncode, errors) == (130, "") and [p.name for p in tmp_path.iterdir()] == ["x.ftr"]
    assert (tmp_path / "x.ftr").read_text() == "old"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_what_ends_a_conversion_leaves_nothing_half_written(tmp_path, number):
    """As a batch system does when the time is over."""
    source = tmp_path / "x.ftr"
    make = [sys.executable, "-m", "fallow", "synth", "stencil3d", "--ranks", "64", "--iterations", "6000", "--jitter", "5%", "-o", source]
    subprocess.run(make, check=True, capture_output=True, timeout=240)
    running = started(["trace", "convert", "x.ftr", "--to", "otf2", "-o", "archive"], tmp_path)
    end = time.monotonic() + 240
    while not (tmp_path / "archive").exists() and time.monotonic() < end:
        time.sleep(0.05)
    running.send_signal(number)
    errors = running.communicate(timeout=60)[1]
    assert (running.returncode, errors) == (128 + number, "") and list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_ends_a_cut_leaves_nothing_of_it(tmp_path, number):
    """It does not go on to its end first."""
    make = [sys.executable, "-m", "fallow", "synth", "stencil3d", "--ranks", "64", "--iterations", "10000", "--jitter", "5%", "-o", "x.ftr"]
    subprocess.run(make, cwd=tmp_path, check=True, capture_output=True, timeout=240)
    running = started(["trace", "cut", "x.ftr", "--from", "1ms", "-o", "cut.ftr"], tmp_path)
    end = time.monotonic() + 240
    while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < end:  # until it writes
        time.sleep(0.01)
    running.send_signal(number)
    errors = running.communicate(timeout=240)[1]
    assert (running.returncode, errors) == (128 + number, "") and [p.name for p in tmp_path.iterdir()] == ["x.ftr"]


def test_an_interrupt_while_the_command_is_being_loaded(tmp_path):
    (tmp_path / "argparse.py").write_text("raise KeyboardInterrupt\n")
    done = subprocess.run([sys.executable, "-m", "fallow", "doctor"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (130, "")


def test_an_interrupt_while_simulations_are_being_started_ends_them(tmp_path):
    """The first of them runs already, and would for hours."""
    script = (
        "import sys\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from fallow import cli\n"
        "from fallow.sim import run\n"
        "class Pool(ThreadPoolExecutor):\n"
        "    started = 0\n"
        "    def submit(self, *args):\n"
        "        if self.started:\n"
        "            raise KeyboardInterrupt\n"
        "        self.started += 1\n"
        "        return super().submit(*args)\n"
        "run.ThreadPoolExecutor = Pool\n"
        "sys.exit(cli.main(sys.argv[1:]))\n"
    )
    args = ["sim", "--synth", "stencil3d", "--ranks", "64", "--iterations", "100000000", "--policy", "oracle"]
    done = subprocess.run([sys.executable, "-c", script, *args], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 130 and "Traceback" not in done.stderr, done.stderr


def test_an_interrupt_ends_a_simulation_amid_one_call(tmp_path):
    """Its messages of a terabyte each are millions of events without a call in between."""
    args = ["sim", "--synth", "stencil3d", "--ranks", "8", "--iterations", "1", "--bytes", "1024GB", "--policy", "oracle"]
    running = started(args, tmp_path)
    wait_until_it_simulates(running)
    time.sleep(1)
    errors = interrupted(running, 20)
    assert running.returncode == 130 and "Traceback" not in errors
