"""Energy of a run: what meters counted, and what the platform model computes. The two never mix."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fallow import rundir, sampling
from fallow.model import Energy, Metered, MeterEnergy, Modelled, RankReport, Run


def _meter(data: dict[str, Any]) -> MeterEnergy | None:
    samples = data["samples"]
    if len(samples) < 2:
        return None
    (start_ns, start_j), (end_ns, end_j) = samples[0], samples[-1]
    time_s = (end_ns - start_ns) * 1e-9
    energy_j = float(end_j - start_j)
    return MeterEnergy(data["name"], energy_j, energy_j / time_s if time_s > 0 else 0.0, time_s, data["lost"])


def read_meters(directory: Path, notes: list[str]) -> list[MeterEnergy]:
    """What is in meters.json; what is wrong with it goes to the notes."""
    path = directory / rundir.METERS_FILE
    if not path.exists():
        return []
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["schema"] != sampling.SCHEMA or data["version"] != sampling.VERSION:
            notes.append(f"{path.name}: not in a form that this Fallow knows")
            return []
        read = [_meter(meter) for meter in data["meters"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        notes.append(f"{path.name}: {type(error).__name__}: {error}")
        return []
    return [meter for meter in read if meter is not None]


def metered(directory: Path, run_time_s: float, notes: list[str]) -> Metered | None:
    """What the meters of a run counted; None where there were none."""
    meters = read_meters(directory, notes)
    if not meters:
        return None
    counted = [m for m in meters if m.lost is None and _is_whole_part(m.name)]
    total = sum(m.energy_j for m in counted) if counted else None
    delay = None if total is None else total * run_time_s
    return Metered(list(meters), total, delay, [m.name for m in counted])


def _is_whole_part(name: str) -> bool:
    """True for meters that do not overlap each other: packages and memory, not their sub-domains."""
    return any(word in name for word in ("package", "dram"))


def _modelled(run: Run, ranks: Sequence[RankReport]) -> Modelled | None:
    return None


def build(directory: Path, run: Run, ranks: Sequence[RankReport], notes: list[str]) -> Energy:
    """Both kinds, as far as there are meters and a model."""
    return Energy(metered(directory, run.run_time_s, notes), _modelled(run, ranks))


def modelled_bare(run_time_s: float, cpu_s: float) -> float | None:
    """Energy by the model of a run without Fallow, of which only run time and CPU time are known."""
    return None
