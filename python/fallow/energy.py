"""Energy of a run: what meters counted, and what the platform model computes. The two never mix."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fallow import json_files, native, rundir, sampling, text
from fallow.errors import UserError
from fallow.model import Energy, Metered, MeterEnergy, Modelled, RankReport, Run
from fallow.ranks import Span, at_once

if TYPE_CHECKING:
    from fallow import _native

_CORE_PARTS = ("computing", "transfer", "wait_awake", "wait_asleep", "io", "unaccounted", "unused_cores")
_SIMULATED = ("link", "network", "message", "storage")
_USED = {"core": ("compute_w", "spin_w", "sleep_w"), "nic": ("idle_w", "active_w"), "switch": ("share_w",)}
"""Of these tables of a platform file, the values from which the energy of a run is modelled."""
_CORE_HAD = 0.8
"""Of the time that ranks were awake: who had less of it on a core was not as the model takes them to be."""
_NODE_PARTS = ("memory", "nic", "base", "switch_share")
_ENDS = 2
"""Readings that it takes to know an energy."""
_NOTHING_S = 1.0
"""Whatever is counted uses energy within that: even idle memory, some joules."""
_OUTSIDE = 0.05
"""Of the command's time: so much longer between the first reading and the last is told."""


@dataclass(frozen=True)
class _Sample:
    at_ns: int
    energy_j: dict[str, float]


@dataclass(frozen=True)
class _Domain:
    name: str
    kind: str


@dataclass(frozen=True)
class _Meter:
    """As sampling.Sampler.told() tells of it."""

    name: str
    measures: str
    domains: list[_Domain]
    off: dict[str, str]
    lost_intervals: dict[str, int]
    samples: list[_Sample]


def _meters(data: dict[str, Any]) -> list[_Meter]:
    """Checked: what is written to a shared file system may be cut or damaged."""
    named = [m | {"samples": [{"at_ns": at, "energy_j": of} for at, of in m["samples"]]} for m in data["meters"]]
    return [json_files.build(_Meter, meter, f"meters[{i}]") for i, meter in enumerate(named)]


def _at(seen: Sequence[tuple[int, float]], at_ns: int) -> tuple[int, float]:
    """What was counted by then: linear between two readings, and no earlier or later than these."""
    after = bisect_right(seen, at_ns, key=lambda reading: reading[0])
    if after in (0, len(seen)):
        return seen[min(after, len(seen) - 1)]
    (low_ns, low_j), (high_ns, high_j) = seen[after - 1 : after + 1]
    return at_ns, low_j + (high_j - low_j) * ((at_ns - low_ns) / (high_ns - low_ns))


def _outside(meter: _Meter, command_ns: tuple[int, int]) -> list[str]:
    """That a meter was read clearly before or after the command, whose energy is a part of what it counted then."""
    if len(meter.samples) < _ENDS:
        return []
    before_s = max(0, command_ns[0] - meter.samples[0].at_ns) * 1e-9
    after_s = max(0, meter.samples[-1].at_ns - command_ns[1]) * 1e-9
    if before_s + after_s <= _OUTSIDE * (command_ns[1] - command_ns[0]) * 1e-9:
        return []
    return [
        f"{meter.name}: read from {text.seconds(before_s)} before the command to {text.seconds(after_s)} after it; "
        "what it counted between two readings is taken for even, and the command has its part of that"
    ]


def _command_ns(written: object) -> tuple[int, int] | None:
    """When the command began and ended; None in records of those who did not write it."""
    if written is None:
        return None
    if not isinstance(written, list) or [type(at) for at in written] != [int, int] or written[0] > written[1]:
        raise ValueError("command_ns: not a beginning and an end")
    return written[0], written[1]


def _domains(
    meter: _Meter, additive: set[tuple[str, str]], command_ns: tuple[int, int] | None, notes: list[str]
) -> list[MeterEnergy]:
    out = []
    if command_ns is not None:
        notes += _outside(meter, command_ns)
    for domain in meter.domains:
        name = domain.name
        seen = [(sample.at_ns, sample.energy_j[name]) for sample in meter.samples if name in sample.energy_j]
        lost = meter.off.get(name)
        if len(seen) < _ENDS and lost is None:
            continue
        first, last = (seen[0], seen[-1]) if seen else ((0, 0.0), (0, 0.0))  # lost ones take the sum with them
        if seen and command_ns is not None:
            first, last = (_at(seen, at_ns) for at_ns in command_ns)
        time_s = (last[0] - first[0]) * 1e-9
        energy_j = last[1] - first[1]
        mean_w = energy_j / time_s if time_s > 0 else 0.0
        if not (math.isfinite(energy_j) and math.isfinite(mean_w)):
            raise ValueError(f"{meter.name} {name}: no energy is so large")
        if missing := meter.lost_intervals.get(name):
            intervals = "an interval is missing" if missing == 1 else f"{missing} intervals are missing"
            notes.append(f"{meter.name} {name}: {intervals}, so its energy too")
            lost = lost or intervals
        counted = (meter.name, name) in additive
        if counted and lost is None and energy_j == 0 and time_s >= _NOTHING_S:
            notes.append(f"{meter.name} {name}: counted nothing in {text.seconds(time_s)}; it may stand still")
        out.append(MeterEnergy(meter.name, name, domain.kind, energy_j, mean_w, time_s, counted, lost))
    return out


