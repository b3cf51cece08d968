"""Which MPI libraries and compilers are installed here."""

from __future__ import annotations

import fnmatch
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

NAMES = {"openmpi": "Open MPI", "mpich": "MPICH and relatives", "mpiabi": "MPI 5 ABI"}
HEADERS = {
    "openmpi": "put its mpicc on PATH (Debian: apt install libopenmpi-dev)",
    "mpich": "put its mpicc on PATH (Debian: apt install libmpich-dev)",
    "mpiabi": "pip install mpich",
}
_LIBRARIES = {
    "openmpi": ("libmpi.so.40",),  # how the names begin, as the preloaded library has them
    "mpich": ("libmpich.so.12", "libmpi.so.12", "libmpi_*.so.12"),
    "mpiabi": ("libmpi_abi.so",),
}
_COMPILERS = {
    "openmpi": ("mpicc.openmpi",),
    "mpich": ("mpicc.mpich",),
    "mpiabi": ("mpicc_abi",),
}
_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Installed:
    """Libraries and compiler wrappers of one family."""

    libraries: list[str]
    compilers: list[str]


def _linker_cache() -> list[str]:
    """Paths that the dynamic linker knows."""
    tool = shutil.which("ldconfig") or "/sbin/ldconfig"
    try:
        done = subprocess.run([tool, "-p"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line.split("=>")[1].strip() for line in done.stdout.splitlines() if "=>" in line]


def _machine(path: str) -> bytes | None:
    """Word size and processor of an ELF file; None where it is none, or not to be read."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(20)
    except OSError:
        return None
    return head[4:5] + head[18:20] if head[:4] == b"\x7fELF" and len(head) == 20 else None


def _linked_by(compiler: str) -> list[str]:
    """The libraries that a compiler wrapper links programs with, where it says in which directories they lie."""
    try:
        done = subprocess.run([compiler, "-show"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        words = shlex.split(done.stdout)  # Intel's has quotes
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return []
    folders, names = ([w[2:] for w in words if w.startswith(flag) and len(w) > 2] for flag in ("-L", "-l"))
    return [path for f in folders for n in names if Path(path := os.path.realpath(f"{f}/lib{n}.so")).is_file()]


def _library_paths() -> list[str]:
    folders = [Path(sys.prefix) / "lib"]
    folders += [Path(p) for p in os.environ.get("LD_LIBRARY_PATH", "").split(":") if p]
    paths = _linker_cache()
    for folder in folders:
        try:
            paths += [str(p) for p in sorted(folder.glob("libmpi*.so*"))]
        except OSError:
            continue
    return paths


def _on_path(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path=str(Path(sys.prefix) / "bin"))


def _is_of(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern + "*") for pattern in patterns)


def find() -> dict[str, Installed]:
    """What is installed, by family."""
    here = _machine("/proc/self/exe")
    general = _on_path("mpicc")  # as modules of clusters have it: which family it is of, its libraries tell
    linked = _linked_by(general) if general else []
    paths = [path for path in (*_library_paths(), *linked) if _machine(path) == here]
    out = {}
    for family, names in _LIBRARIES.items():
        libraries = [p for p in paths if _is_of(Path(p).name, names)]
        real = {os.path.realpath(p): p for p in reversed(libraries)}
        compilers = [path for name in _COMPILERS[family] if (path := _on_path(name))]
        if general and any(_is_of(Path(path).name, names) for path in linked):
            compilers += [general] if os.path.realpath(general) not in map(os.path.realpath, compilers) else []
        out[family] = Installed(sorted(real.values()), compilers)
    return out
