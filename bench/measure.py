"""Runs commands side by side: interleaved, several times, medians and ranges."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from families import FALLOW, Family


@dataclass(frozen=True)
class Way:
    """One way of running a program: bare, with the library's own yield, with a tool loaded, or under Fallow in a mode."""

    label: str
    mode: str = ""
    own_yield: bool = False
    trace: bool = False
    tool: str = ""

    def fallow(self, scratch: str) -> list[str]:
        """The words in front of a command."""
        trace = ["--trace", f"{scratch}/trace"] if self.trace else []
        return [str(FALLOW), "run", "--quiet", "--mode", self.mode, "--out", f"{scratch}/run", *trace, "--"]


BARE = Way("bare")
CLOCK_ONLY = Way("clock only", tool="clock_only")
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


Results = dict[str, dict[str, dict[str, Sample]]]


class Busy(Exception):
    """A run did not end in its time."""


class Stolen:
    """How much of the processors' time a virtual machine's host has kept for others since this was made."""

    # Of the time of all processors. The kernel counts in hundredths of a second: of a run of a second on two processors,
    # two of them are too many.
    TOO_MUCH = 0.0075

    def __init__(self) -> None:
        self._began = time.monotonic(), self._seconds()

    @staticmethod
    def _seconds() -> float:
        fields = Path("/proc/stat").read_text().split(maxsplit=9)
        return int(fields[8]) / os.sysconf("SC_CLK_TCK")

    def share(self) -> float:
        began, stolen = self._began
        return (self._seconds() - stolen) / (max(time.monotonic() - began, 1e-9) * (os.cpu_count() or 1))


class Others:
    """How many cores programs that are not ours have used since this was made."""

    TOO_MANY = 0.1

    def __init__(self) -> None:
        self._began = time.monotonic(), self._machine_s() - self._own_s()

    @staticmethod
    def _machine_s() -> float:
        user, nice, system = map(int, Path("/proc/stat").read_text().split(maxsplit=4)[1:4])
        return (user + nice + system) / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def _own_s() -> float:
        """Of this process and all that it started and waited for."""
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(u.ru_utime + u.ru_stime for u in used)

    def cores(self) -> float:
        began, others = self._began
        return max(self._machine_s() - self._own_s() - others, 0.0) / max(time.monotonic() - began, 1e-9)

    def warning(self) -> str:
        """A line where it was too much to believe the figures, else nothing."""
        cores = self.cores()
        return "" if cores <= self.TOO_MANY else f"other programs used {cores:.1f} cores meanwhile: the figures are not those of a quiet machine"


@dataclass
class Repetitions:
    """Repeated until enough were undisturbed, but not for ever."""

    wanted: int
    most: int
    kept: list[tuple[float, dict[str, dict[str, float]]]]  # time stolen, figures by way and name
    left_out: int = 0

    def enough(self) -> bool:
        undisturbed = sum(stolen <= Stolen.TOO_MUCH for stolen, _ in self.kept)
        return undisturbed >= self.wanted or len(self.kept) >= self.most

    def least_disturbed(self) -> list[dict[str, dict[str, float]]]:
        order = sorted(range(len(self.kept)), key=lambda i: (max(self.kept[i][0], Stolen.TOO_MUCH), i))[: self.wanted]
        self.left_out = len(self.kept) - len(order)
        return [self.kept[i][1] for i in sorted(order)]


left_out: list[int] = []  # repetitions of each comparison since this was emptied


def heading(text: str) -> None:
    """What is measured next."""
    print(f"\n{text}\n{'-' * len(text)}", flush=True)


def run_once(family: Family, way: Way, ranks: int, program: list[str], timeout_s: float) -> str:
    env = family.environment()
    if way.own_yield:
        env |= family.own_yield
    tool = ["env", f"LD_PRELOAD={family.tool(way.tool)}"] if way.tool else []
    command = [*family.launcher, "-n", str(ranks), *tool, *program]
    with tempfile.TemporaryDirectory() as scratch:
        if way.mode:
            command = [*way.fallow(scratch), *command]
        try:
            done = subprocess.run(family.on_host(command), env=env, capture_output=True, text=True, timeout=timeout_s, cwd=scratch, check=False)
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
    """Figures by way and name. Each repetition begins with another way, so that none runs twice in a row, in one and the same
    disturbance (two ways take turns in beginning). Repetitions during which the host of
    a virtual machine gave the processors to others are made again, up to three times as many in all."""
    ways = list(ways)
    runs = Repetitions(repeats, 3 * repeats, [])
    while not runs.enough():
        stolen, figures = 0.0, {}
        first = len(runs.kept) % len(ways)
        for way in ways[first:] + ways[:first]:
            watch = Stolen()
            figures[way.label] = parse(run_once(family, way, ranks, program, timeout_s))
            stolen = max(stolen, watch.share())
        runs.kept.append((stolen, figures))
    best = runs.least_disturbed()
    left_out.append(runs.left_out)
    return {w.label: {name: Sample(tuple(r[w.label][name] for r in best)) for name in best[0][w.label]} for w in ways}


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
