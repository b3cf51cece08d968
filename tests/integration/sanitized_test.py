"""Programs built with the compiler's sanitizers start under Fallow as they do without it, and find nothing in a runtime that
is built with them."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from pathlib import Path

import pytest
from harness.building import build
from harness.families import REPOSITORY
from harness.lab import PROGRAMS, Lab

from fallow import native

SANITIZERS = ("address", "thread", "undefined")
# MPI libraries leak, and seem to race: neither is the matter here. Where hwloc, which they call, finds Mesa's OpenCL, that throws
# as it is loaded, for which the address sanitizer ends the program, also without Fallow.
_QUIET = {"ASAN_OPTIONS": "detect_leaks=0", "TSAN_OPTIONS": "report_bugs=0", "HWLOC_COMPONENTS": "-opencl"}


@pytest.mark.parametrize("sanitizer", SANITIZERS)
def test_sanitized(lab: Lab, sanitizer: str) -> None:
    """Their libraries want to be the first, and take the place of libc's functions before they can work."""
    if sanitizer == "thread" and lab.family.name != "openmpi":
        pytest.skip("crashes without Fallow, too")
    flags = [f"-fsanitize={sanitizer}", "-O1", "-g", "-pthread"]
    program = build(lab.family, f"late-{sanitizer}", [PROGRAMS / "late.c"], flags, PROGRAMS.glob("*.h"), libs=["-lm"])
    trial = lab.compare(2, program, "100", "500", "message", modes=("auto",), env=_QUIET)[1]
    assert [r.finalized for r in trial.ranks()] == [1, 1], trial.outcome.describe()


def _runtime(lab: Lab, sanitizers: str) -> Path:
    """A folder of libraries, with the family's runtime built with sanitizers."""
    name = f"libfallow-rt-{lab.family.name}.so"
    folder = REPOSITORY / "build" / f"{sanitizers}-{lab.family.name}"
    folder.mkdir(parents=True, exist_ok=True)
    configure = ["cmake", "-S", REPOSITORY, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo"]
    configure.append(f"-DFALLOW_SANITIZE={sanitizers}")
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for command in (configure, ["ninja", "-C", folder, f"src/pmpi/{name}"]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
    installed = native.library(name)
    assert installed is not None
    libraries = shutil.copytree(installed.parent, lab.scratch / "lib")
    shutil.copy(folder / "src/pmpi" / name, libraries)
    return libraries


_RUNTIMES = {
    "address,undefined": {"ASAN_OPTIONS": "detect_leaks=0", "HWLOC_COMPONENTS": "-opencl"},
    "thread": {"TSAN_OPTIONS": "ignore_noninstrumented_modules=1"},
}


@pytest.mark.long
@pytest.mark.parametrize("sanitizers", _RUNTIMES)
def test_runtime_is_clean(lab: Lab, sanitizers: str) -> None:
    """In programs drawn at random, of several threads too. What is found ends a program, or becomes its exit code."""
    if sanitizers == "thread" and lab.family.name != "openmpi":
        pytest.skip("programs crash without Fallow, too")
    env = {**_RUNTIMES[sanitizers], "FALLOW_LIBRARY_DIR": str(_runtime(lab, sanitizers))}
    flags = [f"-fsanitize={sanitizers}", "-O1", "-g", "-pthread"]
    many = build(lab.family, f"many-{sanitizers}", [PROGRAMS / "many_threads.c"], flags, PROGRAMS.glob("*.h"))
    commands = [(2, lab.drawn(sanitizers), str(seed), "6", str(seed % 2)) for seed in range(8)]
    commands += [(1, many, "40", "20", "together"), (1, many, "20", "10", "in turn")]
    for options in ([], ["--hook", "twin"], ["--trace", "trace.ftr"], ["--trace", "trace.ftr", "--clock", "cpu"]):
        for mode in ("auto", "sleep"):
            for ranks, program, *arguments in commands:
                outcome = lab.run(mode, ranks, program, *arguments, env=env, options=options).outcome
                assert outcome.rc == 0 and not outcome.timed_out, outcome.describe()
