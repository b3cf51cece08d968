"""Compiles test programs once per family and keeps them in the build tree."""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from harness.families import REPOSITORY, Family

CACHE = REPOSITORY / "build" / "tests"


def build(
    family: Family | None,
    name: str,
    sources: Iterable[Path],
    flags: Sequence[str] = (),
    depends: Iterable[Path] = (),
    *,
    compiler: str = "",
    libs: Sequence[str] = (),
) -> Path:
    """An executable or library made from `sources`; compiled anew only when they or the command change."""
    files = [Path(s) for s in sources]
    tool = compiler or (family.compiler(files[0]) if family else "g++")
    place = CACHE / (family.name if family else "host")
    place.mkdir(parents=True, exist_ok=True)
    target = place / name
    command = [tool, *flags, "-o", str(target), *map(str, files), *libs]
    digest = hashlib.sha256(" ".join(command).encode())
    for path in [*files, *depends]:
        digest.update(path.read_bytes())
    stamp = place / f"{name}.stamp"
    with (place / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists() and stamp.exists() and stamp.read_text() == digest.hexdigest():
            return target
        work = place / f"{name}.work"  # Fortran compilers leave module files where they run
        work.mkdir(exist_ok=True)
        result = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}\n{result.stderr}")
        stamp.write_text(digest.hexdigest())
    return target
