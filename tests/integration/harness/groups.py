"""Control groups that limit the time of processors. Needs root, and a kernel that lets groups be made here."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_PERIOD_US = 100_000  # the kernel's default
_ROOT = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Group:
    """A control group, by its folder."""

    folder: Path

    def inside(self, argv: Sequence[str | Path]) -> list[str]:
        """The command line that runs `argv` in it."""
        return ["sh", "-c", 'echo $$ > "$0/cgroup.procs"; exec "$@"', str(self.folder), *map(str, argv)]

    def throttled(self) -> bool:
        """Whether it has ever stood still for its limit."""
        fields = dict(line.split() for line in (self.folder / "cpu.stat").read_text().splitlines())
        return int(fields["nr_throttled"]) > 0


def _limit(folder: Path, processors: float) -> None:
    quota = round(processors * _PERIOD_US)
    if (folder / "cpu.cfs_quota_us").exists():
        (folder / "cpu.cfs_quota_us").write_text(str(quota))
    else:
        (folder / "cpu.max").write_text(f"{quota} {_PERIOD_US}")


@contextlib.contextmanager
def limited(processors: float) -> Iterator[Group]:
    """A group with the time of so many processors. OSError where none can be made."""
    top = _ROOT / "cpu" if (_ROOT / "cpu/cgroup.procs").exists() else _ROOT
    folder = top / f"fallow-test-{os.getpid()}-{time.monotonic_ns()}"
    folder.mkdir()
    try:
        _limit(folder, processors)
        yield Group(folder)
    finally:
        for _ in range(100):  # processes that have ended leave it a little later
            with contextlib.suppress(OSError):
                folder.rmdir()
                break
            time.sleep(0.05)
