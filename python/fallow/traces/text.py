"""What the readers and writers of text formats share."""

from __future__ import annotations

import heapq
import json
import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from fallow.errors import UserError
from fallow.traces.model import ANY_TAG, Event, Run, Site

LARGEST = (1 << 62) - 1
_LONGEST_LINE = 1 << 26  # characters: counts for 2^21 ranks, both ways
_LONGEST_WORD = 60  # that a message repeats

ONE_THREAD = (
    "the threads of a rank (their calls stand one after the other, in the order in which they began; a replay may wait "
    "for ever where threads of several ranks wait for each other)"
)
"""A loss of formats that know ranks only."""

COMMS_OF_MESSAGES = "the communicators of messages, which are told apart by their tags alone"
"""A loss of formats that know the world's only."""


class Message(NamedTuple):
    """One side of a message."""

    peer: int
    tag: int
    size_bytes: int


def sent(e: Event) -> Message:
    """What a call that sends, or only receives, names as its message."""
    return Message(e.peer, e.tag, e.size_bytes)


def received(e: Event) -> Message:
    """The receive side of a call that sends as well."""
    return Message(e.recv_peer, e.recv_tag, e.recv_bytes)


_SITE = re.compile(r"(?:(.*?) )?at 0x([0-9a-f]{1,16})(?: in (.*))?")


def site_text(site: Site) -> str:
    """A call site in one line: "solve at 0x4f20 in /opt/app"."""
    address, module, label = site
    line = f"{label} " * bool(label) + f"at {address:#x}" + f" in {module}" * bool(module)
    return "".join(c if c.isprintable() else "?" for c in line)


def site_of(text: str) -> Site | None:
    """The same read back; None if it is no such line."""
    found = _SITE.fullmatch(text)
    return (int(found[2], 16), found[3] or "", found[1] or "") if found else None


def line_of(text: str) -> str:
    """Any text in one line of ASCII."""
    return json.dumps(text)[1:-1]


def text_of(line: str) -> str:
    """The same read back; empty if it is no such line."""
    try:
        return str(json.loads(f'"{line}"'))
    except ValueError:
        return ""


_SIDES = re.compile(r"between ranks ([\d,/-]+) and ([\d,/-]+)")
_RUN = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?:/(\d{1,9}))?)?")


def sides_text(group: Sequence[Run], remote: Sequence[Run]) -> str:
    """The groups of an intercommunicator in one line, by world rank: "between ranks 0-6/2 and 7-1/2,9"."""
    group_text, remote_text = (",".join(map(_run_text, runs)) for runs in (group, remote))
    return f"between ranks {group_text} and {remote_text}"


def _run_text(run: Run) -> str:
    first, count, stride = run
    if count == 1:
        return str(first)
    return f"{first}-{first + (count - 1) * stride}" + f"/{abs(stride)}" * (abs(stride) > 1)


def sides_of(text: str) -> tuple[list[Run], list[Run]] | None:
    """The same read back; None if it is no such line."""
    found = _SIDES.fullmatch(text)
    if found is None:
        return None
    group, remote = ([_run_of(part) for part in side.split(",")] for side in found.groups())
    known = [[run for run in side if run is not None] for side in (group, remote)]
    return (known[0], known[1]) if known == [group, remote] else None


def _run_of(text: str) -> Run | None:
    found = _RUN.fullmatch(text)
    if found is None:
        return None
    first, last, stride = int(found[1]), found[2], int(found[3] or 1)
    if last is None:
        return first, 1, 1
    further = int(last) - first
    if further == 0 or stride == 0 or further % stride:
        return None
    return first, abs(further) // stride + 1, stride if further > 0 else -stride


class FormatError(UserError):
    """A text that is not what it should be: names file, line and reason."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        super().__init__(f"{path}: line {line}: {reason}")


class Losses:
    """What a format cannot carry, said once each."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def add(self, what: str) -> None:
        """Notes one event or field that is lost."""
        self.counts[what] += 1

    def lines(self, name: str) -> list[str]:
        """One line for each kind of loss."""
        return [f"{name} cannot carry {what}" + (f" ({n} times)" if n > 1 else "") for what, n in self.counts.items()]


def tag_of(tag: int, losses: Losses) -> int:
    """A tag as formats have it that name one with each message; -1 where a receive takes any, which is said."""
    if tag == ANY_TAG:
        losses.add("the tags of what receives of any tag took, where the trace does not tell them (-1 is written)")
        return -1
    return max(tag, 0)


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines that are not empty, with their numbers; UserError if the file cannot be read."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(iter(partial(file.readline, _LONGEST_LINE), ""), 1):
                if len(line) == _LONGEST_LINE:
                    raise FormatError(path, number, "is longer than any line of a trace")
                if text := line.strip():
                    yield number, text
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:  # a name that no file can have
        raise UserError(f"{str(path)!r}: {error}") from None


def whole(text: str, low: int = 0, high: int = LARGEST) -> int:
    """A number in bounds; ValueError else."""
    try:
        value = int(text)
    except ValueError:
        raise ValueError(f"'{_short(text)}' is no whole number") from None
    if not low <= value <= high:
        raise ValueError(f"{value} is out of range")
    return value


def nanoseconds(text: str, per_unit: float) -> int:
    """A decimal number of some unit of time, in ns; ValueError if it makes no sense."""
    value = decimal(text) * per_unit
    if not 0 <= value < LARGEST:  # refuses NaN too
        raise ValueError(f"{text} is no time")
    return round(value)


def decimal(text: str) -> float:
    """A number with or without a fraction; ValueError else."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"'{_short(text)}' is no number") from None


def _short(text: str) -> str:
    """Of a file that may hold anything, as a message may show it."""
    shown = "".join(c if c.isprintable() else "?" for c in text[:_LONGEST_WORD])
    return shown if len(text) <= _LONGEST_WORD else shown + "..."


class RequestNumbers:
    """Numbers for the requests of one rank in formats that name them by peer and tag."""

    def __init__(self) -> None:
        self._free: list[int] = []  # a heap
        self._next = 0
        self._open: dict[tuple[int, ...], deque[int]] = {}

    def add(self, key: tuple[int, ...]) -> int:
        """The lowest free number, to be found by `key`."""
        if self._free:
            number = heapq.heappop(self._free)
        else:
            number = self._next
            self._next += 1
        self._open.setdefault(key, deque()).append(number)
        return number

    def complete(self, key: tuple[int, ...]) -> int | None:
        """The oldest request with this key, which is over then."""
        waiting = self._open.get(key)
        if not waiting:
            return None
        number = waiting.popleft()
        if not waiting:
            del self._open[key]
        heapq.heappush(self._free, number)
        return number

    def complete_all(self) -> tuple[int, ...]:
        """All requests, which are over then."""
        numbers = tuple(sorted(n for waiting in self._open.values() for n in waiting))
        self._open.clear()
        self._free.extend(numbers)
        heapq.heapify(self._free)
        return numbers
