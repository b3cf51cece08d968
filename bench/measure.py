"""Runs commands side by side: interleaved, several times, medians and ranges."""

from __future__ import annotations

import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from families import FALLOW, Family


@dataclass(frozen=True)
class Way:
    """One way of running a program: bare, with the library's own yield, or under Fallow in a mode."""

    label: str
    mode: str = ""
    own_yield: bool = False
    trace: bool = False

    def fallow(self, scratch: str) -> list[str]:
        """The words in front of a command."""
        trace = ["--trace", f"{scratch}/trace"] if self.trace else []
        return [str(FALLOW), "run", "--quiet", "--mode", self.mode, "--out", f"{scratch}/run", *trace, "--"]


BARE = Way("bare")
SPIN = Way("Fallow spin", mode="spin")
AUTO = Way("Fallow auto", mode="auto")
TRACED = Way("spin, traced", mode="spin", trace=True)


@dataclass(frozen=True)
class Sample:
    """The figures of one quantity over the repetitions of one way."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def spread(self) -> str:
        return f"{min(self.values):.4g}..{max(self.values):.4g}"


class Busy(Exception):
    """A run did not end in its time."""


def run_once(family: Family, way: Way, ranks: int, program: list[str], timeout_s: float) -> str:
    env = family.environment()
    if way.own_yield:
        env |= family.own_yield
    command = [*family.launcher, "-n", str(ranks), *program]
    with tempfile.TemporaryDirectory() as scratch:
        if way.mode:
            command = [*way.fallow(scratch), *command]
        try:
            done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout_s, cwd=scratch, check=False)
        except subprocess.TimeoutExpired as e:
            raise Busy(f"{' '.join(program)}: no end within {timeout_s:.0f} s") from e
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
    return done.stdout


def side_by_side(
    family: Family,
    ways: Iterable[Way],
    ranks: int,
    program: list[str],
    parse: Callable[[str], dict[str, float]],
    repeats: int,
    timeout_s: float = 120,
) -> dict[str, dict[str, Sample]]:
    """Figures by way and name. The order of the ways turns round at every repetition."""
    ways = list(ways)
    found: dict[str, list[dict[str, float]]] = {w.label: [] for w in ways}
    for repeat in range(repeats):
        for way in ways if repeat % 2 == 0 else reversed(ways):
            found[way.label].append(parse(run_once(family, way, ranks, program, timeout_s)))
    return {
        label: {name: Sample(tuple(r[name] for r in runs)) for name in runs[0]} for label, runs in found.items() if runs
    }


def instructions_per_call(family: Family, way: Way, body: str) -> float:
    """Instructions of one call by callgrind: the slope between two lengths of the same run, so start-up cancels."""
    counts = []
    calls = (1000, 3000)
    for n in calls:
        env = family.environment()
        with tempfile.TemporaryDirectory() as scratch:
            tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={scratch}/out", family.program("one_call"), body, str(n)]
            if way.mode:
                tool = [*way.fallow(scratch), *tool]
            subprocess.run(tool, env=env, capture_output=True, check=True, timeout=300, cwd=scratch)
            totals = [line for line in Path(scratch, "out").read_text().splitlines() if line.startswith(("summary:", "totals:"))]
            counts.append(int(totals[-1].split()[1]))
    return (counts[1] - counts[0]) / (calls[1] - calls[0])
