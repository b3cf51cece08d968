"""`fallow run`: runs a command under Fallow."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from fallow import cli_config, environment, launch, options, rundir, runner
from fallow.errors import UserError, reason
from fallow.help_text import HelpFormatter
from fallow.quantities import named_path, whole
from fallow.text import Style
from fallow.traces import parts

_EPILOG = """\
The command's input, output, signals and exit status are its own; Fallow writes a few lines to stderr at the end.
If anything of Fallow's fails, the command runs as without it.

examples:
  fallow run -- mpirun -n 4 ./app input.txt
  fallow run --slowdown 2% -- srun -n 64 ./app
  fallow run --compare 5 -- mpirun -n 4 ./app
  fallow run --out runs/first --mode sleep -- ./job.sh
  fallow run --config fallow.toml -- mpirun -n 4 ./app
  fallow run --trace traces/app -- mpirun -n 16 ./app
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command, with a flag for every option of the table."""
    p = commands.add_parser(
        "run",
        help="run a command under Fallow",
        description="Runs a command, any launcher or program, with its waits made to rest.",
        usage="fallow run [options] -- COMMAND [ARGUMENT ...]",
        epilog=_EPILOG,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    p.add_argument("--out", type=named_path, metavar="DIR", help="run directory (default: fallow-run-DATE-TIME here)")
    p.add_argument("--config", type=named_path, metavar="FILE", help="options from a TOML file (fallow config --toml)")
    p.add_argument(
        "--platform", default="", metavar="NAME",
        help="machine to model energy on: a name or a TOML file (default: the machine found, at a server's watts)",
    )  # fmt: skip
    p.add_argument(
        "--compare",
        type=whole(1, 9999),
        metavar="N",
        help="run N times without and N times with Fallow, alternating; each reads its input anew, if that is a file",
    )
    p.add_argument("--json", action="store_true", help="with --compare: print the comparison as JSON")
    p.add_argument("--quiet", "-q", action="store_true", help="no summary at the end")
    group = p.add_argument_group("options for the runtime (see fallow config)")
    for option in options.user_table():
        _add_flag(group, option)
    p.add_argument("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    p.set_defaults(action=_run)


def _add_flag(group: argparse._ArgumentGroup, option: options.Option) -> None:
    default = {"0": "no", "1": "yes"}[option.default] if option.type == "flag" else option.default or "none"
    text = f"{option.help} [{default}]".replace("%", "%%")
    if option.type == "flag":
        group.add_argument(option.flag, action=argparse.BooleanOptionalAction, help=text, dest=f"opt_{option.name}")
    else:
        values = cli_config.accepts(option).replace(" to ", "..").replace(" or ", "|")
        group.add_argument(option.flag, metavar=values, help=text, dest=f"opt_{option.name}")


def _flags(arguments: argparse.Namespace) -> dict[str, str]:
    out = {}
    for option in options.user_table():
        value = getattr(arguments, f"opt_{option.name}", None)
        if value is not None:
            out[option.name] = ("1" if value else "0") if isinstance(value, bool) else value
    return out


def say(line: str) -> None:
    """One line of ours, on stderr; a closed stderr is no reason to fail."""
    if sys.stderr is None:
        return
    with contextlib.suppress(OSError):
        print(f"fallow: {line}", file=sys.stderr, flush=True)


def make_directory(out: Path | None, tell: Callable[[str], None]) -> Path | None:
    """The run directory, or None (said once) where there can be none."""
    try:
        return rundir.create(out)
    except OSError as error:
        where = out or rundir.working_directory() or "the working directory, which has been removed"
        tell(f"running without Fallow: cannot make a run directory in {where}: {error.strerror or error}")
        return None


def settings_of(arguments: argparse.Namespace) -> list[options.Setting]:
    """Every option's value; UserError for what the user typed wrong, a line for the environment."""
    file = options.read_file(arguments.config) if arguments.config is not None else {}
    settings, problems = options.resolve(_flags(arguments), os.environ, file)
    for problem in problems:
        say(problem)
    return settings


def _quiet(_line: str) -> None:
    """Says nothing."""


def _shown(directory: Path) -> str:
    """A directory as the user would type it here."""
    here = rundir.working_directory()
    return shlex.quote(str(directory.relative_to(here) if here and directory.is_relative_to(here) else directory))


def _summary(ended: runner.Ended) -> None:
    if not ended.info.with_fallow or ended.directory is None or sys.stderr is None:
        return
    if not (ended.directory / rundir.RUN_FILE).exists():  # it could not be written, which was said
        return
    from fallow import analyse, report_text

    style = Style.of(sys.stderr)
    try:
        report = analyse.load(ended.directory)
    except UserError as error:
        say(str(error).removeprefix(f"{ended.directory}: "))
        return
    say(style.paint("what this run did", "bold"))
    for line in (*report_text.headline(report, style), *report_text.warnings(report, style)):
        print(line, file=sys.stderr)
    shown = _shown(ended.directory)
    print(f"  more: fallow report {shown}   or: fallow report {shown} --html", file=sys.stderr, flush=True)


