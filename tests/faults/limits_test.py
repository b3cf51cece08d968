"""Small limits on a process: the program ends as it does without Fallow, which has at most one line to say."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from harness.building import build
from harness.fallow import BARE
from harness.lab import PROGRAMS, Lab

# As `ulimit` takes them, and whether all MPIs start under them; Open MPI 5.0 does with twelve open files.
LIMITS = {"-n 12": False, "-n 48": True, "-v 800000": True}
_FALLOWS = 6_000  # kilobytes of address space, more than Fallow takes
_RUN = f"limits{os.getpid()}"


def _limited(limit: str, command: list[str]) -> list[str]:
    return ["sh", "-c", f'ulimit {limit}; exec "$@"', "sh", *command]


def _under(lab: Lab, kilobytes: int, library: str = "") -> int | None:
    """The exit status of one rank that has so much address space, with the library loaded beside it; None where it does not
    end, as some MPI libraries do not that get no memory."""
    env = {"LD_PRELOAD": library, "FALLOW_DIR": str(lab.scratch), "FALLOW_RUN_ID": _RUN} if library else {}
    env["UCX_HANDLE_ERRORS"] = "none"  # which dereferences what it got no memory for
    command = ["prlimit", f"--as={1024 * kilobytes}", "--core=0", "env", *(f"{k}={v}" for k, v in env.items())]
    argv = [*command, str(lab.program("steady.c")), "0"]
    try:
        done = subprocess.run(argv, env=lab.environment(), cwd=lab.scratch, capture_output=True, check=False, timeout=30)
    except subprocess.TimeoutExpired:
        return None
    return done.returncode


def test_where_memory_runs_out(lab: Lab) -> None:
    """Wherever there is hardly enough address space for Fallow, the program runs without it or gets none itself: no crash."""
    if lab.family.name != "mpich":
        pytest.skip("one family is enough, and this one starts fastest")
    low, high = 20_000, 4_000_000
    while high - low > 500:
        middle = (low + high) // 2
        low, high = (low, middle) if _under(lab, middle) == 0 else (middle, high)
    library = str(lab.fallow.library())
    try:
        ends = [_under(lab, high + more, library) for more in range(0, _FALLOWS, 150)]
    finally:
        for page in Path("/dev/shm").glob(f"fallow-{_RUN}-*"):  # what `fallow run` does at the end
            page.unlink()
    assert ends[-1] == 0 and -signal.SIGSEGV not in ends, ends


# On x86-64: what Fallow asks the kernel for beside what a program does.
REFUSED = {"clock_gettime": 228, "prctl": 157, "nanosleep": 35, "ppoll": 271}


@pytest.mark.parametrize("call", REFUSED)
def test_refused_calls(lab: Lab, call: str) -> None:
    """What a sandbox refuses is done without."""
    refuses = build(None, "refuses", [PROGRAMS / "refuses.c"], compiler="cc")
    command = [str(refuses), str(REFUSED[call]), str(lab.program("steady.c")), "0.05"]
    bare = lab.start(BARE, command)[0].finish()
    running, record = lab.start("auto", command)
    outcome = running.finish(30.0)
    assert not outcome.timed_out and (outcome.rc, outcome.out) == (bare.rc, bare.out), outcome.describe()
    assert [r.finalized for r in lab.records(record)] == [1], outcome.describe()


@pytest.mark.parametrize("limit", LIMITS)
def test_small_limits(lab: Lab, limit: str) -> None:
    """One rank without a launcher, under a limit that holds for Fallow's command too."""
    command = [str(lab.program("steady.c")), "0.05"]
    bare = lab.start(BARE, _limited(limit, command))[0].finish()
    assert bare.rc == 0 or not LIMITS[limit], bare.describe()
    record = lab.scratch / "record"
    outcome = lab.start(BARE, _limited(limit, lab.fallow.wrap("auto", record, command)))[0].finish()
    assert not outcome.left_over, outcome.describe()
    if not LIMITS[limit]:  # Fallow may have to do without its record
        assert (outcome.rc == 0) == (bare.rc == 0), outcome.describe()
        assert bare.rc != 0 or outcome.out == bare.out, outcome.describe()
    else:
        assert (outcome.rc, outcome.out) == (0, bare.out), outcome.describe()
        assert len(outcome.err.splitlines()) <= len(bare.err.splitlines()) + 1, outcome.describe()
        assert [r.finalized for r in lab.records(record)] == [1], outcome.describe()
    assert "Traceback" not in outcome.err
