"""Records the traces of a reproduction: the programs that are there, at the published numbers of ranks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from fallow.errors import UserError

_LIMIT_S = 3600


@dataclass(frozen=True)
class Program:
    """A program that is recorded, and what it stands for."""

    name: str
    title: str
    published: str  # key in the published tables; "": not among them
    kernel: str  # the published kernel of chapter 4 that it stands for; "": none
    ranks: tuple[int, ...]
    command: str
    prepare: str
    why: str
    steps_share: float  # steps recorded, of the published run's

    def trace(self, directory: Path, ranks: int) -> Path:
        """Where its trace lies."""
        return directory / f"{self.name}-{ranks}.ftr"


def data(name: str) -> Mapping[str, Any]:
    """One of the data files beside this module."""
    return tomllib.loads(resources.files("fallow").joinpath("reproduce", name).read_text(encoding="utf-8"))


def programs() -> tuple[Program, ...]:
    """All of them."""
    return tuple(
        Program(
            p["name"], p["title"], p["published"], p.get("kernel", ""), tuple(p["ranks"]), p["command"],
            p.get("prepare", ""), p["why"], p.get("steps", 1) / p.get("published_steps", 1),
        )
        for p in data("programs.toml")["program"]
    )  # fmt: skip


def _why_not(program: Program, where: Path | None) -> str | None:
    """Why a program cannot be recorded here; None if it can."""
    first = program.command.split()[0]
    if "{programs}" in first:
        if where is None:
            return "name the directory of the built examples with --programs"
        if not (where / first.removeprefix("{programs}/")).is_file():
            return f"{where} has no {program.name}"
    elif shutil.which(first) is None:
        return f"{first} is not installed"
    return None


def record(directory: Path, where: Path | None, launcher: str, most_ranks: int) -> Iterator[str]:
    """Records what is missing; says of each what became of it."""
    directory.mkdir(parents=True, exist_ok=True)
    for program in programs():
        missing = [n for n in program.ranks if n <= most_ranks and not program.trace(directory, n).exists()]
        if not missing:
            continue
        if (reason := _why_not(program, where)) is not None:
            yield f"{program.title} is left out: {reason}"
            continue
        for ranks in missing:
            yield _record_one(program, ranks, directory, where, launcher)


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    return ((done.stderr or done.stdout).strip().splitlines() or ["no reason was given"])[-1]


def _record_one(program: Program, ranks: int, directory: Path, where: Path | None, launcher: str) -> str:
    target = program.trace(directory, ranks).absolute()
    command = program.command.format(programs=where.absolute() if where else "")
    environment = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    with tempfile.TemporaryDirectory(prefix="fallow-record-") as scratch:
        if program.prepare:
            prepared = subprocess.run(
                ["bash", "-euc", program.prepare],
                cwd=scratch,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            if prepared.returncode != 0:
                return f"{program.title} is left out: its input cannot be made: {_last_line(prepared)}"
        part = Path(scratch) / "trace.ftr"
        run = [
            sys.executable,
            "-m",
            "fallow",
            "run",
            "--quiet",
            "--mode",
            "sleep",
            "--clock",
            "cpu",
            "--trace",
            str(part),
        ]
        run += ["--out", str(Path(scratch) / "run"), "--", *launcher.format(ranks=ranks).split(), *command.split()]
        try:
            done = subprocess.run(
                run, cwd=scratch, env=environment, capture_output=True, text=True, timeout=_LIMIT_S, check=False
            )
        except subprocess.TimeoutExpired:
            return f"{program.title} with {ranks} ranks is left out: it took more than {_LIMIT_S // 60} minutes"
        except OSError as error:
            raise UserError(f"{run[0]}: {error.strerror}") from None
        if done.returncode != 0 or not part.is_file():
            return (
                f"{program.title} with {ranks} ranks is left out: it ended with {done.returncode}: {_last_line(done)}"
            )
        shutil.move(part, target.with_suffix(".part"))
        target.with_suffix(".part").replace(target)
    return f"{program.title} with {ranks} ranks: {target}"
