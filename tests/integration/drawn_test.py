"""Programs drawn at random from legal MPI operations end, with the right data, in every wait mode.

`drawn/main.c` draws what it does from a seed, which a failure names. DRAWN_SEEDS=100:400 runs others than those of the long test.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

import pytest
from harness.building import build
from harness.fallow import BARE
from harness.families import REPOSITORY
from harness.lab import PROGRAMS, Lab, assert_same

_SOURCES = REPOSITORY / "tests/integration/drawn"
_PHASES = 8
_WAYS = {
    "auto": ("auto", []),
    "sleep": ("sleep", []),
    "twin": ("sleep", ["--hook", "twin"]),
    "trace": ("auto", ["--trace", "trace.ftr"]),
    "cpu": ("sleep", ["--trace", "trace.ftr", "--clock", "cpu"]),
    "careless": ("auto", ["--slowdown", "20%"]),
    "yield": ("yield", []),
    "spin": ("spin", []),
}


def _seeds() -> Sequence[int]:
    first, _, end = os.environ.get("DRAWN_SEEDS", "100:140").partition(":")
    return range(int(first), int(end or int(first) + 1))


def _check(lab: Lab, seed: int, ways: Sequence[str]) -> None:
    chance = random.Random(seed)
    ranks, threads = chance.choice((2, 2, 3, 4, 5)), chance.randrange(4) == 0
    headers = *_SOURCES.glob("*.h"), PROGRAMS / "check.h"
    program = build(lab.family, "drawn", sorted(_SOURCES.glob("*.c")), ["-O1", "-g", "-pthread", "-w"], headers)
    args = str(seed), str(_PHASES), str(int(threads))
    bare = lab.run(BARE, ranks, program, *args).outcome
    assert not bare.timed_out and bare.rc == 0, "bare program: " + bare.describe()
    for way in ways:
        mode, options = _WAYS[way]
        assert_same(bare, lab.run(mode, ranks, program, *args, options=options).outcome)


@pytest.mark.parametrize("seed", range(4))
def test_drawn_program(lab: Lab, seed: int) -> None:
    """Each of the ways comes with one of the seeds."""
    _check(lab, seed, list(_WAYS)[seed::4])


@pytest.mark.long
@pytest.mark.parametrize("seed", _seeds())
def test_drawn_programs(lab: Lab, seed: int) -> None:
    _check(lab, seed, list(_WAYS))