def _coverage(counted: Sequence[MeterEnergy]) -> str:
    """No platform has accelerators in its model: that is to be said where meters have."""
    kinds = {domain.kind for domain in counted}
    if kinds == {"accelerator"}:
        return "accelerators alone; modelled energy is that of the rest of the node, without them"
    has_some = kinds & {"accelerator", "module"}
    return "accelerators are in it; in modelled energy they are not" if has_some else ""


def metered(directory: Path, command_s: float, notes: list[str]) -> Metered | None:
    """What the meters of a run counted, from meters.json; None where there were none."""
    path = directory / rundir.METERS_FILE
    if not path.exists():
        return None
    told: list[str] = []
    try:
        data = json_files.read(path)
        if data["schema"] != sampling.SCHEMA or data["version"] != sampling.VERSION:
            notes.append(f"{path.name}: not in a form that this Fallow knows")
            return None
        additive = {(meter, domain) for meter, domain in data["additive"]}
        meters = _meters(data)
        command_ns = _command_ns(data.get("command_ns"))
        domains = [d for meter in meters for d in _domains(meter, additive, command_ns, told)]
        counted = [d for d in domains if d.counted]
        total = sum(d.energy_j for d in counted) if counted and all(d.lost is None for d in counted) else None
        delay = None if total is None else total * command_s
        if delay is not None and not math.isfinite(delay):
            raise ValueError("no energy is so large")
    except UserError as error:
        notes.append(str(error).removeprefix(f"{path.parent}/"))
        return None
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as error:
        notes.append(f"{path.name}: {type(error).__name__}: {error}")
        return None
    notes += told
    measures = [f"{m.name}: {m.measures}" for m in meters]
    return Metered(total, delay, _coverage(counted), domains, measures) if domains else None


def platform_directories() -> list[Path]:
    """Where platform files are installed."""
    here = Path(__file__).resolve().parent
    module = native.load()
    places = [here / "platforms", here.parents[1] / "platforms"]
    if module is not None and module.__file__:
        places.insert(1, Path(module.__file__).resolve().parent / "platforms")
    places += [parent / "share" / "fallow" / "platforms" for parent in here.parents[:5]]
    return list(dict.fromkeys(p for p in places if p.is_dir()))


def platform_names() -> list[str]:
    """Platforms that can be named."""
    return sorted({p.stem for d in platform_directories() for p in d.glob("*.toml")})


def platform(name: str, directory: Path | None) -> _native.Platform | None:
    """The platform of that name or file; without a name, "the machine found", by the processors of what made the run.

    None where this build has no model; UserError where the name or the file cannot be used.
    """
    load, generic = native.part("load_platform"), native.part("generic_platform")
    if not callable(load) or not callable(generic):
        return None
    kept = directory / rundir.MACHINE_DIR if directory is not None else None
    try:
        if name:
            native.file_name(Path(name))
            loaded: _native.Platform = load(name, platform_directories())
            return loaded
        made: _native.Platform = generic(kept if kept is not None and kept.is_dir() else "/")
    except (ValueError, RuntimeError) as error:
        raise UserError(str(error)) from None
    return made


def _parts(energy: _native.EnergyParts, names: Sequence[str]) -> dict[str, float]:
    values: dict[str, Any] = dict(energy)
    return {name: float(values[f"{name}_j"]) for name in names}


def _concerns(assumption: str, *, yields: bool) -> bool:
    """Whether the energy of a run depends on it: platforms also describe what only simulations use."""
    name = assumption.partition(": ")[0]
    group, dot, key = name.partition(".")
    if " " in name:  # a sentence, not a value's source
        return True
    if group in _SIMULATED:
        return False
    used = _USED.get(group)
    return not dot or used is None or key in used or (yields and key == "yield_w")


def in_use_s(programs: Iterable[Span], run_time_s: float, cores: int) -> float:
    """Core time that programs had. Between two the next one starts; what is before or after all is the first one's."""
    started = sorted(programs)  # a script may start thousands
    steps: Counter[int] = Counter()
    for begin, end, threads in started:
        steps[begin] += threads if end > begin else 0
        steps[end] -= threads if end > begin else 0
    edges = sorted(steps)
    total, running = 0.0, 0
    for low, high in pairwise(edges):
        running += steps[low]
        following = bisect_left(started, (high,))
        starting = started[following][2] if following < len(started) else 0
        total += min(running or starting, cores) * (high - low) * 1e-9
    outside_s = max(0.0, run_time_s - (edges[-1] - edges[0]) * 1e-9) if edges else 0.0
    return total + outside_s * min(started[0][2], cores) if edges else 0.0


