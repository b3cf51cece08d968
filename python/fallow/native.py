"""The one place that imports the extension module, which may be missing or lack a part."""

from __future__ import annotations

import contextlib
import errno
import importlib
import mmap
import os
from pathlib import Path
from types import ModuleType

from fallow.errors import UserError


def _import() -> tuple[ModuleType | None, str]:
    try:
        module = importlib.import_module("fallow._native")
    except ImportError as error:
        return None, str(error)
    if module.__file__ is None:  # the directory of its sources, in a checkout
        return None, "not built"
    return module, ""


def load() -> ModuleType | None:
    """The extension module, or None where it cannot be loaded."""
    return _import()[0]


def module_problem() -> str:
    """Why the extension module cannot be loaded, and what to do, or an empty string."""
    module, why = _import()
    if module is not None:
        return ""
    old = "version `" in why and "not found" in why
    advice = "LD_LIBRARY_PATH names libraries too old for it" if old else "install the package anew: pip install ."
    return f"the native part of Fallow does not load ({why}); {advice}"


def part(name: str) -> object | None:
    """One function of the extension module, or None where it was not built."""
    module = load()
    return None if module is None else getattr(module, name, None)


def require() -> ModuleType:
    """The extension module; UserError where it cannot be loaded."""
    module = load()
    if module is None:
        raise UserError(module_problem())
    return module


def file_name(path: Path) -> str:
    """A path as the extension module takes it; UserError where its name is not UTF-8."""
    return in_utf8(path, "rename it, or go there and name the file by itself")


def in_utf8(path: Path, advice: str) -> str:
    """The path as text whose UTF-8 is its name, whatever the locale takes that for; UserError, with what to do, where
    it is not UTF-8."""
    try:
        return os.fsencode(path).decode()
    except UnicodeError:
        shown = str(path).encode("utf-8", "backslashreplace").decode()
        raise UserError(f"{shown}: the name is not UTF-8; {advice}") from None


def library_dirs() -> tuple[Path, ...]:
    """Where the preload library and the runtimes may lie, best first; FALLOW_LIBRARY_DIR stands for all others."""
    named = os.environ.get("FALLOW_LIBRARY_DIR")
    if named:
        return (Path(named).absolute(),)
    here = Path(__file__).resolve().parent
    dirs = [here / "lib"]
    module = load()
    if module is not None and module.__file__:
        dirs.append(Path(module.__file__).resolve().parent / "lib")
    dirs.extend(parent / "lib" / "fallow" for parent in here.parents[:4])
    return tuple(dict.fromkeys(dirs))


def library(name: str) -> Path | None:
    """Path of one of Fallow's libraries, or None where it is not installed; where nobody may look, it may be there."""
    hidden = None
    for directory in library_dirs():
        try:
            if (directory / name).is_file():
                return directory / name
        except OSError:
            hidden = hidden or directory / name
    return hidden


def loading_problem(path: Path) -> str:
    """Why the dynamic linker cannot map a library, or an empty string: each process would say so in its own words."""
    try:
        with path.open("rb") as file, contextlib.suppress(ValueError):  # an empty one
            mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC).close()
    except OSError as error:
        why = "its file system is mounted noexec" if error.errno == errno.EPERM else error.strerror or error
        return f"{path} cannot be loaded: {why}"
    return ""
