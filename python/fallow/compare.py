"""Runs a command alternately with and without Fallow and compares."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import random
import select
import shlex
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from fallow import __version__, analyse, energy, environment, json_files, launch, native, rundir, runner, stats
from fallow.errors import UserError
from fallow.options import Setting

SCHEMA = "fallow-compare"
VERSION = 1
FILE = "compare.json"
DISTURBED_CORES = 0.05
"""Other load above which a run counts as disturbed."""
_LOAD_RESOLUTION_S = 0.05  # /proc/stat counts in hundredths of a second, on each core


@dataclass(frozen=True)
class Trial:
    """One run of a series."""

    number: int
    with_fallow: bool
    directory: str
    run_time_s: float
    cpu_s: float
    exit_status: int | None
    signal: int | None
    other_cores: float | None
    wait_awake_s: float | None = None
    wait_asleep_s: float | None = None
    wake_delay_share: float | None = None
    metered_j: float | None = None
    modelled_j: float | None = None
    spinning_w: float | None = None
    metered_coverage: str = ""
    note: str = ""

    @property
    def metered_js(self) -> float | None:
        """Energy times delay."""
        return None if self.metered_j is None else self.metered_j * self.run_time_s

    @property
    def modelled_js(self) -> float | None:
        """Energy times delay."""
        return None if self.modelled_j is None else self.modelled_j * self.run_time_s

    @property
    def disturbed(self) -> bool:
        """Other load took more of the machine than a quiet one has."""
        return (
            self.other_cores is not None
            and self.other_cores > DISTURBED_CORES
            and self.other_cores * self.run_time_s > _LOAD_RESOLUTION_S
        )


@dataclass(frozen=True)
class Metric:
    """One quantity, without and with Fallow."""

    name: str
    unit: str
    bare: stats.Spread | None
    fallow: stats.Spread | None
    ratio: stats.Ratio | None


@dataclass(frozen=True)
class Comparison:
    """A series and what it shows."""

    schema: str
    version: int
    fallow_version: str
    command: list[str]
    options: dict[str, str]
    directory: str
    trials: list[Trial]
    metrics: list[Metric]
    warnings: list[str]


def order(pairs: int, bare_first: bool) -> list[bool]:
    """Whether each run is with Fallow: A B, B A, A B, ... so that a drift of the machine favours neither."""
    out = []
    for pair in range(pairs):
        first = (pair % 2 == 0) != bare_first
        out += [first, not first]
    return out


_NO_INPUT = (
    "the input comes over a pipe, which only one run could read: none is given it; a file can be read anew: < FILE"
)


def _input_kind() -> int:
    """The mode of standard input, or 0 where that is closed."""
    try:
        return os.fstat(0).st_mode
    except OSError:
        return 0


def _leaves_input() -> bool:
    """Whether something waits in a pipe on standard input; nobody reads it."""
    if not stat.S_ISFIFO(_input_kind()):
        return False
    poll = select.poll()
    poll.register(0, select.POLLIN)
    return any(events & select.POLLIN for _, events in poll.poll(0))


@contextlib.contextmanager
def _streams(directory: Path, shown: bool) -> Iterator[launch.Streams]:
    """Streams of one run: what it prints goes to files unless it is shown, and each run reads its own input."""
    with contextlib.ExitStack() as stack:

        def opened(path: str | Path, flags: int) -> int:
            fd = os.open(path, flags, 0o644)
            stack.callback(os.close, fd)
            return fd

        is_file = stat.S_ISREG(_input_kind())
        stdin = opened("/proc/self/fd/0" if is_file else os.devnull, os.O_RDONLY)
        if is_file:
            os.lseek(stdin, os.lseek(0, 0, os.SEEK_CUR), os.SEEK_SET)  # what was read before is not for the command
        if shown:
            yield launch.Streams(stdin)
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        yield launch.Streams(stdin, opened(directory / "stdout.log", flags), opened(directory / "stderr.log", flags))


def _measured(ended: runner.Ended, number: int, directory: Path) -> Trial:
    info = ended.info
    run_time = info.run_time_s or 0.0
    other = None
    if info.other_busy_s is not None and info.stolen_s is not None and run_time > 0:
        other = (info.other_busy_s + info.stolen_s) / run_time
    notes: list[str] = []
    metered = energy.metered(directory, run_time, notes)
    trial = Trial(
        number=number,
        with_fallow=info.with_fallow,
        directory=directory.name,
        run_time_s=run_time,
        cpu_s=info.cpu_s or 0.0,
        exit_status=info.exit_status,
        signal=info.signal,
        other_cores=other,
        metered_j=metered.energy_j if metered else None,
        metered_coverage=metered.coverage if metered else "",
        note="; ".join(notes),
    )
    if not info.with_fallow:
        return trial
    try:
        report = analyse.load(directory)
    except UserError as error:
        return dataclasses.replace(trial, note="; ".join([*notes, str(error).removeprefix(f"{directory}: ")]))
    if any(rank.end == "running" for rank in report.ranks):
        notes.append(_RAN_ON)
    residency, modelled = report.totals.residency, report.energy.modelled
    return dataclasses.replace(
        trial,
        wait_awake_s=residency.wait_awake_s,
        wait_asleep_s=residency.wait_asleep_s,
        wake_delay_share=report.totals.wake_delay_share,
        modelled_j=modelled.energy_j if modelled else None,
        spinning_w=modelled.power_spinning_w if modelled and run_time > 0 else None,
        note="; ".join(notes),
    )


_RAN_ON = "ranks ran on after the command had ended: what they did then is in no figure, and the next run met them"

_METRICS = (
    ("run time", "s", "run_time_s"),
    ("CPU time", "s", "cpu_s"),
    ("waits awake", "s", "wait_awake_s"),
    ("waits asleep", "s", "wait_asleep_s"),
    ("energy, metered", "J", "metered_j"),
    ("energy-delay, metered", "J s", "metered_js"),
    ("energy, modelled", "J", "modelled_j"),
    ("energy-delay, modelled", "J s", "modelled_js"),
)


def model_bare(trials: list[Trial]) -> list[Trial]:
    """Gives the runs without Fallow their modelled energy.

    Nothing is recorded of what their ranks did; they are taken to do what the runs with Fallow did, with every
    wait awake: that power, for the time they took.
    """
    watts = [t.spinning_w for t in trials if t.spinning_w is not None]
    if not watts:
        return trials
    power = median(watts)
    return [t if t.with_fallow else dataclasses.replace(t, modelled_j=power * t.run_time_s) for t in trials]


def metrics(trials: list[Trial]) -> list[Metric]:
    """Medians and ratios of everything that was measured."""
    out = []
    for name, unit, attribute in _METRICS:
        sides: dict[bool, list[float]] = {False: [], True: []}
        for trial in trials:
            value = getattr(trial, attribute)
            if value is not None:
                sides[trial.with_fallow].append(value)
        if sides[False] or sides[True]:
            bare, fallow = stats.spread(sides[False]), stats.spread(sides[True])
            out.append(Metric(name, unit, bare, fallow, stats.ratio(sides[True], sides[False])))
    return out


def warnings(trials: list[Trial], wanted: int) -> list[str]:
    """What makes a comparison doubtful."""
    out = []
    if len(trials) < wanted:
        out.append(f"stopped after {len(trials)} of {wanted} runs")
    for trial in trials:
        if trial.disturbed and trial.other_cores is not None:
            out.append(f"run {trial.number}: other load took {trial.other_cores:.2f} cores meanwhile")
        if trial.note:
            out.append(f"run {trial.number}: {trial.note}")
    ends = {(t.exit_status, t.signal) for t in trials}
    both = len({t.with_fallow for t in trials}) == 2
    if len(ends) > 1:
        out.append("the runs did not all end in the same way: see exit_status and signal of each")
    elif ends and ends != {(0, None)} and both:
        out.append("the command failed with Fallow and without; a comparison of failures says little")
    if not both:
        out.append("there is nothing to compare with")
    return out


@dataclass(frozen=True)
class Series:
    """What to compare: `pairs` runs each, kept in `directory`."""

    command: list[str]
    settings: list[Setting]
    pairs: int
    directory: Path
    show_first: bool = True
    platform: str = ""


def _trial(series: Series, number: int, with_fallow: bool, say: runner.Say) -> tuple[Trial, launch.Outcome]:
    place = series.directory / f"{number:02}-{'fallow' if with_fallow else 'bare'}"
    place.mkdir()
    shown = series.show_first and number == 1
    kind = "with Fallow" if with_fallow else "without"
    say(f"run {number} of {2 * series.pairs}, {kind}" + (" (its output is shown)" if shown else ""))
    with _streams(place, shown) as streams:
        plan = runner.Plan(series.command, series.settings, with_fallow, streams, series.platform, only=False)
        try:
            ended = runner.run(plan, place, say)
        except launch.CannotStart:  # nothing ran: nothing there is to be taken for a record
            shutil.rmtree(place, ignore_errors=True)
            raise
    return _measured(ended, number, place), ended.outcome


def require_fallow() -> None:
    """Raises UserError where Fallow cannot be loaded, for then there is nothing to compare."""
    problem = environment.preload_problem(native.library(environment.PRELOAD_LIBRARY))
    if problem:
        raise UserError(f"nothing to compare: {problem}")


def run(series: Series, say: runner.Say) -> tuple[Comparison, launch.Outcome]:
    """Runs the series; returns what it shows and how the first run that failed, or else the first, ended.

    Raises launch.CannotStart.
    """
    trials: list[Trial] = []
    outcomes: list[launch.Outcome] = []
    if _leaves_input():
        say(_NO_INPUT)
    bare_first = random.random() < 0.5  # noqa: S311 - a coin, not a secret
    for number, with_fallow in enumerate(order(series.pairs, bare_first), 1):
        trial, outcome = _trial(series, number, with_fallow, say)
        trials.append(trial)
        outcomes.append(outcome)
        if outcome.interrupted or (len(outcomes) == 2 and all(o.shell_status for o in outcomes)):
            break
    counted, notes = trials, []
    if outcomes[-1].interrupted:
        counted = trials[:-1]
        notes.append(f"run {len(trials)} was interrupted; it is in none of these figures")
    if _leaves_input():
        notes.append(_NO_INPUT)
    counted = model_bare(counted)
    comparison = Comparison(
        schema=SCHEMA,
        version=VERSION,
        fallow_version=__version__,
        command=series.command,
        options={s.option.name: s.value for s in series.settings},
        directory=str(series.directory),
        trials=[*counted, *trials[len(counted) :]],
        metrics=metrics(counted),
        warnings=[*warnings(counted, 2 * series.pairs), *notes],
    )
    return comparison, next((o for o in outcomes if o.shell_status != 0), outcomes[0])


def unfinished(directory: Path) -> str:
    """What to say of the directory of a comparison that has not come to its end; empty: it is none."""
    runs = sorted(d for kind in ("bare", "fallow") for d in directory.glob(f"[0-9]*-{kind}") if d.is_dir())
    if not runs or any((directory / name).exists() for name in (FILE, rundir.RUN_FILE)):
        return ""
    text = f"a comparison that still runs, or was killed: {FILE}, which is written at its end, is not there"
    shown = [shlex.quote(str(d)) for d in runs if d.name.endswith("-fallow") and (d / rundir.RUN_FILE).exists()]
    if not shown:
        return f"{text}, nor is the record of a run with Fallow"
    more = f" (and of {len(shown) - 1} more)" if len(shown) > 1 else ""
    return f"{text}; of one run: fallow report {shown[0]}{more}"


def as_dict(comparison: Comparison) -> dict[str, Any]:
    """As plain lists and dictionaries."""
    return dataclasses.asdict(comparison)


def write(comparison: Comparison) -> None:
    """Writes compare.json."""
    rundir.write_json(Path(comparison.directory) / FILE, as_dict(comparison))


def read(directory: Path) -> Comparison:
    """Reads compare.json; UserError says what is wrong with it."""
    path = directory / FILE
    data = json_files.read(path)
    if data.get("schema") != SCHEMA or data.get("version") != VERSION:
        raise UserError(f"{path}: not in a form that this Fallow knows")
    try:
        return json_files.build(Comparison, data)
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None
