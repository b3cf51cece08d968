"""The parts of a trace that ranks write while they run, and the one file that is made of them."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fallow import native
from fallow.errors import UserError
from fallow.text import plural
from fallow.text import size as human_size
from fallow.traces.found import MERGED, PARTS, PATTERN, launches, numbered
from fallow.traces.model import FileSource

_TELL_EVERY_S = 5.0
_UNWRITTEN = "without at most their last 10 s, or their last minute where they made few calls"
"""See docs/adr/0015-traces-are-packed-in-waits.md."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Target:
    """Where ranks put their parts, and the file that they become."""

    directory: Path
    file: Path

    @property
    def temporary(self) -> bool:
        """The directory is there for the parts alone."""
        return self.file.parent != self.directory

    def make(self) -> None:
        """Makes room for the parts; OSError where that cannot be."""
        self.directory.mkdir(parents=True, exist_ok=True)


def plan(out: Path) -> Target:
    """Where a trace goes: into a directory, or into one file if the name ends in .ftr. Makes nothing.

    UserError where something is there already: it stays, and is not to be taken for a part of this trace.
    """
    out = out.absolute()
    native.in_utf8(out, "take another for the trace")
    target = Target(out.with_name(out.name + PARTS), out) if out.suffix == ".ftr" else Target(out, out / MERGED)
    if out.exists() and not out.is_dir() and not target.temporary:
        raise UserError(f"{out} is a file; give a new directory, or a name that ends in .ftr")
    if target.file.exists() or (not target.temporary and any(target.directory.glob("*.ftr"))):
        raise UserError(f"{out}: there is a trace already; remove it or take another name")
    if any(target.directory.glob("*.ftr")):
        merge_them = f"fallow trace merge {shlex.quote(str(target.directory))} -o FILE"
        raise UserError(f"{target.directory} has the parts of another run; make a trace of them: {merge_them}")
    return target


def _progress(say: Say, file: Path) -> Callable[[int, int], None]:
    told = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal told
        if time.monotonic() - told < _TELL_EVERY_S:
            return
        told = time.monotonic()
        say(f"merging the trace into {file}: {done >> 20} of {total >> 20} MiB")

    return tell


def merge(paths: Sequence[Path], file: Path, say: Say) -> str:
    """Makes `file` of the parts of one start, then removes them. Returns one line about it. UserError: they stay."""
    source = FileSource(paths)
    for line in source.reader.problems():
        say(f"NOTE: {line}")
    try:
        source.reader.merge(native.file_name(file), _progress(say, file))
    except ValueError as error:
        raise UserError(str(error)) from None
    for path in paths:
        path.unlink()
    events = sum(r["events"] for r in source.ranks)
    dropped = sum(r["dropped"] for r in source.ranks)
    cut = sum(not r["complete"] for r in source.ranks)
    size = file.stat().st_size
    text = f"{plural(events, 'event')} of {plural(len(source.ranks), 'rank')}, {human_size(size)}"
    text += f", {size / events:.1f} bytes an event" if events else ""
    text += f"; {dropped} lost" if dropped else ""
    return text + (f"; it ends early for {plural(cut, 'rank')}, {_UNWRITTEN}" if cut else "")


def collect(target: Target, say: Say) -> None:
    """Merges what the ranks of a run left, over nothing that is there. What cannot be merged is left, and said."""
    found = launches(list(target.directory.glob(PATTERN)))
    if not found:
        say(f"no rank left a trace in {target.directory}")
    for number, paths in enumerate(found, 1):
        file = numbered(target.file, number)
        try:
            if file.exists():
                raise UserError(f"{file} is there already")
            say(f"trace {file}: {merge(paths, file, say)}")
        except UserError as error:
            left = _named(target, paths)
            say(f"the trace's parts are left as they are: {error}; try: fallow trace merge {left} -o FILE")
    if (other := numbered(target.file, len(found) + 1)).exists():
        say(f"NOTE: {other} was there before; it is not of this run")
    if target.temporary:
        with contextlib.suppress(OSError):  # not empty: what could not be merged
            target.directory.rmdir()


def _named(target: Target, paths: Sequence[Path]) -> str:
    """The parts of one start in a shell's words: beside merged traces, their directory would stand for those."""
    directory = shlex.quote(str(target.directory))
    return directory if target.temporary else f"{directory}/{'-'.join(paths[0].name.split('-')[:2])}-*.ftr"
