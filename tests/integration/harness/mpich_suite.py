"""The test suite of MPICH, from its Debian source package, built for one of the families: some 900 programs of others, each of
which says "No Errors" at its end."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from harness.building import CACHE
from harness.families import Family, base_environment

_SOURCES = "deb-src http://deb.debian.org/debian bookworm main\n"
_TIMEOUT_S = 1200.0
# Names of MPI-1 that newer libraries no longer have, in the part that most programs need.
_OLD_NAMES = re.compile(r"\bMPI_Type_(hindexed|struct|hvector)\(")


@dataclass(frozen=True)
class Program:
    """A line of the suite's lists."""

    folder: Path
    name: str
    ranks: int
    arguments: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return " ".join((self.name, str(self.ranks), *self.arguments))


def _run(command: list[str], where: Path, env: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        command, cwd=where, env=env, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def _archive() -> Path:
    """The source package, downloaded once, whatever sources of packages this machine has."""
    place = CACHE / "mpich-source"
    found = sorted(place.glob("mpich_*.orig.tar.*"))
    if found:
        return found[0]
    for name in ("lists/partial", "archives/partial"):
        (place / name).mkdir(parents=True, exist_ok=True)
    sources = place / "sources.list"
    sources.write_text(_SOURCES)
    apt = ["apt-get", "-qq"]
    for name, value in (
        ("Dir::Etc::sourcelist", sources), ("Dir::Etc::sourceparts", "-"), ("Dir::State::lists", place / "lists"),
        ("Dir::Cache::archives", place / "archives"), ("APT::Sandbox::User", "root"),
    ):  # fmt: skip
        apt += ["-o", f"{name}={value}"]
    _run([*apt, "update"], place)
    _run([*apt, "source", "--download-only", "mpich"], place)
    return sorted(place.glob("mpich_*.orig.tar.*"))[0]


def _configure(suite: Path, family: Family) -> None:
    lenient = "-fallow-argument-mismatch"  # one routine, buffers of several types
    env = {**base_environment(), "MPICC": family.cc, "CC": family.cc, "MPICXX": family.cxx, "FFLAGS": lenient, "FCFLAGS": lenient}
    options = ["--disable-cxx"]
    if family.fc:
        env |= {"MPIF77": family.fc, "MPIFC": family.fc}
    else:
        options += ["--disable-fortran", "--disable-f77", "--disable-fc", "--disable-f90", "--disable-f08"]
    for source in (suite / "dtpools/src").glob("*.c"):
        text = source.read_text()
        source.write_text(_OLD_NAMES.sub(r"MPI_Type_create_\1(", text))
    _run(["./configure", *options], suite, env)
    for part in ("dtpools", "util"):
        subprocess.run(["make", "-k"], cwd=suite / part, capture_output=True, check=False, timeout=_TIMEOUT_S)  # C++ may fail


def suite_for(family: Family) -> Path:
    """The suite's folder, configured for the family; made once."""
    place = CACHE / family.name / "mpich-suite"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "mpich-suite.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            work = place.with_name("mpich-suite.part")
            shutil.rmtree(work, ignore_errors=True)
            archive = _archive()
            with tarfile.open(archive) as files:
                top = files.next()
                assert top is not None, archive
                root = top.name.split("/")[0]
                files.extractall(work, [m for m in files if m.name.startswith(f"{root}/test/mpi/")])  # noqa: S202  from Debian
            (work / root / "test/mpi").rename(place)
            shutil.rmtree(work)
            try:
                _configure(place, family)
            except BaseException:
                shutil.rmtree(place)
                raise
    return place


def programs(folder: Path, most_ranks: int) -> Iterator[Program]:
    """Those that the folder's list names, and the lists that it names, with so many ranks at most."""
    listed = folder / "testlist"
    for line in listed.read_text().splitlines() if listed.exists() else ():
        words = line.split()
        if not words or words[0][0] in "#!":
            continue
        if len(words) == 1 and (folder / words[0]).is_dir():
            yield from programs(folder / words[0], most_ranks)
        elif len(words) > 1 and words[1].isdigit() and int(words[1]) <= most_ranks:
            values = [word.split("=", 1) for word in words[2:] if "=" in word]
            env = dict(value.split("=", 1) for name, value in values if name == "env" and "=" in value)
            yield Program(folder, words[0], int(words[1]), tuple(v for name, v in values if name == "arg"), env)


def built(program: Program) -> Path | None:
    """The executable; None where it does not compile, as what an MPI does not have does not."""
    path = program.folder / program.name
    if not path.exists():
        subprocess.run(
            ["make", program.name], cwd=program.folder, env={**os.environ, "LC_ALL": "C"}, capture_output=True, check=False, timeout=_TIMEOUT_S
        )
    return path if path.is_file() else None
