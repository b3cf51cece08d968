"""Running a command with a deadline so that nothing of it outlives the test."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TAG = "RUN_TAG_OF_TEST"  # in the environment of all that a run starts: finds processes in groups of their own too
HANGS_S = 240.0  # no program of the tests takes as long, also where many others run
_SETTLE_S = 20.0  # launchers need a moment to reap what they started


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    argv: tuple[str, ...]
    rc: int
    out: str
    err: str
    seconds: float
    timed_out: bool
    left_over: tuple[str, ...]

    def describe(self) -> str:
        """For the message of a failed assertion."""
        state = "timed out" if self.timed_out else f"exit code {self.rc}"
        return f"$ {' '.join(self.argv)}\n{state} after {self.seconds:.1f} s\n--- stdout\n{self.out[-4000:]}\n--- stderr\n{self.err[-4000:]}"


class Running:
    """A started command; `finish` waits for it, and every process it started is gone afterwards."""

    def __init__(
        self, argv: Sequence[str | Path], env: Mapping[str, str], cwd: Path, stdin: bytes | None = None
    ) -> None:
        self.argv = tuple(map(str, argv))
        self._tag = uuid.uuid4().hex
        self._stdin = stdin
        self._started = time.monotonic()
        self.process = subprocess.Popen(
            self.argv,
            env={**env, TAG: self._tag},
            cwd=cwd,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def processes(self, name: str = "") -> list[int]:
        """Living processes of this run, those whose command name starts with `name`."""
        found = []
        needle = f"{TAG}={self._tag}".encode()
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                tagged = state not in "ZX" and needle in (entry / "environ").read_bytes()
                if tagged and (entry / "comm").read_text().strip().startswith(name[:15]):
                    found.append(int(entry.name))
            except OSError:
                continue  # ended while we looked
        return sorted(found)

    def wait_for(self, condition: Callable[[], bool], seconds: float = HANGS_S) -> bool:
        """Polls until `condition` holds, the run ends or the time is up."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if condition():
                return True
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        return condition()

    def finish(self, timeout: float = HANGS_S) -> Outcome:
        """Waits for the end, kills what is left and tells how it went."""
        timed_out = False
        try:
            out, err = self.process.communicate(self._stdin, timeout=timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
            self.kill()
            out, err = self._rest()
        seconds = time.monotonic() - self._started
        self._await_none()
        left = tuple(_name_of(pid) for pid in self.processes())
        self.kill()
        return Outcome(
            self.argv,
            self.process.returncode,
            out.decode(errors="replace"),
            err.decode(errors="replace"),
            seconds,
            timed_out,
            left,
        )

    def kill(self) -> None:
        """SIGKILL to every process of this run, until there is none."""
        for _ in range(50):
            alive = self.processes()
            if not alive:
                return
            for pid in alive:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(0.02)

    def _rest(self) -> tuple[bytes, bytes]:
        try:
            return self.process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            return b"", b"(output held open by a process that could not be killed)"

    def _await_none(self) -> None:
        end = time.monotonic() + _SETTLE_S
        while self.processes() and time.monotonic() < end:
            time.sleep(0.02)


def _name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return str(pid)


def run(
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str],
    cwd: Path,
    timeout: float = HANGS_S,
    stdin: bytes | None = None,
) -> Outcome:
    """Runs `argv` to its end, or for `timeout` seconds."""
    return Running(argv, env, cwd, stdin).finish(timeout)
