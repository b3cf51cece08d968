"""What many runs did and saved together. `fallow report` of more than two runs, or of a directory that holds runs,
prints exactly these names as JSON; docs/reference/json.md explains them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import fallow
from fallow import analyse, compare, ranks, rundir, text
from fallow.errors import UserError
from fallow.model import Report, Residency
from fallow.native import in_utf8
from fallow.stats import share

SCHEMA = "fallow-runs"
VERSION = 1
_REASONS = 8  # shown where nothing can be read
_INTERPRETER = re.compile(r"(python|perl|ruby|R|Rscript|julia|node|java)[\d.]*")
_STARTED = "%Y-%m-%dT%H:%M:%S%z"


@dataclass(frozen=True)
class Metered:
    """Energy from meters of the same kinds."""

    kinds: str
    runs: int
    energy_j: float


@dataclass(frozen=True)
class Modelled:
    """Energy from the platform model; "spinning" is the runs had they never slept."""

    runs: int
    energy_j: float
    energy_spinning_j: float


@dataclass(frozen=True)
class Sums:
    """Of one run or of several. Metered and modelled energy are never added up, nor are meters of different kinds."""

    runs: int
    run_time_s: float
    core_time_s: float
    residency: Residency
    mpi_share: float
    wait_asleep_share: float
    wait_burnt_s: float
    metered: list[Metered]
    modelled: Modelled | None


@dataclass(frozen=True)
class OneRun:
    """A run; how its command ended is not known (two nulls) of what ran without `fallow run` and what still runs."""

    directory: str
    program: str
    command: list[str]
    started: str
    ranks: int
    ranks_expected: int
    nodes: int
    mpi: str
    modes: list[str]
    exit_status: int | None
    signal: int | None
    wake_lasting_share_worst: float
    slowdown_budget: float
    sums: Sums


@dataclass(frozen=True)
class Program:
    """All runs of a program, which is told by the name of its file."""

    program: str
    sums: Sums


@dataclass(frozen=True)
class Platform:
    """A machine that energy was modelled on, and what was assumed of it."""

    platform: str
    runs: int
    assumptions: list[str]


@dataclass(frozen=True)
class NotRead:
    """A run that is in none of the figures."""

    directory: str
    reason: str


@dataclass(frozen=True)
class Overview:
    """Everything: runs in the order in which they were started, programs by core time."""

    schema: str
    version: int
    fallow_version: str
    totals: Sums
    programs: list[Program]
    runs: list[OneRun]
    platforms: list[Platform]
    not_read: list[NotRead]
    notes: list[str]


def as_dict(overview: Overview) -> dict[str, Any]:
    """The overview as plain lists and dictionaries."""
    return dataclasses.asdict(overview)


def runs_in(directory: Path) -> list[Path]:
    """The runs that a directory holds which is none itself, by name, and what in it cannot be looked into.

    UserError where the directory cannot.
    """

    def is_run(path: Path) -> bool:
        return any((path / name).is_file() for name in (rundir.RUN_FILE, compare.FILE)) or ranks.any_in(path)

    def may_be_run(path: Path) -> bool:
        try:
            return path.is_dir() and is_run(path)
        except OSError:
            return True

    try:
        if not directory.is_dir() or is_run(directory) or compare.unfinished(directory):
            return []
        return sorted(path for path in directory.iterdir() if may_be_run(path))
    except OSError as error:
        raise UserError(f"{error.filename or directory}: {error.strerror}") from None


def _script(command: list[str], interpreter: str) -> str:
    """What the interpreter of this name runs, as far as the command says it."""
    kind = interpreter.rstrip("0123456789.")
    at = next((i for i, word in enumerate(command) if Path(word).name.rstrip("0123456789.") == kind), len(command))
    if command[at + 1 : at + 2] in (["-c"], ["-e"]):
        return ""
    return Path(next((word for word in command[at + 1 :] if not word.startswith("-")), "")).name


def _called(report: Report) -> str:
    """The program's name; of an interpreter's that of what it runs."""
    name = Path(report.run.program).name
    return (_INTERPRETER.fullmatch(name) and _script(report.run.command, name)) or name


def _of_meters(report: Report) -> list[Metered]:
    metered = report.energy.metered
    if metered is None or metered.energy_j is None:
        return []
    return [Metered(", ".join(sorted({d.kind for d in metered.domains if d.counted})), 1, metered.energy_j)]


def _sums_of(report: Report) -> Sums:
    t, modelled = report.totals, report.energy.modelled
    return Sums(
        runs=1,
        run_time_s=t.run_time_s,
        core_time_s=t.core_time_s,
        residency=t.residency,
        mpi_share=t.mpi_share,
        wait_asleep_share=t.wait_asleep_share,
        wait_burnt_s=t.wait_burnt_s,
        metered=_of_meters(report),
        modelled=Modelled(1, modelled.energy_j, modelled.energy_spinning_j) if modelled else None,
    )


def _one(report: Report) -> OneRun:
    run = report.run
    return OneRun(
        directory=run.directory,
        program=_called(report),
        command=run.command,
        started=run.started,
        ranks=report.totals.ranks,
        ranks_expected=report.health.ranks_expected,
        nodes=len(run.hosts),
        mpi=run.mpi,
        modes=run.modes,
        exit_status=run.exit_status,
        signal=run.signal,
        wake_lasting_share_worst=report.totals.wake_lasting_share_worst,
        slowdown_budget=report.totals.slowdown_budget,
        sums=_sums_of(report),
    )


def _metered(parts: Iterable[Metered]) -> list[Metered]:
    by_kinds: dict[str, Metered] = {}
    for part in parts:
        before = by_kinds.get(part.kinds, Metered(part.kinds, 0, 0.0))
        by_kinds[part.kinds] = Metered(part.kinds, before.runs + part.runs, before.energy_j + part.energy_j)
    return [by_kinds[kinds] for kinds in sorted(by_kinds)]


def _added(parts: list[Sums]) -> Sums:
    residency = Residency(*(sum(row) for row in zip(*(dataclasses.astuple(p.residency) for p in parts), strict=True)))
    modelled = [p.modelled for p in parts if p.modelled is not None]
    sums_of_model = (sum(row) for row in zip(*map(dataclasses.astuple, modelled), strict=True))
    return Sums(
        runs=sum(p.runs for p in parts),
        run_time_s=sum(p.run_time_s for p in parts),
        core_time_s=sum(p.core_time_s for p in parts),
        residency=residency,
        mpi_share=share(residency.mpi_s, residency.total_s),
        wait_asleep_share=share(residency.wait_asleep_s, residency.wait_s),
        wait_burnt_s=sum(p.wait_burnt_s for p in parts),
        metered=_metered(m for p in parts for m in p.metered),
        modelled=Modelled(*sums_of_model) if modelled else None,
    )


def _programs(runs: list[OneRun]) -> list[Program]:
    by_name: dict[str, list[Sums]] = {}
    for run in runs:
        by_name.setdefault(run.program, []).append(run.sums)
    programs = [Program(name, _added(parts)) for name, parts in by_name.items()]
    return sorted(programs, key=lambda p: (-p.sums.core_time_s, p.program))


class _Platforms:
    """The machines of all runs."""

    def __init__(self) -> None:
        self.runs: dict[str, int] = {}
        self.assumptions: dict[str, dict[str, None]] = {}

    def add(self, report: Report) -> None:
        modelled = report.energy.modelled
        if modelled is not None:
            self.runs[modelled.platform] = self.runs.get(modelled.platform, 0) + 1
            self.assumptions.setdefault(modelled.platform, {}).update(dict.fromkeys(modelled.assumptions))

    def all(self) -> list[Platform]:
        return [Platform(name, runs, list(self.assumptions[name])) for name, runs in self.runs.items()]


def _load(path: Path, platform: str | None) -> Report:
    in_utf8(path, "rename it")
    try:
        if (path / compare.FILE).is_file():
            raise UserError(f"{path} is a comparison, which has a report of its own: fallow report {path}")
        if why := compare.unfinished(path):
            raise UserError(f"{path}: {why}")
        return analyse.load(path, platform)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None


def _when(run: OneRun) -> tuple[float, str]:
    try:
        return datetime.strptime(run.started, _STARTED).timestamp(), run.directory
    except ValueError:
        return 0.0, run.directory


def read(paths: list[Path], platform: str | None, show: Callable[[float], None]) -> Overview:
    """The overview of these runs, each but once; `show` is told the share that is done.

    UserError where none of them can be read.
    """
    runs: list[OneRun] = []
    not_read: list[NotRead] = []
    platforms = _Platforms()
    coverage: dict[str, None] = {}
    several = list({path.resolve(): path for path in paths}.values())
    for number, path in enumerate(several, 1):
        try:
            report = _load(path, platform)
        except UserError as error:
            shown = str(path).encode("utf-8", "backslashreplace").decode()
            not_read.append(NotRead(shown, " ".join(str(error).removeprefix(f"{shown}: ").split())))
        else:
            runs.append(_one(report))
            platforms.add(report)
            if report.energy.metered is not None and report.energy.metered.coverage:
                coverage[report.energy.metered.coverage] = None
        show(number / len(several))
    if not runs:
        why = "".join(f"\n  {n.directory}: {n.reason}" for n in not_read[:_REASONS])
        more = f"\n  and {len(not_read) - _REASONS} more" if len(not_read) > _REASONS else ""
        raise UserError(f"none of {text.plural(len(several), 'run')} can be reported:{why}{more}")
    runs.sort(key=_when)
    return Overview(
        schema=SCHEMA,
        version=VERSION,
        fallow_version=fallow.__version__,
        totals=_added([run.sums for run in runs]),
        programs=_programs(runs),
        runs=runs,
        platforms=platforms.all(),
        not_read=not_read,
        notes=[f"metered: {what}" for what in coverage],
    )
