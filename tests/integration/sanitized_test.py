"""Programs built with the compiler's sanitizers start under Fallow as they do without it."""

from __future__ import annotations

import pytest
from harness.building import build
from harness.lab import PROGRAMS, Lab

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
