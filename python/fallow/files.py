"""Files that are whole or not there."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TextIO

from fallow.errors import UserError

_TRACE = b"FALLOWTR"  # what a trace begins with
_PIECE = 1 << 18  # bytes of a file that are read at a time


@contextlib.contextmanager
def whole(path: Path) -> Iterator[TextIO]:
    """A text file that takes its name when it is complete, and otherwise leaves what was there; UserError if it cannot.

    Links, what is no ordinary file, such as /dev/stdout, and files beside which none can be made are written to as they
    are.
    """
    direct = _direct(path)
    target = path if direct else path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with target.open("w", encoding="utf-8", errors="replace") as file:
            yield file
        if not direct:
            target.replace(path)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    finally:
        if not direct:
            with contextlib.suppress(OSError):
                target.unlink()


def whole_set(path: Path, write: Callable[[Path], None]) -> None:
    """A file and those that `write` puts beside it: what was there stays until all are complete, `path` comes last.

    What `whole` writes to as it is is here, too. OSError where it cannot be.
    """
    if _direct(path):
        write(path)
        return
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        write(Path(folder) / path.name)
        for made in sorted(Path(folder).iterdir(), key=lambda p: p.name == path.name):
            if made.is_dir():
                (path.parent / made.name).mkdir(exist_ok=True)
                for file in made.iterdir():
                    file.replace(path.parent / made.name / file.name)
            else:
                made.replace(path.parent / made.name)


def expect_room_beside(path: Path) -> None:
    """UserError for what is no ordinary file, such as /dev/null: others do not belong beside it."""
    if path.is_dir():
        raise UserError(f"{path}: {os.strerror(errno.EISDIR)}")
    if path.exists() and not path.is_file():
        raise UserError(f"{path}: is not a regular file, and others would be put beside it; name a file")


def _direct(path: Path) -> bool:
    replaceable = path.is_file() and os.access(path.parent, os.W_OK)
    return path.is_symlink() or (path.exists() and not replaceable)


def expect_name(path: Path) -> None:
    """UserError for `-`, which elsewhere is standard output: what has to be a file of its own is not written there."""
    if str(path) == "-":
        raise UserError("-o -: a trace is not written to standard output; name a file")


def expect_room(*paths: Path | None) -> None:
    """UserError where a file cannot be written later, as far as that is known: before long work, not after it."""
    for path in paths:
        if path is None or str(path) == "-":
            continue
        if path.is_dir():
            raise UserError(f"{path}: {os.strerror(errno.EISDIR)}")
        if not path.parent.is_dir():
            raise UserError(f"{path}: {os.strerror(errno.ENOENT)}")
        place = path if path.exists() else path.parent
        if not os.access(place, os.W_OK):
            why = errno.EROFS if os.statvfs(place).f_flag & os.ST_RDONLY else errno.EACCES
            raise UserError(f"{path}: {os.strerror(why)}")


def expect_apart(written: Iterable[Path | None], read: Iterable[Path]) -> None:
    """UserError where a file would take the place of one that is read, or of another one that is written."""
    places = {os.path.realpath(path) for path in read}
    for path in written:
        if path is None or str(path) == "-" or (path.exists() and not path.is_file()):
            continue
        place = os.path.realpath(path)
        if place in places:
            raise UserError(f"{path}: is named twice, and would be written over")
        places.add(place)


def save(path: Path, content: str) -> None:
    """Writes a text file in one go, as `whole` does."""
    with whole(path) as file:
        file.write(content)


def deliver(path: Path, content: str) -> None:
    """Writes a text file and prints its name; `-` stands for standard output, where the text goes then."""
    if str(path) == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(content.encode("utf-8", "replace"))
        return
    save(path, content)
    print(path)


def text(path: Path, most: int = 1 << 24) -> str:
    """What a text file holds; UserError where it cannot be read, is larger than `most` bytes or not in UTF-8.

    The mark that some editors begin such a file with is left out.
    """
    try:
        with path.open("rb") as file:
            data = bytearray()
            while len(data) <= most and (piece := file.read(_PIECE)):  # to ask for `most` takes that much memory
                data += piece
        if len(data) > most:
            raise UserError(f"{path}: larger than the {most >> 20} MiB that are read of such a file")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        found = "a trace" if data.startswith(_TRACE) else "not UTF-8 text"
        raise UserError(f"{path}: {found}, where a text file is wanted") from None
