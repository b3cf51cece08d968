"""Which files a trace is in: one, or a part of each rank, of one start of a program or of several."""

from __future__ import annotations

import re
import shlex
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fallow.errors import UserError

MERGED = "trace.ftr"
PATTERN = "trace-*.ftr"
PARTS = ".parts"  # added to the name of a file: the directory of its parts, until it is made of them
_OTHER_FORMATS = (".otf2", ".prv", ".dim", ".tit", ".ti")  # to be converted before Fallow's reader takes them
_NAME = re.compile(r"trace-([0-9a-f]{8})-(\d+)-.*\.ftr")
_START = struct.Struct("<24xQ")  # FileHead::start_wall_ns
_SHOWN = 4


@dataclass(frozen=True)
class _Part:
    path: Path
    key: str
    rank: int
    start_ns: int


def _part(path: Path) -> _Part | None:
    name = _NAME.fullmatch(path.name)
    with path.open("rb") as file:
        head = file.read(_START.size)
    if name is None or len(head) < _START.size:
        return None
    return _Part(path, name[1], int(name[2]), *_START.unpack(head))


def launches(paths: Sequence[Path]) -> list[list[Path]]:
    """The parts by the start of a program that they belong to, the earliest first."""
    found = sorted((p for p in map(_part, paths) if p is not None), key=lambda p: p.start_ns)
    groups: dict[tuple[str, int], list[Path]] = {}  # by key, and how many parts of the same rank came before
    before: Counter[tuple[str, int]] = Counter()
    for part in found:
        groups.setdefault((part.key, before[part.key, part.rank]), []).append(part.path)
        before[part.key, part.rank] += 1
    return [sorted(g) for g in groups.values()]


def numbered(file: Path, number: int) -> Path:
    """The file of the trace number 1, 2, ... of those that a run leaves."""
    return file if number == 1 else file.with_name(f"{file.stem}{number}.ftr")


def _merged(path: Path) -> list[Path]:
    return sorted([*path.glob(MERGED), *path.glob("trace[0-9]*.ftr")], key=lambda f: (len(f.name), f.name))


def find_parts(path: Path) -> list[list[Path]]:
    """The parts that ranks left in a directory, by start of a program; none where they have been merged."""
    parts = [] if not path.is_dir() or _merged(path) else sorted(path.glob(PATTERN))
    starts = launches(parts)
    return starts if len(starts) > 1 or not parts else [parts]  # with what is no part: the reader says so


def find_files(paths: Sequence[Path]) -> list[Path]:
    """The trace files meant: a directory stands for the one trace in it, or for its parts; several: UserError."""
    out: list[Path] = []
    for path in paths:
        name = shlex.quote(str(path))
        if (path.suffix in _OTHER_FORMATS and path.is_file()) or (path / "traces.otf2").is_file():
            raise UserError(f"{path}: a trace of another tool; first: fallow trace convert {name} -o NEW.ftr")
        if not path.is_dir():
            _expect_merged(path)
            out.append(path)
            continue
        merged, parts = _merged(path), find_parts(path)
        if len(merged) > 1:
            raise UserError(f"{path}: traces of several programs; name one of them: {_few([f.name for f in merged])}")
        if len(parts) > 1:
            raise UserError(f"{path}: parts of {len(parts)} traces; first: fallow trace merge {name} -o NEW.ftr")
        if not merged and not parts:
            raise UserError(f"{path}: no trace in this directory; record one with: fallow run --trace OUT -- COMMAND")
        out += merged or parts[0]
    return out


def _expect_merged(path: Path) -> None:
    """UserError where not the file is there but its parts: `fallow run` was killed, or has not ended."""
    left = path.with_name(path.name + PARTS)
    if not path.exists() and any(left.glob(PATTERN)):
        merge = f"fallow trace merge {shlex.quote(str(left))} -o {shlex.quote(str(path))}"
        raise UserError(f"{path}: is not there yet, its parts are; where the run has ended: {merge}")


def _few(names: Sequence[str]) -> str:
    if len(names) <= _SHOWN:
        return ", ".join(names)
    return f"{', '.join(names[: _SHOWN - 1])} ... {names[-1]} ({len(names)} in all)"
