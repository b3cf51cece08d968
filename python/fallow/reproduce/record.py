"""Records the traces of a set of programs: those of a reproduction, with the published ranks, or of the benchmarks."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from fallow import json_files
from fallow.errors import UserError
from fallow.files import save
from fallow.progress import Bar
from fallow.text import plural, seconds
from fallow.traces.model import FileSource

_LIMIT_S = 3600
_LOOK_EVERY_S = 0.5
_END_S = 10  # between being asked to end and being killed
_NOTES = "recorded.json"  # beside the traces: how each was recorded
_RULE = re.compile(r"-{20,}")  # Open MPI puts what it has to say between two of these
_OURS = "fallow: "


@dataclass(frozen=True)
class Program:
    """A program that is recorded, and what it stands for."""

    name: str
    title: str
    published: str  # key in the published tables; "": not among them
    kernel: str  # the published kernel of chapter 4 that it stands for; "": none
    values: Mapping[int, Mapping[str, Any]]  # of its command and its input, by number of ranks
    command: str
    prepare: str
    why: str
    published_steps: int  # 0: not known

    @property
    def ranks(self) -> tuple[int, ...]:
        """The numbers of ranks that it is recorded with."""
        return tuple(self.values)

    def steps_share(self, ranks: int) -> float:
        """Steps recorded, of the published run's; 1 where they are not known."""
        steps = self.values[ranks].get("steps", 0)
        return float(steps / self.published_steps) if steps and self.published_steps else 1.0

    def at_most(self, ranks: int) -> Program:
        """Only what has no more ranks."""
        return replace(self, values={n: v for n, v in self.values.items() if n <= ranks})

    def trace(self, directory: Path, ranks: int) -> Path:
        """Where its trace lies."""
        return directory / f"{self.name}-{ranks}.ftr"

    def command_line(self, ranks: int, where: Path | None) -> list[str]:
        """The program and its arguments."""
        words = self.command.format(programs="{programs}", **self.values[ranks]).split()
        return [word.replace("{programs}", str(where.absolute() if where else "")) for word in words]


def data(name: str) -> Mapping[str, Any]:
    """One of the data files beside this module."""
    return tomllib.loads(resources.files("fallow").joinpath("reproduce", name).read_text(encoding="utf-8"))


def programs(of: str = "dickov2015") -> tuple[Program, ...]:
    """All programs of a set."""
    found = []
    for p in data("programs.toml")["program"]:
        values = {n: r["with"] for r in p["record"] if r["for"] == of for n in r["ranks"]}
        values = dict(sorted(values.items()))
        if values:
            found.append(
                Program(
                    p["name"], p["title"], p.get("published", ""), p.get("kernel", ""), values, p["command"],
                    p.get("prepare", ""), p["why"], p.get("published_steps", 0),
                )
            )  # fmt: skip
    return tuple(found)


def launch_words(launcher: str, ranks: int) -> list[str]:
    """The words of a launcher's command, in which {ranks} is the number of ranks; UserError where that is not said."""
    if "{ranks}" not in launcher:
        raise UserError("--launcher needs {ranks} where the number of ranks stands, as in 'mpirun -n {ranks}'")
    try:
        return [word.replace("{ranks}", str(ranks)) for word in shlex.split(launcher)]
    except ValueError as error:
        raise UserError(f"--launcher {launcher}: {error}") from None


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


def record(
    chosen: Sequence[Program], directory: Path, where: Path | None, launcher: str, again: bool = False
) -> Iterator[str]:
    """Records what is missing in `directory`, or all of it `again`; says of each what became of it.

    Computation is taken as CPU time, so more ranks than cores give the times of a core each. `where` holds the built
    programs of examples/; {ranks} in `launcher` stands for their number.
    """
    launch_words(launcher, 1)
    wanted = [(p, [n for n in p.ranks if again or not p.trace(directory, n).exists()]) for p in chosen]
    made = not directory.exists()
    directory.mkdir(parents=True, exist_ok=True)
    try:
        yield from _record(wanted, directory, where, launcher)
    finally:
        if made:
            with contextlib.suppress(OSError):  # not empty: there are traces
                directory.rmdir()


