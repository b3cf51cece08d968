"""Which MPI libraries and compilers are installed here."""

from __future__ import annotations

import fnmatch
import os
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
    paths = _library_paths()
    out = {}
    for family, names in _LIBRARIES.items():
        libraries = [p for p in paths if _is_of(Path(p).name, names)]
        real = {os.path.realpath(p): p for p in reversed(libraries)}
        compilers = [path for name in _COMPILERS[family] if (path := _on_path(name))]
        out[family] = Installed(sorted(real.values()), compilers)
    return out
