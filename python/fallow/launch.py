"""Starts a command so that it cannot tell Fallow stands in between: streams, signals and status pass through."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

_FROM_TERMINAL = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP})
_ENDING = (_FROM_TERMINAL - {signal.SIGTSTP}) | {signal.SIGTERM, signal.SIGALRM, signal.SIGXCPU, signal.SIGABRT}
_OTHERS = ("USR1", "USR2", "VTALRM", "PROF", "IO", "PWR", "PIPE", "XFSZ")
FORWARDED = (
    _ENDING | {signal.Signals[f"SIG{name}"] for name in _OTHERS} | set(range(signal.SIGRTMIN, signal.SIGRTMAX + 1))
)
_WATCHED = FORWARDED | {signal.SIGCHLD, signal.SIGTSTP, signal.SIGCONT}
# Changed by the interpreter when it starts; the command gets them as a shell would have given them.
_PYTHON_CHANGED = [signal.SIGPIPE, signal.SIGXFSZ]
_SENT_BY_PROCESS = 0  # si_code of kill(2) and its kin is at most this; what the terminal sends is above


@dataclass(frozen=True)
class Outcome:
    """How a command ended: exactly one of `exit_status` and `signal` is set."""

    exit_status: int | None
    signal: int | None
    start_ns: int
    run_time_s: float
    usage: resource.struct_rusage
    interrupted: bool = False
    """The user asked for the end (SIGINT, SIGTERM or the like), whatever the command made of it."""

    @property
    def shell_status(self) -> int:
        """The status as a shell would report it."""
        return 128 + self.signal if self.signal is not None else self.exit_status or 0


@dataclass(frozen=True)
class Streams:
    """File descriptors to use in place of the launcher's own; None: the launcher's."""

    stdin: int | None = None
    stdout: int | None = None
    stderr: int | None = None

    def actions(self) -> list[tuple[int, int, int]]:
        """For posix_spawn."""
        wanted = ((self.stdin, 0), (self.stdout, 1), (self.stderr, 2))
        return [(os.POSIX_SPAWN_DUP2, fd, to) for fd, to in wanted if fd is not None]


class CannotStart(Exception):
    """The command could not be started; `status` is what a shell would exit with."""

    def __init__(self, message: str, status: int, lacks: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.lacks = lacks
        """What the system had none left of for another process; empty: the command itself is the cause."""


Mask = Set[signal.Signals | int]
"""Blocked signals; those of real time between the first and the last are numbers."""


@contextlib.contextmanager
def held_signals() -> Iterator[Mask]:
    """Blocks the signals that are to be passed on. Threads started inside inherit that, so none gets them.

    Yields the mask as it was, for the command.
    """
    previous = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    try:
        yield mask
    finally:
        # What arrived after the command had ended was meant for it.
        while signal.sigtimedwait(_WATCHED, 0) is not None:
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if previous is not None:
            signal.signal(signal.SIGCHLD, previous)


def _file(name: str, env: Mapping[str, str]) -> str:
    """The file that is started under this name, or an empty string."""
    return (name if Path(name).is_file() else "") if "/" in name else shutil.which(name, path=env.get("PATH")) or ""


def _is_binary(file: str) -> bool:
    """As shells tell what is no script, such as a program for another processor."""
    with contextlib.suppress(OSError), Path(file).open("rb") as start:
        return b"\0" in start.read(80)
    return False


def _needs(file: str) -> str:
    """What a file that cannot be started although it is there asks for."""
    with contextlib.suppress(OSError), Path(file).open("rb") as start:
        first = start.readline(256)
        if first.startswith(b"#!"):
            named = repr(first[2:].decode(errors="replace").rstrip("\n"))
            return f"the interpreter that its first line names ({named[1:-1].strip()})"
    return "the dynamic linker"


def _spawn(argv: Sequence[str], env: Mapping[str, str], mask: Mask, streams: Streams) -> int:
    def attempt(command: Sequence[str]) -> int:
        return os.posix_spawnp(
            command[0],
            list(command),
            dict(env),
            file_actions=streams.actions(),
            setsigmask=mask,
            setsigdef=_PYTHON_CHANGED,
        )

    if not argv[0]:  # a variable that is not set, in quotes: posix_spawnp takes no such name
        raise CannotStart("'': command not found", 127)
    try:
        return attempt(argv)
    except OSError as error:
        file = _file(argv[0], env)
        if error.errno == errno.ENOEXEC and not _is_binary(file):  # a script whose first line names no interpreter
            return attempt(["/bin/sh", file or argv[0], *argv[1:]])
        reason = str(error.strerror)
        if error.errno == errno.ENOENT:
            reason = f"{_needs(file)} is not there, which it needs" if file else "command not found"
        lacks = str(error.strerror) if error.errno in (errno.EAGAIN, errno.ENOMEM) else ""
        raise CannotStart(f"{argv[0]}: {reason}", 127 if error.errno == errno.ENOENT else 126, lacks) from None


def become(argv: Sequence[str], env: Mapping[str, str], mask: Mask, streams: Streams) -> NoReturn:
    """Runs a command in place of this process, as it would have run beside it; raises OSError."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    for _, fd, to in streams.actions():
        os.dup2(fd, to)
    for changed in _PYTHON_CHANGED:
        signal.signal(changed, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    os.execvpe(argv[0], list(argv), dict(env))  # noqa: S606 - the user's command, without a shell


def _tell(child: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, number)


def _stop() -> None:
    """Stops this process as SIGTSTP does by itself: not where there is no shell that could continue it."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTSTP])
    os.kill(os.getpid(), signal.SIGTSTP)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTSTP])


def _wait(child: int) -> tuple[int, resource.struct_rusage, bool]:
    interrupted = told_to_stop = False
    while True:
        info = signal.sigwaitinfo(_WATCHED)
        if info.si_signo == signal.SIGCHLD:
            pid, status, usage = os.wait4(child, os.WNOHANG)
            if pid == child:
                return status, usage, interrupted
            continue
        if info.si_pid == os.getpid() and info.si_code <= _SENT_BY_PROCESS:
            continue  # what we wrote ourselves found no reader, or no room
        interrupted = interrupted or (info.si_signo in _ENDING and signal.getsignal(info.si_signo) != signal.SIG_IGN)
        if info.si_code > _SENT_BY_PROCESS and info.si_signo in _FROM_TERMINAL:
            # A signal from the terminal reaches the whole foreground group, and so the command, by itself.
            if info.si_signo == signal.SIGTSTP:
                _stop()
        elif info.si_signo != signal.SIGCONT or told_to_stop:
            # Stopping as well, after the command, could undo a SIGCONT that came in between.
            _tell(child, info.si_signo)
            told_to_stop = info.si_signo == signal.SIGTSTP or (told_to_stop and info.si_signo != signal.SIGCONT)


def run(
    argv: Sequence[str], env: Mapping[str, str], mask: Mask, streams: Streams | None = None
) -> Outcome:
    """Runs a command to its end. Call it inside held_signals(); raises CannotStart."""
    start_ns = time.time_ns()
    start = time.monotonic()
    child = _spawn(argv, env, mask, streams or Streams())
    status, usage, interrupted = _wait(child)
    elapsed = time.monotonic() - start
    by_signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    code = os.WEXITSTATUS(status) if by_signal is None else None
    return Outcome(code, by_signal, start_ns, elapsed, usage, interrupted)


def exit_like(outcome: Outcome) -> NoReturn:
    """Ends this process as the command ended, by the same signal if it was one."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.flush()
    if outcome.signal is not None:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the command's core dump is the one that counts
            if outcome.signal != signal.SIGKILL:
                signal.signal(outcome.signal, signal.SIG_DFL)
            os.kill(os.getpid(), outcome.signal)
    os._exit(outcome.shell_status)