def together(programs: Mapping[int, Span]) -> list[tuple[set[int], int]]:
    """Programs that ran at the same time, and how many threads these had at once, at most: cores are shared by them."""
    found: list[tuple[set[int], list[Span]]] = []
    latest = 0
    for number, span in sorted(programs.items(), key=lambda item: item[1]):
        if not found or span[0] >= latest:
            found.append((set(), []))
        latest = max(latest, span[1])
        found[-1][0].add(number)
        found[-1][1].append(span)
    return [(numbers, at_once(spans)) for numbers, spans in found]


def _in_groups(ranks: Iterable[RankReport], programs: Mapping[int, Span]) -> list[tuple[list[RankReport], int]]:
    """The same of ranks. Those that never called MPI take no time."""
    groups = together(programs)
    group_of = {number: group for group, (numbers, _) in enumerate(groups) for number in numbers}
    out: list[tuple[list[RankReport], int]] = [([], most) for _, most in groups]
    for rank in ranks:
        if rank.program in group_of:
            out[group_of[rank.program]][0].append(rank)
    return out


def _besides(rank: RankReport, run_time_s: float) -> float:
    """CPU time that only threads which call no MPI can have had; not what comes before MPI_Init, which is not known."""
    r = rank.residency
    return max(0.0, rank.cpu_user_s + rank.cpu_system_s - max(run_time_s, r.total_s) + r.wait_asleep_s + r.io_s)


def _without_core(groups: Iterable[tuple[Sequence[RankReport], int]], cores: int) -> list[str]:
    """That ranks were awake for clearly longer than they had a core, though they need not have shared it."""
    alone = [rank for group, most in groups if most <= cores for rank in group if rank.end == "finalized"]
    known = [(rank.residency, cpu) for rank in alone if (cpu := rank.cpu_user_s + rank.cpu_system_s) > 0]
    awake_s = sum(r.computing_s + r.transfer_s + r.wait_awake_s for r, _ in known)
    cpu_s = sum(cpu for _, cpu in known)
    if cpu_s >= _CORE_HAD * awake_s:
        return []
    return [
        f"ranks had a core for {text.percent(cpu_s / awake_s)} of the {text.seconds(awake_s)} that they were not "
        "asleep in MPI; else they waited for cores that others had, were throttled, or slept in MPI_Init, in "
        "MPI_Finalize or between calls. The model takes all of it for computing and spinning: its energy is too high"
    ]


def _modelled(
    machine: _native.Platform, run: Run, ranks: Sequence[RankReport], programs: Mapping[int, Span]
) -> Modelled:
    compute = native.require().platform_energy
    yields, nodes = run.modes == ["yield"], max(1, len(run.hosts))
    groups = _in_groups(ranks, programs)
    energy: _native.PlatformEnergy = compute(
        machine,
        [rank.residency for group, _ in groups for rank in group],
        nodes=nodes,
        run_time_s=run.run_time_s,
        waits_yield=yields,
        together=[(len(group), most) for group, most in groups],
        in_use_s=in_use_s(programs.values(), run.run_time_s, nodes * machine.cores),
        besides_s=sum(_besides(rank, run.run_time_s) for rank in ranks),
    )
    awake = energy["all_awake"]
    cores, cores_awake = _parts(energy, _CORE_PARTS), _parts(awake, _CORE_PARTS)
    shorter = 1.0 - max((rank.wake_lasting_share for rank in ranks), default=0.0)
    return Modelled(
        platform=f"{machine.name} ({machine.cpu_model}, {machine.cores} cores a node)",
        energy_j=energy["total_j"],
        energy_spinning_j=awake["total_j"] * shorter,
        energy_delay_js=energy["total_j"] * run.run_time_s,
        cores_j=sum(cores.values()),
        cores_spinning_j=sum(cores_awake.values()) * shorter,
        power_spinning_w=awake["total_j"] / run.run_time_s if run.run_time_s > 0 else 0.0,
        parts=cores | _parts(energy, _NODE_PARTS),
        assumptions=[a for a in machine.assumptions() if _concerns(a, yields=yields)],
    )


def build(  # noqa: PLR0913 - one value each
    directory: Path,
    run: Run,
    ranks: Sequence[RankReport],
    machine: _native.Platform | None,
    notes: list[str],
    *,
    command_s: float,
    programs: Mapping[int, Span],
) -> Energy:
    """Both kinds, as far as there are meters, which are read while the command runs, and a model.

    `programs`: when each ran.
    """
    modelled = None
    if machine is not None:
        try:
            modelled = _modelled(machine, run, ranks, programs)
            notes += _without_core(_in_groups(ranks, programs), max(1, len(run.hosts)) * machine.cores)
        except ValueError as error:
            notes.append(f"no energy is modelled on {machine.name}: {error}")
    read = metered(directory, command_s, notes)
    if read is not None and (others := [host for host in run.hosts if host != run.host]):
        notes.append(
            f"meters were read on {run.host} alone, where the command ran: what "
            f"{text.plural(len(others), 'other node')} used is not in the metered energy"
        )
    return Energy(read, modelled)
