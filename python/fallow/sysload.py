"""How busy the whole machine is, to tell whether other load disturbed a run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from fallow import native


@dataclass(frozen=True)
class CpuTimes:
    """CPU seconds of the whole machine since it started."""

    busy_s: float
    stolen_s: float
    throttled_s: float | None = None
    """Of control groups with a limit that this process is in: for how long they stood still, summed over processors."""


def read(root: Path = Path("/")) -> CpuTimes | None:
    """The first line of /proc/stat; None where it cannot be read."""
    try:
        fields = (root / "proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
        user, nice, system, _idle, _iowait, irq, softirq, steal = (int(x) for x in fields[1:9])
    except (OSError, ValueError):
        return None
    tick = os.sysconf("SC_CLK_TCK")
    return CpuTimes((user + nice + system + irq + softirq) / tick, steal / tick, _quota(root)[1])


def _quota(root: Path) -> tuple[float | None, float | None]:
    module = native.load()
    return (None, None) if module is None else module.cpu_quota(root)


def processor_limit(root: Path = Path("/")) -> float | None:
    """Processors whose time this process's control groups and those above them let it have; None: there is no limit."""
    return _quota(root)[0]
