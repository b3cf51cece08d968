"""Traces of runs that go wrong: killed ranks, full disks, places that cannot be written."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.fallow import BARE, Fallow
from harness.lab import Lab
from harness.running import HANGS_S
from harness.traces import read_trace

RANKS = 2
MODE = "auto"
TURNS = "60000"
_SOME_BLOCKS = 60_000  # bytes
_LITTLE = "100000"  # bytes: room for some, not for all blocks of a rank that makes TURNS calls


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for one block of a rank."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False).returncode:
        pytest.skip("mounting a small file system needs the privilege to mount")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def _bare_output(lab: Lab) -> str:
    outcome = lab.run(BARE, RANKS, lab.program("chatter.c"), TURNS).outcome
    assert outcome.rc == 0 and outcome.out.startswith("sum "), outcome.describe()
    return outcome.out


@pytest.mark.parametrize("what", ["calls", "communicators"])
def test_a_process_that_ends_while_its_trace_is_written(lab: Lab, what: str) -> None:
    """By a signal's handler that calls exit(): it ends. Its trace ends early, but not where communicators are defined:
    signals wait while their table is locked."""
    out = lab.scratch / "out"
    running, _ = lab.start(MODE, [lab.program("left_writing.c"), what], options=("--trace", str(out)))
    outcome = running.finish(30.0)
    assert not outcome.timed_out and outcome.rc == 5, outcome.describe()
    assert ("it ends early for 1 rank" in outcome.err) == (what == "calls"), outcome.describe()
    assert "events of 1 rank" in outcome.err, outcome.describe()


@pytest.mark.parametrize("where", ["handler", "operation"])
def test_abort_inside_a_call(lab: Lab, fallow: Fallow, where: str) -> None:
    """As error handlers do: the rank is said to have called MPI_Abort, and what it did before is in its trace."""
    out = lab.scratch / "out"
    trial = lab.run(MODE, RANKS, lab.program("aborts_inside.c"), where, options=("--trace", str(out)))
    assert trial.outcome.rc == 42, trial.outcome.describe()
    ends = [r["end"] for r in fallow.report(trial.record)["ranks"]]
    assert "aborted" in ends, ends
    written = [len(calls) for calls in read_trace(fallow, out).ranks]
    assert max(written) > 100, written  # 1 to 3 of them


def test_killed_rank(lab: Lab, fallow: Fallow) -> None:
    """What was written before a rank was killed can be read, and the others' parts are whole or cut alike."""
    out = lab.scratch / "out"
    running, _ = lab.start(MODE, lab.family.launch(RANKS, lab.program("chatter.c")), options=("--trace", str(out)))

    def written() -> bool:
        sizes = [f.stat().st_size for f in out.glob("trace-*.ftr")]
        return len(sizes) == RANKS and min(sizes) > _SOME_BLOCKS

    assert running.wait_for(written, HANGS_S), [f.stat().st_size for f in out.glob("*")]
    os.kill(running.processes("chatter")[-1], signal.SIGKILL)
    outcome = running.finish()
    assert outcome.rc != 0 and "Traceback" not in outcome.err, outcome.describe()
    assert "it ends early for" in outcome.err, outcome.describe()
    assert [f.name for f in out.iterdir()] == ["trace.ftr"]
    trace = read_trace(fallow, out)
    assert False in trace.complete
    for calls in trace.ranks:
        assert len(calls) > 1000
        assert all(c.op == "MPI_Sendrecv" and c.size_bytes == 4 for c in calls[1:1000])


def test_full_disk(lab: Lab, fallow: Fallow, small_disk: Path) -> None:
    """The program runs on; one line of the ranks says that the trace ends early; what there is can be read."""
    expected = _bare_output(lab)
    trial = lab.run(MODE, RANKS, lab.program("chatter.c"), TURNS, options=("--trace", str(small_disk / "out")))
    assert trial.outcome.rc == 0 and trial.outcome.out == expected, trial.outcome.describe()
    said = [line for line in trial.outcome.err.splitlines() if "the trace ends early" in line]
    assert said == ["fallow: the trace ends early: No space left on device"], trial.outcome.describe()
    trace = read_trace(fallow, small_disk / "out")
    assert trace.complete and not all(trace.complete), "there was room for all of it"
    assert all(c.op in ("MPI_Init", "MPI_Sendrecv") for calls in trace.ranks for c in calls)


@pytest.mark.one_family
def test_file_size_limit(lab: Lab, fallow: Fallow) -> None:
    """A limit on the size of files sends no signal to the program; one line says why the trace ends early."""
    expected = _bare_output(lab)
    out = lab.scratch / "out"
    trial = lab.run(MODE, RANKS, lab.program("chatter.c"), TURNS, _LITTLE, options=("--trace", str(out)))
    assert trial.outcome.rc == 0 and trial.outcome.out == expected, trial.outcome.describe()
    said = [line for line in trial.outcome.err.splitlines() if "the trace ends early" in line]
    assert said == ["fallow: the trace ends early: File too large"], trial.outcome.describe()
    trace = read_trace(fallow, out)
    assert trace.complete == [False] * RANKS and all(trace.ranks)


@pytest.mark.parametrize("where", ["below a file", "in a pseudo file system"])
def test_unwritable_directory(lab: Lab, where: str) -> None:
    """The program runs without being recorded, and one line says so."""
    file = lab.scratch / "file"
    file.write_text("")
    out = {"below a file": file / "trace", "in a pseudo file system": Path("/proc/trace")}[where]
    expected = _bare_output(lab)
    trial = lab.run(MODE, RANKS, lab.program("chatter.c"), TURNS, options=("--trace", str(out)))
    assert trial.outcome.rc == 0 and trial.outcome.out == expected, trial.outcome.describe()
    said = [line for line in trial.outcome.err.splitlines() if line.startswith("fallow")]
    assert len(said) == 1 and said[0].startswith("fallow: no trace will be recorded"), trial.outcome.describe()
