"""Times, shares, sizes, names and lists of them, as users write them on a command line or in a file."""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_TIMES_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_LONGEST_NS = 1e18
_RANKS = re.compile(r"\s*([0-9]{1,9})\s*(?:-\s*([0-9]{1,9})\s*)?")
_MOST_RANKS = 1 << 21
_MOST_THREADS = 256
_SIZES = {"B": 1, "KB": 1024, "KiB": 1024, "MB": 1024**2, "MiB": 1024**2, "GB": 1024**3, "GiB": 1024**3}


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError
    return value


def time_ns(text: str) -> float:
    """'20us', '1.5ms', '0.2s', '300ns' in nanoseconds; without a unit only '0'."""
    bare = text.strip()
    digits = bare.rstrip("nums")
    unit = bare[len(digits) :]
    try:
        value = _number(digits) * (_TIMES_NS[unit] if unit or float(digits) else 0)
    except (ValueError, KeyError):
        value = -1
    if not 0 <= value <= _LONGEST_NS:
        raise argparse.ArgumentTypeError(f"'{text}' is no time; say 20us, 1.5ms, 0.2s or 300ns")
    return value


def time_us(text: str) -> float:
    """The same in microseconds."""
    return time_ns(text) / 1e3


def share(text: str) -> float:
    """'5%' or '0.05'."""
    bare = text.strip()
    try:
        value = _number(bare.removesuffix("%")) / (100 if bare.endswith("%") else 1)
    except ValueError:
        value = -1
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no share; say 5% or 0.05")
    return value


def size_bytes(text: str) -> int:
    """'8192', '8KB', '2MiB'."""
    bare = text.strip()
    digits = bare.rstrip("KMGiB")
    try:
        value = _number(digits) * _SIZES[bare[len(digits) :] or "B"]
    except (ValueError, KeyError):
        value = -1
    if not 0 <= value <= 1 << 40:
        raise argparse.ArgumentTypeError(f"'{text}' is no size; say 8192, 8KB or 2MiB")
    return round(value)


def whole(low: int, high: int) -> Callable[[str], int]:
    """A parser of whole numbers within bounds."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from {low} to {high}")
        return value

    return parse


def threads(text: str) -> int:
    """How many threads; 0: one per processor that this process may use."""
    return whole(0, _MOST_THREADS)(text) or min(len(os.sched_getaffinity(0)), _MOST_THREADS)


def positive(text: str) -> float:
    """A number above 0."""
    try:
        value = _number(text)
    except ValueError:
        value = 0
    if not 0 < value <= 1e6:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0, up to 1000000")
    return value


def rank_list(text: str) -> list[int]:
    """'0,4-7'."""
    out: list[int] = []
    for piece in text.split(","):
        found = _RANKS.fullmatch(piece)
        low, high = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
        if not low <= high < _MOST_RANKS:
            raise argparse.ArgumentTypeError(f"'{text}' is no list of ranks; say 0,4-7")
        out.extend(range(low, high + 1))
    return out


def named(text: str) -> str:
    """What is called something: an empty text is a variable of the user's that is not set."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the name is empty")
    return text


def named_path(text: str) -> Path:
    """A file or directory; an empty text would be the current directory."""
    return Path(named(text))


def listed(one: Callable[[str], T]) -> Callable[[str], list[T]]:
    """A parser of comma-separated values."""

    def parse(text: str) -> list[T]:
        found = [one(piece) for piece in text.split(",") if piece.strip()]
        if not found:
            raise argparse.ArgumentTypeError(f"'{text}' names nothing")
        return found

    return parse