def _compare(arguments: argparse.Namespace, settings: list[options.Setting]) -> int:
    from fallow import compare, compare_text

    compare.require_fallow()
    try:
        directory = rundir.create(arguments.out)
    except OSError as error:  # nothing to run for: the measurements would be lost
        raise UserError(f"cannot make a directory for the comparison: {error.strerror or error}") from None
    tell = _quiet if arguments.quiet else say
    try:
        series = compare.Series(
            arguments.command, settings, arguments.compare, directory, not arguments.json, arguments.platform
        )
        result, worst = compare.run(series, tell)
    except launch.CannotStart as error:
        _tidy(directory, arguments.out, None)
        say(str(error))
        return error.status
    except OSError as error:
        raise UserError(f"cannot write to {directory}: {error.strerror}") from None
    more = f"{_shown(directory)}/{compare.FILE}, and "
    try:
        compare.write(result)
    except OSError as error:
        say(f"cannot keep the comparison: {directory / compare.FILE}: {error.strerror}")
        more = ""
    if arguments.json:
        print(json.dumps(compare.as_dict(result), indent=1))
    else:
        for line in compare_text.lines(result, Style.of(sys.stdout)):
            print(line)
        print(f"  more: {more}fallow report on each run in {_shown(directory)}")
        if more:
            print(f"  a page: fallow report {_shown(directory)} --html")
    return worst.shell_status


def _of_a_run_around(trace: options.Setting) -> bool:
    """Whether a `fallow run` around this one records, and makes one file each of what the ranks of all leave it."""
    return trace.source == "environment" and "FALLOW_RUN_ID" in os.environ


Tracing = tuple[list[options.Setting], parts.Target | None]
"""The settings, with the directory in which the ranks are to put their parts of a trace, and where that goes."""


def _tracing_into(settings: list[options.Setting], place: str) -> list[options.Setting]:
    return [dataclasses.replace(s, value=place) if s.option.name == "trace" else s for s in settings]


def _no_trace(settings: list[options.Setting], place: Path, error: OSError) -> Tracing:
    say(f"no trace will be recorded: cannot make {place}: {error.strerror or error}")
    return _tracing_into(settings, ""), None


def _trace_target(settings: list[options.Setting]) -> Tracing:
    """Makes nothing yet: what is refused leaves nothing, and a run directory around the trace has to be empty."""
    setting = next((s for s in settings if s.option.name == "trace"), None)
    if setting is None or not setting.value or _of_a_run_around(setting):
        return settings, None
    try:
        target = parts.plan(Path(setting.value))
    except OSError as error:
        return _no_trace(settings, Path(setting.value), error)
    return _tracing_into(settings, str(target.directory)), target


def _room_for(trace: parts.Target, settings: list[options.Setting]) -> Tracing:
    """Makes the directory for the parts."""
    try:
        trace.make()
    except OSError as error:
        return _no_trace(settings, trace.file if trace.temporary else trace.directory, error)
    return settings, trace


def _tidy(directory: Path | None, out: Path | None, trace: parts.Target | None) -> None:
    """Nothing ran: no record is to be found later and taken for one of a run."""
    with contextlib.suppress(OSError):  # as where runs of a comparison came before
        if directory is not None:
            rundir.discard(directory, out)
    with contextlib.suppress(OSError):
        if trace is not None and trace.temporary:
            trace.directory.rmdir()


def run_bare(command: list[str], problem: str) -> int:
    """Runs a command without Fallow, and without a record; says why."""
    say(f"running without Fallow: {problem}")
    try:
        with launch.held_signals() as mask:
            outcome = launch.run(command, environment.bare(environment.given()), mask)
    except launch.CannotStart as error:
        say(str(error))
        return error.status
    return launch.exit_like(outcome)


def _run(arguments: argparse.Namespace) -> int:
    if not arguments.command:
        raise UserError("no command to run; try: fallow run -- mpirun -n 4 ./app")
    settings = settings_of(arguments)
    if arguments.platform:
        from fallow import energy

        energy.platform(arguments.platform, None)  # a name that cannot be used is told now, not after the run
        if "/" in arguments.platform or arguments.platform.endswith(".toml"):  # a file
            arguments.platform = str(Path(arguments.platform).absolute())
    if arguments.compare is not None:
        if any(s.option.name == "trace" and s.value and not _of_a_run_around(s) for s in settings):
            raise UserError("--trace records one run; leave out --compare")
        return _compare(arguments, settings)
    if arguments.json:
        raise UserError("--json goes with --compare; for one run: fallow report RUN --json")
    settings, trace = _trace_target(settings)
    directory = make_directory(arguments.out, say)
    if trace is not None and directory is not None:  # without a run directory the ranks record nothing
        settings, trace = _room_for(trace, settings)
    try:
        plan = runner.Plan(arguments.command, settings, platform=arguments.platform, trace=trace)
        ended = runner.run(plan, directory, say)
    except launch.CannotStart as error:
        _tidy(directory, arguments.out, trace)
        say(str(error))
        return error.status
    if not arguments.quiet:
        try:
            _summary(ended)
        except Exception as error:  # the command's exit status must not hang on our report
            say(f"no summary: {reason(error)}")
    return launch.exit_like(ended.outcome)
