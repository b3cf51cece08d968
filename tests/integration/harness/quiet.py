"""Figures that other programs on the machine change: shown by repetition, and missed only where the machine was quiet."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

_LOOK_S = 0.5
_TOO_MANY = 0.1  # cores
_USER, _NICE, _SYSTEM, _STOLEN = 1, 2, 3, 8  # fields of the first line of /proc/stat

Value = TypeVar("Value")


def _seconds(*fields: int) -> float:
    ticks = Path("/proc/stat").read_text(encoding="ascii").split(maxsplit=9)
    return sum(int(ticks[field]) for field in fields) / os.sysconf("SC_CLK_TCK")


def _cores_in_use() -> float:
    """Now, when nothing of the test runs."""
    began, used = time.monotonic(), _seconds(_USER, _NICE, _SYSTEM)
    time.sleep(_LOOK_S)
    return (_seconds(_USER, _NICE, _SYSTEM) - used) / (time.monotonic() - began)


def needs_two_processors() -> None:
    """Skips the test where there is only one: what waits and what works need one each."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two processors")


def shown(attempt: Callable[[], Value], holds: Callable[[Value], bool], tries: int) -> None:
    """`holds` of what `attempt` gives, in one of `tries` while nothing else, and nobody on the host, had the cores. Skips where
    the machine was never quiet that often."""
    missed: list[Value] = []
    disturbed: list[Value] = []
    while len(missed) < tries and len(disturbed) < tries:
        began, stolen = time.monotonic(), _seconds(_STOLEN)
        value = attempt()
        if holds(value):
            return
        taken = (_seconds(_STOLEN) - stolen) / (time.monotonic() - began)
        (disturbed if taken + _cores_in_use() > _TOO_MANY else missed).append(value)
    if disturbed and len(missed) < tries:
        pytest.skip(f"others use the machine's cores: {disturbed}, and undisturbed {missed}")
    raise AssertionError(missed)
