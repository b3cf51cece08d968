"""What the ranks recorded, as the reader of rank files gives it."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from fallow import clocks, native

if TYPE_CHECKING:
    from fallow import _native

_MAGIC = b"FALLOWRK"


Span = tuple[int, int, int]
"""When a program or thread began to call MPI, when it was through, and how many threads it had at the same time."""


def at_once(spans: Iterable[Span]) -> int:
    """How many threads there were at the same time, at most."""
    steps = sorted((time, step) for begin, end, n in spans if end > begin for time, step in ((begin, n), (end, -n)))
    return max(accumulate(step for _, step in steps), default=0)


@dataclass(frozen=True)
class Unreadable:
    """A rank file that was refused."""

    file: str
    reason: str


@dataclass(frozen=True)
class Ranks:
    """All ranks of a run, by program and world rank, and the files that could not be read."""

    read: list[_native.RankDict]
    unreadable: list[Unreadable]
    programs: list[int]
    """Of each of `read` the MPI program that it is a rank of: from 1, in the order in which they were started."""
    notes: list[str]
    """What was corrected."""
    written: list[bool]
    """Of each of `read`, whether a process of this machine still wrote its file."""

    @property
    def labels(self) -> list[str]:
        """What tells each of `read` from the others."""
        several = max(self.programs, default=1) > 1
        return [
            f"{program}:{rank['rank']}" if several else str(rank["rank"])
            for program, rank in zip(self.programs, self.read, strict=True)
        ]

    @property
    def spans(self) -> dict[int, Span]:
        """By program."""
        threads: dict[int, list[Span]] = {}
        for program, rank in zip(self.programs, self.read, strict=True):
            threads.setdefault(program, []).extend((t["first_ns"], t["last_ns"], 1) for t in rank["threads"])
        return {of: (min(s)[0], max(end for _, end, _ in s), at_once(s)) for of, s in threads.items() if s}

    @property
    def expected(self) -> int:
        """How many ranks the programs had, as the ranks say; at least as many as there are files."""
        return max(sum(size * count for size, count in self._worlds().items()), len(self.read) + len(self.unreadable))

    def missing(self, most: int) -> list[int]:
        """The first `most` world ranks without a record; empty with several programs, where that is not known."""
        worlds = self._worlds()
        if sum(worlds.values()) != 1:
            return []
        there = {rank["rank"] for rank in self.read}
        first = range(min(next(iter(worlds)), len(there) + most))  # a damaged file may name any size
        return [rank for rank in first if rank not in there][:most]

    def _worlds(self) -> dict[int, int]:
        """How many programs there were of each size, at least: as often as the same rank was found."""
        found = Counter((rank["size"], rank["rank"]) for rank in self.read if rank["size"] > 0)
        worlds: dict[int, int] = {}
        for (size, _), count in found.items():
            worlds[size] = max(worlds.get(size, 0), count)
        return worlds


def files(directory: Path) -> list[Path]:
    """The rank files of a run, also those that are damaged beyond their first bytes."""
    return sorted(p for p in directory.iterdir() if p.is_file() and (p.name.startswith("rank") or _has_magic(p)))


def any_in(directory: Path) -> bool:
    """Whether a rank wrote a file there."""
    return any(p.is_file() and _has_magic(p) for p in directory.iterdir())


def _has_magic(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def _is_written(path: Path) -> bool:
    """By a process of this machine, which the name tells."""
    pid = path.stem.rpartition("-")[2]
    try:
        return pid.isdigit() and os.fsencode(path.resolve()) in Path("/proc", pid, "maps").read_bytes()
    except OSError:
        return False


def in_use(directory: Path) -> list[Path]:
    """The rank files that a process of this machine still writes; none where the directory is gone."""
    try:
        return [path for path in files(directory) if _is_written(path)]
    except OSError:
        return []


def wait_for_ends(directory: Path, seconds: float) -> None:
    """Returns when no rank writes any more, or after so long: a launcher that is ended may be gone before its ranks."""
    end = time.monotonic() + seconds
    while in_use(directory) and time.monotonic() < end:
        time.sleep(0.01)


def load(paths: Iterable[Path], max_events: int, sum_up: Callable[[_native.RankDict], None]) -> Ranks:
    """Reads rank files, each with the last `max_events` calls of each thread.

    `sum_up` is given each rank with its call sites. These are not kept: of thousands of ranks they would fill the
    memory, and so would the table of operations, which is the same for all ranks of a program.
    """
    module = native.require()
    found: list[tuple[_native.RankDict, bool]] = []
    ops: list[tuple[str, str, bool]] = []
    unreadable: list[Unreadable] = []
    for path in paths:
        written = _is_written(path)  # before it is read: what ends between the two has its end in the file
        try:
            rank = module.read_rank(native.file_name(path), max_events)
        except module.RankFileError as error:
            unreadable.append(Unreadable(path.name, str(error).removeprefix(f"{path}: ")))
            continue
        ops = rank["ops"] = ops if rank["ops"] == ops else rank["ops"]
        sum_up(rank)
        for thread in rank["threads"]:
            thread["sites"] = []
        found.append((rank, written))
    found.sort(key=lambda pair: (pair[0]["start_ns"], pair[0]["pid"]))
    numbered = [(number, *pair) for number, pair in zip(_programs(rank for rank, _ in found), found, strict=True)]
    numbered.sort(key=lambda row: (row[0], row[1]["rank"], row[1]["pid"]))
    read, programs = [rank for _, rank, _ in numbered], [number for number, *_ in numbered]
    return Ranks(read, unreadable, programs, clocks.correct(read, programs), [written for *_, written in numbered])


def _programs(read: Iterable[_native.RankDict]) -> list[int]:
    """The number of each rank's program, of ranks in the order of their start.

    Who started them gives each program a name, or else its size; what has the same rank a second time is another one.
    """
    seen: Counter[tuple[int, int, int]] = Counter()
    numbers: dict[tuple[int, int, int], int] = {}
    found = []
    for rank in read:
        same = (rank["launch"], rank["size"], rank["rank"])
        seen[same] += 1
        found.append(numbers.setdefault((rank["launch"], rank["size"], seen[same]), len(numbers) + 1))
    return found
