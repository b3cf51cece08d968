"""The command `fallow`: parses, calls the library, prints."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import errno
import importlib
import io
import itertools
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from fallow import __version__, native
from fallow.errors import UserError, reason
from fallow.help_text import HelpFormatter

_COMMANDS = ("run", "report", "doctor", "config", "trace", "predict", "sim", "synth", "sweep", "reproduce")
_ALIKE = 0.6  # the least likeness of what was typed to what may have been meant
_DESCRIPTION = "Makes MPI programs use less energy without changing them."
_EPILOG = """\
examples:
  fallow run -- mpirun -n 4 ./app            run under Fallow, get a short summary and a record
  fallow run --compare 5 -- mpirun -n 4 ./app
                                             with and without, 5 times each, alternating
  fallow report                              the newest record here, in the terminal
  fallow report RUN --html                   one page with everything, opens without a network
  fallow report RUN RUN2                     two runs side by side
  fallow sim run.ftr --platform minotauro    a recorded program on a modelled machine
  fallow doctor                              meters, controls and MPIs found on this machine

Any launcher will do: mpirun, mpiexec, srun, a script, or the program itself.
`fallow COMMAND --help` explains each command."""


def parser(argv: Sequence[str] = ()) -> argparse.ArgumentParser:
    """The command line; where `argv` names a command, of that one only: to load the others too takes long."""
    top = argparse.ArgumentParser(
        prog="fallow", description=_DESCRIPTION, epilog=_EPILOG, formatter_class=HelpFormatter
    )
    top.add_argument("--version", action="version", version=f"fallow {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", dest="subcommand", required=True)
    named = next((word for word in argv if not word.startswith("-")), "")
    for name in [named] if named in _COMMANDS else _COMMANDS:
        importlib.import_module(f"fallow.cli_{name}").add_parser(commands)
    return top


def _split(argv: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """What is Fallow's and what follows the first -- of `run`; other commands take -- as all programs do."""
    if "--" not in argv or argv[0] != "run":
        return list(argv), None
    at = list(argv).index("--")
    return list(argv[:at]), list(argv[at + 1 :])


def _open_streams() -> None:
    """What is written to a stream that was closed is lost; characters that a stream cannot show become codes."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - open to the end
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _give_up_output() -> None:
    """What standard output does not take is lost; the interpreter is not to try again at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _place(error: OSError) -> str:
    """What failed: calls that write name no file."""
    writing = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
    return error.filename or ("standard output" if writing else "cannot go on")


def _parse(ours: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    try:
        arguments, unknown = parser(ours).parse_known_args(ours)
    except SystemExit:  # after help or the version, of which argparse does not mind whether anybody can read it
        sys.stdout.flush()
        raise
    if arguments.subcommand == "report" and all(word.strip() and word[0] != "-" for word in unknown):
        arguments.runs += map(Path, unknown)  # argparse takes those before the first option only
        unknown = []
    return arguments, unknown


@contextlib.contextmanager
def _cleared_up() -> Iterator[list[int]]:
    """What ends a command by default, as batch systems do, is an interrupt within: nothing half-written is left.

    Yields the signals that came; a second one ends the command at once.
    """
    came: list[int] = []

    def interrupt(number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        came.append(number)
        raise KeyboardInterrupt

    heard = [signal.SIGTERM, signal.SIGHUP] if threading.current_thread() is threading.main_thread() else []
    ours = [number for number in heard if signal.getsignal(number) == signal.SIG_DFL]
    try:
        for number in ours:
            signal.signal(number, interrupt)
        yield came
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _act(arguments: argparse.Namespace) -> int:
    """The command's action; `run` hands signals on by itself."""
    act: Callable[[argparse.Namespace], int] = arguments.action
    if arguments.subcommand == "run":
        return act(arguments)
    with _cleared_up() as came:
        try:
            return act(arguments)
        except KeyboardInterrupt:
            if not came:
                raise
            return 128 + came[0]


def _meant(ours: Sequence[str], unknown: str) -> str:
    """"; did you mean --X?", of the options that the command's help names; "" where none is alike."""
    leading = itertools.takewhile(lambda word: not word.startswith("-"), ours)
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
        parser(ours).parse_args([*leading, "--help"])
    known = sorted(set(re.findall(r"--[a-z][a-z-]*", text.getvalue())))
    close = difflib.get_close_matches(unknown.partition("=")[0], known, 1, _ALIKE)
    return f"; did you mean {close[0]}?" if close else ""


def _unknown(ours: Sequence[str], name: str, words: list[str], command: list[str] | None) -> NoReturn:
    """UserError for options that there are not; where the part that knows them is missing, the command runs."""
    problem = native.module_problem() if name == "run" else ""
    if problem and command and not any(word.startswith("--compare") for word in ours):
        sys.exit(importlib.import_module("fallow.cli_run").run_bare(command, problem))
    meant = _meant(ours, words[0]) or f"; 'fallow {name} --help' lists what it takes"
    raise UserError(problem or f"{name} does not know {' '.join(words)}{meant}")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    _open_streams()
    ours, command = _split(sys.argv[1:] if argv is None else argv)
    try:
        arguments, unknown = _parse(ours)
        if unknown:
            _unknown(ours, arguments.subcommand, unknown, command)
        if command is not None:
            begun = getattr(arguments, "command", [])  # without a -- of ours before it: the first one is its own
            arguments.command = [*begun, "--", *command] if begun else command
        status = _act(arguments)
        sys.stdout.flush()
    except UserError as error:
        print(f"fallow: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        _give_up_output()
        return 0
    except OSError as error:  # a full disk under the output, or a working directory that is gone
        _give_up_output()
        print(f"fallow: {_place(error)}: {error.strerror or error}", file=sys.stderr)
        return 2
    except MemoryError as error:
        print(f"fallow: {reason(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return status
