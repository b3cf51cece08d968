"""What goes wrong in OTF2's library: kept in the library's words, rather than written to stderr, and put to a file."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import io
import re
import shutil
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fallow.errors import UserError

_MOST_TEXT = 1024
_FIRST, _LAST = b"\x03", b"\x01"  # bytes of every file of an archive: the head of a chunk and the end of one

_UNDEFINED = re.compile(r"KeyError: (\d+)")

_Callback = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p,
    ctypes.c_void_p,
)  # fmt: skip


class BadDefinitionError(ValueError):
    """A definition of the archive, such as a text, that makes no sense."""


class Complaints:
    """Errors that the library told of, in order: what kind, and more of it."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.python = io.StringIO()  # tracebacks

    def cause(self, folder: Path) -> str:
        """The first one, with the file that it names, or the archive's folder."""
        what, more = self.told[0]
        name = more.removeprefix("POSIX: ").strip("'\"")
        return f"{name if name.startswith(f'{folder}/') else folder}: {what}"

    def reason(self, error: Exception) -> str:
        """What began it, as far as it was told; else the error that came of it."""
        tracebacks = self.python.getvalue().strip().splitlines()
        if tracebacks and (undefined := _UNDEFINED.fullmatch(tracebacks[-1])):
            return f"it names definition {undefined[1]} of a kind that has none of this number"
        return tracebacks[-1] if tracebacks else self.told[0][0] if self.told else str(error)

    def place(self, error: Exception, anchor: Path) -> Path:
        """The file of the definitions, if it was one of them that was not understood; else the archive's anchor."""
        theirs = isinstance(error, BadDefinitionError) or "GlobalDefReader" in self.python.getvalue()
        return anchor.with_suffix(".def") if theirs else anchor


@contextlib.contextmanager
def collected() -> Iterator[Complaints]:
    """Collects what the library would write to stderr, and leaves out the tracebacks of its Python part."""
    codes = importlib.import_module("_otf2.ErrorCodes")
    libc, complaints = ctypes.CDLL(None), Complaints()

    def keep(_: Any, __: Any, ___: Any, ____: Any, code: int, form: bytes | None, values: Any) -> int:  # noqa: ANN401
        text = ctypes.create_string_buffer(_MOST_TEXT)
        if form:
            libc.vsnprintf(text, ctypes.c_size_t(_MOST_TEXT), ctypes.c_char_p(form), ctypes.c_void_p(values))
        if code > 0:  # not a warning
            what = str(codes.Error_GetDescription(codes.ErrorCode(code)))
            complaints.told.append((what, text.value.decode(errors="replace")))
        return code

    register = codes.conf.lib.OTF2_Error_RegisterCallback
    register.argtypes, register.restype = [ctypes.c_void_p, ctypes.c_void_p], ctypes.c_void_p
    callback = _Callback(keep)
    before = register(ctypes.cast(callback, ctypes.c_void_p), None)
    try:
        with contextlib.redirect_stderr(complaints.python):
            yield complaints
    finally:
        register(before, None)


def _half_open(error: BaseException) -> Iterator[Any]:
    """Archives that were being opened when the error came: nobody else knows them, until they are destroyed."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if hasattr(found := frame.f_locals.get("self"), "_handle"):
            yield found


def abandon(error: BaseException, trace: Any, folder: Path, *, given: bool) -> None:  # noqa: ANN401
    """Leaves nothing of an archive that could not be written to its end; the library is not to try again later."""
    for archive in [trace] if trace is not None else _half_open(error):
        archive._handle = None  # its destructor closes what has one, and complains
    for part in folder.iterdir() if folder.is_dir() else ():
        shutil.rmtree(part) if part.is_dir() else part.unlink()
    if not given and folder.is_dir():
        folder.rmdir()


def damaged(anchor: Path) -> Path | None:
    """A file of the archive that is not whole, as far as its ends tell; None if all look well."""
    parts = [anchor.with_suffix(".def"), *sorted(anchor.with_suffix("").glob("*.*"))]
    for part in parts:
        try:
            content = part.read_bytes()
        except OSError as error:
            raise UserError(f"{part}: {error.strerror}") from None
        if not content.startswith(_FIRST) or not content.endswith(_LAST):
            return part
    return None