def _record(
    wanted: Sequence[tuple[Program, Sequence[int]]], directory: Path, where: Path | None, launcher: str
) -> Iterator[str]:
    session = _Session(directory, where, launcher, sum(len(ranks) for _, ranks in wanted))
    for program, missing in wanted:
        if missing and (reason := _why_not(program, where)) is not None:
            session.done += len(missing)
            yield f"{program.title} is left out: {reason}"
        elif missing:
            try:
                yield from session.record(program, missing)
            except NothingStartsError as error:
                left = session.whole - session.done
                if left:
                    yield f"what else there is is left out: {shlex.split(launcher)[0]} starts no program here: {error}"
                return


def _said(trace: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    with trace.open("rb") as file:
        return {"sha256": hashlib.file_digest(file, "sha256").hexdigest(), "with": dict(values)}


def _notes(directory: Path) -> dict[str, Any]:
    path = directory / _NOTES
    return json_files.read(path) if path.is_file() else {}


def _note(directory: Path, name: str, trace: Path, values: Mapping[str, Any]) -> None:
    """Keeps how a trace was recorded."""
    found = _notes(directory) | {name: _said(trace, values)}
    save(directory / _NOTES, json.dumps(found, indent=1) + "\n")


def recorded(program: Program, directory: Path, ranks: int) -> bool:
    """Whether the trace is the one that is meant: recorded here, and with what the list of programs says."""
    trace = program.trace(directory, ranks)
    return bool(_notes(directory).get(trace.stem) == _said(trace, program.values[ranks]))


def ranks_of(trace: Path) -> int:
    """How many ranks a trace is of; UserError where it cannot be read."""
    return FileSource([trace]).info.size


def _set_apart(lines: Sequence[str]) -> str:
    """The first paragraph of what stands between two rules, if nothing else was said."""
    rules = [i for i, line in enumerate(lines) if _RULE.fullmatch(line)]
    if len(rules) != 2 or any(any(c.isalpha() for c in line) for line in (*lines[: rules[0]], *lines[rules[1] :])):
        return ""
    first, *_ = " ".join(line or "\n" for line in lines[rules[0] + 1 : rules[1]]).strip().split("\n")
    return first.strip()


def _last_line(said: str) -> str:
    """What a program or its launcher said of its end: a launcher's message, an error and the line after it, or the last
    words; ours only if there are no others."""
    every = [line.strip() for line in said.splitlines()]
    theirs = [line for line in every if not line.startswith(_OURS)]
    if told := _set_apart(theirs):
        return told
    lines = [line for line in theirs if any(c.isalpha() for c in line)] or [line for line in every if line]
    errors = [i for i, line in enumerate(lines) if "error:" in line.lower()]
    if errors:
        return " ".join(lines[errors[-1] : errors[-1] + 2])
    return lines[-1] if lines else "no reason was given"


class NothingStartsError(Exception):
    """The launcher starts no program here; says what it said."""


@dataclass
class _Session:
    """One after the other, with a progress bar."""

    directory: Path
    where: Path | None
    launcher: str
    whole: int
    done: int = 0
    starts: bool = False  # the launcher has been seen to start programs

    def __post_init__(self) -> None:
        self.bar = Bar("recording")

    def record(self, program: Program, missing: Sequence[int]) -> Iterator[str]:
        """One program; runs of the same values share their input."""
        with tempfile.TemporaryDirectory(prefix="fallow-record-") as scratch:
            inputs: list[tuple[Mapping[str, Any], Path, str | None]] = []
            for ranks in missing:
                values = program.values[ranks]
                if not any(v == values for v, _, _ in inputs):
                    place = Path(scratch) / str(len(inputs))
                    place.mkdir()
                    inputs.append((values, place, self._prepare(program, values, place)))
                _, place, refused = next(i for i in inputs if i[0] == values)
                if refused is None:
                    line = self._record_one(program, ranks, place)
                else:
                    line = f"{program.title} with {ranks} ranks is left out: its input cannot be made: {refused}"
                self.done += 1
                self.bar.close()
                yield line
                if not self.starts and (told := self._refusal(place)) is not None:
                    raise NothingStartsError(told)

    def _run(self, command: Sequence[str], place: Path, note: str, more: Mapping[str, str]) -> tuple[int | None, str]:
        """The exit status, None if it took too long, and what it said."""
        environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"} | dict(more)
        began = time.monotonic()

        def look() -> None:
            self.bar.show(self.done / self.whole, f", {note}: {seconds(time.monotonic() - began)}")

        return run_watched(command, place, environment, look)

    def _prepare(self, program: Program, values: Mapping[str, Any], place: Path) -> str | None:
        """Makes the input; why it cannot be made, or None."""
        if not program.prepare:
            return None
        settings = {k: str(v) for k, v in values.items()}
        status, said = self._run(["bash", "-euc", program.prepare], place, f"input of {program.title}", settings)
        return None if status == 0 else _last_line(said)

    def _refusal(self, place: Path) -> str | None:
        """What the launcher says if it starts nothing at all here, of whatever program; None: it does."""
        try:
            status, said = self._run([*launch_words(self.launcher, 1), "true"], place, "the launcher", {})
        except UserError as error:
            return str(error)
        self.starts = status == 0
        return None if self.starts else _last_line(said)

    def _record_one(self, program: Program, ranks: int, place: Path) -> str:
        name = f"{program.title} with {ranks} ranks"
        target = program.trace(self.directory, ranks).absolute()
        part = place / f"trace-{ranks}.ftr"
        command = [sys.executable, "-m", "fallow", "run", "--quiet", "--mode", "sleep", "--clock", "cpu"]
        command += ["--trace", str(part), "--out", str(place / f"run-{ranks}"), "--"]
        command += [*launch_words(self.launcher, ranks), *program.command_line(ranks, self.where)]
        began = time.monotonic()
        status, said = self._run(command, place, name, {})
        if status is None:
            return f"{name} is left out: it took more than {_LIMIT_S // 60} minutes"
        if status != 0 or not part.is_file():
            return f"{name} is left out: it ended with {status}: {_last_line(said)}"
        self.starts = True
        if (found := ranks_of(part)) != ranks:
            why = "is the launcher that of the MPI that it was built with?"
            return f"{name} is left out: its trace is of {plural(found, 'rank')}: {why}"
        shutil.move(part, target.with_suffix(".part"))
        _note(self.directory, target.stem, target.with_suffix(".part"), program.values[ranks])
        target.with_suffix(".part").replace(target)
        return f"{name}: {target} ({seconds(time.monotonic() - began)})"


def run_watched(
    command: Sequence[str], place: Path, environment: Mapping[str, str], look: Callable[[], None]
) -> tuple[int | None, str]:
    """Runs a command in `place`, calling `look` now and then; exit status, None if it took too long, and words."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        try:
            running = subprocess.Popen(
                command, cwd=place, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said
            )
        except OSError as error:
            raise UserError(f"{command[0]}: {error.strerror}") from None
        with running:
            status = _watch(running, look)
        said.seek(0)
        return status, said.read()


def _watch(running: subprocess.Popen[bytes], look: Callable[[], None]) -> int | None:
    began = time.monotonic()
    try:
        while time.monotonic() - began < _LIMIT_S:
            look()
            try:
                return running.wait(_LOOK_EVERY_S)
            except subprocess.TimeoutExpired:
                continue
        return None
    finally:
        if running.poll() is None:
            running.terminate()
            try:
                running.wait(_END_S)
            except subprocess.TimeoutExpired:
                running.kill()
