"""Runs a command once, with or without Fallow, and keeps the record. Whatever fails here, the command runs."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fallow import __version__, environment, launch, native, ranks, rundir, sampling, sysload
from fallow.errors import reason
from fallow.options import Setting
from fallow.traces import parts

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where shm_open puts segments, not a temporary file
_LAST_WORDS_S = 2.0
"""How long ranks are waited for that outlive a launcher which failed."""


@dataclass(frozen=True)
class Plan:
    """What to run and how."""

    command: list[str]
    settings: list[Setting]
    with_fallow: bool = True
    streams: launch.Streams = field(default_factory=launch.Streams)
    platform: str = ""
    trace: parts.Target | None = None
    only: bool = True
    """Nothing follows this run: where no process is to be had, the command may take this one's place."""


@dataclass(frozen=True)
class Ended:
    """A command that ended, and its record, which may not be on disk."""

    outcome: launch.Outcome
    info: rundir.RunInfo
    directory: Path | None


Say = Callable[[str], None]
"""Takes one line for the user."""


def _first_info(plan: Plan, run_id: str, with_fallow: bool) -> rundir.RunInfo:
    now = time.time_ns()
    return rundir.RunInfo(
        command=plan.command,
        run_id=run_id,
        with_fallow=with_fallow,
        cwd=rundir.working_directory(),
        host=platform.node(),
        kernel=platform.release(),
        fallow_version=__version__,
        python_version=platform.python_version(),
        started=time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(now / 1e9)),
        start_ns=now,
        platform=plan.platform,
        options={s.option.name: s.value for s in plan.settings} if with_fallow else {},
        option_sources={s.option.name: s.source for s in plan.settings} if with_fallow else {},
    )


def _last_info(
    first: rundir.RunInfo, outcome: launch.Outcome, load: tuple[sysload.CpuTimes | None, sysload.CpuTimes | None]
) -> rundir.RunInfo:
    usage = outcome.usage
    other = stolen = throttled = None
    before, after = load
    if before is not None and after is not None:
        other = max(0.0, after.busy_s - before.busy_s - usage.ru_utime - usage.ru_stime)
        stolen = max(0.0, after.stolen_s - before.stolen_s)
        if before.throttled_s is not None and after.throttled_s is not None:
            throttled = max(0.0, after.throttled_s - before.throttled_s)
    return dataclasses.replace(
        first,
        start_ns=outcome.start_ns,
        run_time_s=outcome.run_time_s,
        exit_status=outcome.exit_status,
        signal=outcome.signal,
        cpu_user_s=usage.ru_utime,
        cpu_system_s=usage.ru_stime,
        max_rss_bytes=usage.ru_maxrss * 1024,
        switches_voluntary=usage.ru_nvcsw,
        switches_involuntary=usage.ru_nivcsw,
        other_busy_s=other,
        stolen_s=stolen,
        throttled_s=throttled,
        processor_limit=sysload.processor_limit(),
    )


def _once(say: Say) -> Say:
    """Says the first line and keeps the others to itself: one cause, one line."""
    said: list[str] = []

    def tell(line: str) -> None:
        if not said:
            say(line)
        said.append(line)

    return tell


@contextlib.contextmanager
def _or_say(say: Say, what: str) -> Iterator[None]:
    """A failure of ours becomes one line."""
    try:
        yield
    except Exception as error:  # the command's outcome must not hang on our defects
        say(f"{what}: {reason(error)}")


def remove_shared_memory(run_id: str, root: Path = _SHARED_MEMORY) -> int:
    """Removes what killed ranks of this run left in shared memory on this node; returns how many."""
    removed = 0
    with contextlib.suppress(OSError):
        for path in list(root.glob(f"fallow-{run_id}*")):
            with contextlib.suppress(OSError):
                path.unlink()
                removed += 1
    return removed


def _environment(plan: Plan, info: rundir.RunInfo, directory: Path | None, say: Say) -> Mapping[str, str]:
    base = environment.given()
    if not plan.with_fallow:
        return environment.bare(base)
    if not info.with_fallow or directory is None:
        return base
    library = native.library(environment.PRELOAD_LIBRARY)
    if library is None:
        return base
    with _or_say(say, "running without Fallow"):
        return environment.build(
            base,
            command=plan.command,
            library=library,
            run_dir=directory,
            run_id=info.run_id,
            settings=plan.settings,
        )
    return base


def _launch(plan: Plan, env: Mapping[str, str], mask: launch.Mask, say: Say) -> launch.Outcome:
    try:
        return launch.run(plan.command, env, mask, plan.streams)
    except launch.CannotStart as error:
        if not plan.only or not error.lacks:
            raise
        say(f"no process for the command ({error.lacks}): it takes Fallow's place, and the record will lack its end")
        with contextlib.suppress(OSError):
            launch.become(plan.command, env, mask, plan.streams)
        raise


def run(plan: Plan, directory: Path | None, say: Say) -> Ended:
    """Runs the command and keeps its record in `directory`; None: it runs without Fallow and without a record.

    Raises launch.CannotStart, and nothing else.
    """
    with_fallow = plan.with_fallow and directory is not None
    problem = environment.preload_problem(native.library(environment.PRELOAD_LIBRARY))
    if with_fallow and problem:
        say(f"running without Fallow: {problem}")
        with_fallow = False
    info = _first_info(plan, rundir.new_run_id(), with_fallow)
    env = _environment(plan, info, directory, say)
    failures: list[str] = []

    def note(line: str) -> None:
        failures.append(line)
        say(line)

    write_failed = _once(note)
    if directory is not None:
        with _or_say(write_failed, f"cannot write to {directory}"):
            rundir.write_run(directory, info)
            rundir.keep_machine(directory)
        with contextlib.suppress(OSError):  # what it would say is told nowhere else, but nobody's run hangs on it
            rundir.tell_outer(os.environ.get("FALLOW_DIR", ""), directory)
    if failures and with_fallow:
        env = environment.without_record(env)  # the ranks need not try, and say so, again
    with launch.held_signals() as mask:
        sampler = sampling.SamplingThread().start(say) if directory is not None else None
        before = sysload.read()
        began_ns = time.monotonic_ns()
        try:
            outcome = _launch(plan, env, mask, say)
        finally:
            ended_ns = time.monotonic_ns()
            after = sysload.read()
            meters = sampler.stop((began_ns, ended_ns), say) if sampler is not None else None
    info = _last_info(info, outcome, (before, after))
    if info.with_fallow and directory is not None:
        if outcome.exit_status != 0:
            ranks.wait_for_ends(directory, _LAST_WORDS_S)
        remove_shared_memory(info.run_id)
        if plan.trace is not None:
            with _or_say(say, "the trace's parts are left as they are"):
                parts.collect(plan.trace, say)
    if directory is not None:
        with _or_say(write_failed, f"cannot write the record to {directory}"):
            rundir.write_run(directory, info)
            if meters is not None:
                rundir.write_json(directory / rundir.METERS_FILE, meters)
    return Ended(outcome, info, directory)
