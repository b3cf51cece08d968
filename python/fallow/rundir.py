"""The run directory: what `fallow run` writes there and what the reports read."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import secrets
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fallow import json_files
from fallow.errors import UserError
from fallow.native import in_utf8

RUN_FILE = "run.json"
METERS_FILE = "meters.json"
MACHINE_DIR = "machine"
"""A copy of the few files under / that the platform model reads."""

INNER_FILE = "inner-runs"
"""The records of runs that the command of this one made with `fallow run`, a line each."""

SCHEMA = "fallow-run"
VERSION = 1


@dataclass(frozen=True)
class RunInfo:
    """What is known of one run of a command; `run_time_s` is None while it runs or if Fallow was killed."""

    command: list[str]
    run_id: str
    with_fallow: bool
    cwd: str
    host: str
    kernel: str
    fallow_version: str
    python_version: str
    started: str
    start_ns: int
    run_time_s: float | None = None
    exit_status: int | None = None
    signal: int | None = None
    cpu_user_s: float | None = None
    cpu_system_s: float | None = None
    max_rss_bytes: int | None = None
    switches_voluntary: int | None = None
    switches_involuntary: int | None = None
    other_busy_s: float | None = None
    stolen_s: float | None = None
    throttled_s: float | None = None
    processor_limit: float | None = None
    platform: str = ""
    options: dict[str, str] = field(default_factory=dict)
    option_sources: dict[str, str] = field(default_factory=dict)

    @property
    def cpu_s(self) -> float | None:
        """CPU seconds of the command and all its descendants that were waited for."""
        if self.cpu_user_s is None or self.cpu_system_s is None:
            return None
        return self.cpu_user_s + self.cpu_system_s


def working_directory() -> str:
    """Where we are, or an empty string if that directory has been removed: a command runs there nevertheless."""
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def new_run_id() -> str:
    """A name that no other run on this machine has; ranks name their shared memory after it."""
    return f"{os.getpid():x}-{secrets.token_hex(4)}"


_claimed: list[int] = []
"""Descriptors that hold the locks of _claim() until this process ends."""


def _claim(path: Path) -> bool:
    """Whether the directory is ours: two runs that start at the same time both find it empty."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(directory)
        return False
    except OSError:  # a file system without locks
        os.close(directory)
        return True
    _claimed.append(directory)
    return True


def create(out: Path | None, now: time.struct_time | None = None) -> Path:
    """Makes the run directory and returns its absolute path; OSError where that cannot be done."""
    if out is not None:
        in_utf8(out, "take another")
        path = out.absolute()
        path.mkdir(parents=True, exist_ok=True)
        if not _claim(path):
            raise UserError(f"{out} is in use by another run; a run needs a directory of its own")
        if any(path.iterdir()):
            raise UserError(f"{out} is not empty; a run needs a directory of its own")
        return path
    stem = Path.cwd() / time.strftime("fallow-run-%Y%m%d-%H%M%S", now or time.localtime())
    for attempt in range(1, 1000):
        path = stem if attempt == 1 else stem.with_name(f"{stem.name}-{attempt}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise OSError(f"no free name for {stem}")


def discard(directory: Path, out: Path | None) -> None:
    """Takes back what create() and the start of a run made, where nothing ran; a directory that was named stays."""
    for name in (RUN_FILE, METERS_FILE):
        (directory / name).unlink(missing_ok=True)
    shutil.rmtree(directory / MACHINE_DIR, ignore_errors=True)
    if out is None:
        directory.rmdir()


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Writes a file whole or not at all."""
    partial = path.with_name(path.name + ".part")
    try:
        partial.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        partial.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise


def keep_machine(directory: Path, root: Path = Path("/")) -> None:
    """Keeps what the platform model reads of this machine, so that a report made elsewhere models this one."""
    target = directory / MACHINE_DIR / "proc"
    target.mkdir(parents=True)
    (target / "cpuinfo").write_bytes((root / "proc/cpuinfo").read_bytes())


def tell_outer(outer: str, directory: Path) -> None:
    """Leaves in the record of a run around this one where its programs' record is."""
    if outer and (Path(outer) / RUN_FILE).exists() and Path(outer) != directory:
        with (Path(outer) / INNER_FILE).open("ab") as file:
            file.write(os.fsencode(directory) + b"\n")


def inner(directory: Path) -> list[str]:
    """What tell_outer() left there."""
    try:
        return (directory / INNER_FILE).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def write_run(directory: Path, info: RunInfo) -> None:
    """Writes run.json."""
    write_json(directory / RUN_FILE, {"schema": SCHEMA, "version": VERSION, **dataclasses.asdict(info)})


def read_run(directory: Path) -> RunInfo:
    """Reads run.json; UserError says what is wrong with it."""
    path = directory / RUN_FILE
    data = json_files.read(path)
    if data.get("schema") != SCHEMA:
        raise UserError(f"{path}: not the record of a Fallow run")
    if data.get("version") != VERSION:
        raise UserError(f"{path}: version {data.get('version')}, this Fallow knows {VERSION}")
    try:
        return json_files.build(RunInfo, data)
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None
