"""How busy the whole machine is, to tell whether other load disturbed a run."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class CpuTimes:
    """CPU seconds of the whole machine since it started."""

    busy_s: float
    stolen_s: float


def read(root: Path = Path("/")) -> CpuTimes | None:
    """The first line of /proc/stat; None where it cannot be read."""
    try:
        fields = (root / "proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
        user, nice, system, _idle, _iowait, irq, softirq, steal = (int(x) for x in fields[1:9])
    except (OSError, ValueError):
        return None
    tick = os.sysconf("SC_CLK_TCK")
    return CpuTimes((user + nice + system + irq + softirq) / tick, steal / tick)


def _share(group: Path) -> float | None:
    """Processors whose time a control group may take (cgroup v2, else v1); None: as many as there are."""
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        quota, period = (group / "cpu.max").read_text(encoding="ascii").split()
        return None if quota == "max" else int(quota) / int(period)
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        quota, period = ((group / f"cpu.cfs_{of}_us").read_text(encoding="ascii") for of in ("quota", "period"))
        return int(quota) / int(period) if int(quota) > 0 else None
    return None


def processor_limit(root: Path = Path("/")) -> float | None:
    """The least of the limits that this process's control groups and those above them set; None: there is none."""
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    shares = []
    for fields in (line.split(":", 2) for line in lines):
        if len(fields) < 3 or (fields[1] and "cpu" not in fields[1].split(",")):
            continue
        kinds, path = fields[1:]
        for mounted in ("cpu", "cpu,cpuacct") if kinds else ("", "unified"):
            top = root / "sys/fs/cgroup" / mounted
            below = Path() if ".." in path else Path(path.lstrip("/"))  # seen from inside a container
            shares += [_share(top / group) for group in (below, *below.parents)]
    return min((share for share in shares if share is not None), default=None)
