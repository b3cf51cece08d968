"""Study files: which programs on which machines under which policies. Every list multiplies."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fallow import files, quantities
from fallow.errors import UserError
from fallow.sim import machine as machines
from fallow.sim import run
from fallow.sim.options import CORES, POLICIES, concerns, native_options, product
from fallow.traces.found import find_files

_Parser = Callable[[str], Any]


def _share(*, whole: bool = True, none: bool = True) -> _Parser:
    """A share; perhaps not all of it, or not nothing."""

    def parse(text: str) -> float:
        value = quantities.share(text)
        if (value == 1 and not whole) or (value == 0 and not none):
            bound = "less than 100%" if value else "more than 0"
            raise argparse.ArgumentTypeError(f"'{text}' will not do; say {bound}")
        return value

    return parse


SYNTH_KEYS: dict[str, _Parser] = {
    "ranks": quantities.whole(1, 1 << 20), "iterations": quantities.whole(1, 1 << 30), "bytes": quantities.size_bytes,
    "reduce_bytes": quantities.size_bytes, "compute": quantities.time_us, "jitter": _share(whole=False),
    "seed": quantities.whole(0, 1 << 62),
}  # fmt: skip
MACHINE_KEYS: dict[str, _Parser] = {
    "platform": quantities.named, "topology": quantities.named, "ranks_per_node": quantities.whole(1, 65536),
    "network": str, "cpu_speed": quantities.positive,
}  # fmt: skip
POLICY_KEYS: dict[str, _Parser] = {
    "policy": str, "lead": _share(whole=False), "threshold": quantities.time_us, "budget": quantities.share,
    "idle_timer": quantities.time_us, "deep_timer": quantities.time_us, "call_cost": quantities.time_us, "cores": str,
    "compress": _share(none=False), "core_timer": quantities.time_us, "rest_switches": bool, "rest_cards": bool,
    "edge_only": bool, "published_cost": bool, "no_cap_by_first": bool, "core_state": quantities.named,
    "frequency": quantities.positive, "memory_share": quantities.share, "compress_only": str,
}  # fmt: skip
_HEADER = re.compile(r"\[\[?[^\[\]]+\]\]?")
_SWITCHES = ("rest_switches", "edge_only")  # where messages pass them: not with network loggp
_COMPRESSED = ("point-to-point", "collectives")
_SYNTH_NAMES = {"bytes": "size_bytes", "compute": "compute_ns"}


@dataclass(frozen=True)
class Point:
    """One simulation. `id` is the same wherever and whenever the study is read."""

    id: str
    group: str  # the same for all policies of one program on one machine
    trace: str  # "" for a made-up program
    synth: str
    synth_options: Mapping[str, Any]
    platform: str
    machine: Mapping[str, Any]  # as the study says it: topology, ranks_per_node, network, cpu_speed
    policy: str
    options: Mapping[str, Any]  # as the native part takes them
    model: int  # of the simulator that the study was read with


@dataclass(frozen=True)
class SweepStudy:
    """All points, and what the study says of the cluster."""

    name: str
    points: tuple[Point, ...]
    slurm: Mapping[str, Any] = field(default_factory=dict)


class _File:
    """The study's file, for errors with line numbers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = files.text(path)
        try:
            self.data = tomllib.loads(self.text)
        except RecursionError:
            raise UserError(f"{path}: too deeply nested") from None
        except ValueError as error:  # of numbers with too many digits too
            raise UserError(f"{path}: {error}") from None

    def line(self, section: str, key: str, table: Mapping[str, Any] | None = None) -> int:
        """Where a key, or a table of the top, stands, in that table of those with this name; 0 if it cannot be told."""
        tables = _tables(self, section) if table is not None else []
        before = next((n for n, t in enumerate(tables) if t is table), 0)
        inside, seen = not section, -1
        for number, line in enumerate(self.text.splitlines(), 1):
            bare = line.partition("#")[0].strip()
            if _HEADER.fullmatch(bare):
                if f"{bare.strip('[] ')}.".startswith(f"{section}.{key}.".lstrip(".")):
                    return number
                named = bare.strip("[] ") == section
                seen += named
                inside = named and seen == before
            elif inside and bare.partition("=")[0].strip() == key:
                return number
        return 0

    def fail(self, section: str, key: str, what: str, table: Mapping[str, Any] | None = None) -> UserError:
        line = self.line(section, key, table)
        name = f"{section}.{key}" if section else key
        return UserError(f"{self.path}:{line}: {name} {what}" if line else f"{self.path}: {name} {what}")

    def values(self, section: str, table: Mapping[str, Any], keys: Mapping[str, _Parser]) -> dict[str, list[Any]]:
        """Every key as a list of checked values."""
        out: dict[str, list[Any]] = {}
        for key, given in table.items():
            if key not in keys:
                raise self.fail(section, key, f"is not known; there are: {', '.join(keys)}", table)
            out[key] = []
            for one in given if isinstance(given, list) else [given]:
                if (keys[key] is bool) != isinstance(one, bool):
                    what = "true, false or both in a list" if keys[key] is bool else "a value or a list of values"
                    raise self.fail(section, key, f"must be {what}", table)
                if isinstance(one, bool):
                    out[key].append(one)
                    continue
                if not isinstance(one, str | int | float):
                    raise self.fail(section, key, "must be a value or a list of values", table)
                try:
                    out[key].append(keys[key](str(one)))
                except argparse.ArgumentTypeError as error:
                    raise self.fail(section, key, f"is wrong: {error}", table) from None
            if not out[key]:
                raise self.fail(section, key, "is an empty list", table)
        return out


def _digest(what: Any) -> str:  # noqa: ANN401  # anything JSON
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:20]


def _fingerprint(path: Path) -> list[Any]:
    """A trace that changes makes new points."""
    return [[f.name, f.stat().st_size, f.stat().st_mtime_ns] for f in find_files([path])]


def _tables(file: _File, section: str) -> list[Mapping[str, Any]]:
    found = file.data.get(section, [])
    tables = found if isinstance(found, list) else [found]
    if not all(isinstance(t, dict) for t in tables):
        raise file.fail("", section, "must be a table")
    return tables


def _unlike(program: str, options: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Those that make programs of their own: without jitter, seeds change nothing but in the program `random`."""
    seen: set[str] = set()
    for chosen in options:
        if program not in run.DRAWING and not chosen.get("jitter"):
            chosen.pop("seed", None)
        if (digest := _digest(chosen)) not in seen:
            seen.add(digest)
            yield chosen


def _programs(file: _File) -> Iterator[tuple[str, str, dict[str, Any], Any]]:
    """(trace, made-up program, its options, what tells it from others)."""
    here = file.path.parent
    traces = file.data.get("traces", [])
    if not isinstance(traces, list) or not all(isinstance(t, str) for t in traces):
        raise file.fail("", "traces", "must be a list of paths")
    for name in traces:
        if not name:
            raise file.fail("", "traces", "has an empty name")
        path = here / name
        if not path.exists():
            raise file.fail("", "traces", f"names {path}, which is not there")
        yield str(path.resolve()), "", {}, _fingerprint(path)
    known = [n for n, _ in machines.require("sim_programs")()]
    for table in _tables(file, "synth"):
        values = file.values("synth", table, SYNTH_KEYS | {"program": str})
        programs = values.pop("program", [None])
        if "reduce_bytes" in values and not set(programs) & set(run.REDUCING) and set(programs) <= set(known):
            of = " or ".join(run.REDUCING)
            raise file.fail("synth", "reduce_bytes", f"would do nothing: it is for {of}", table)
        for program in programs:
            if program not in known:
                raise file.fail("synth", "program", f"must be one of {', '.join(known)}", table)
            concerned = {k: v for k, v in values.items() if k != "reduce_bytes" or program in run.REDUCING}
            for options in _unlike(program, product(concerned)):
                if "compute" in options:
                    options["compute"] = round(options["compute"] * 1000)
                named = {_SYNTH_NAMES.get(k, k): v for k, v in options.items()}
                yield "", program, named, named


def _machines(file: _File) -> Iterator[tuple[dict[str, Any], str]]:
    """Machines, and what tells each from one whose platform's file said something else."""
    for table in _tables(file, "machine") or [{}]:
        values = {"platform": ["minotauro"]} | file.values("machine", table, MACHINE_KEYS)
        for network in values.get("network", []):
            if network not in ("full", "loggp"):
                raise file.fail("machine", "network", "must be full or loggp", table)
        for topology in values.get("topology", []):
            try:
                machines.load(machines.MachineSpec("minotauro", machines.machine_settings({"topology": topology}, 1)))
            except UserError as error:
                raise file.fail("machine", "topology", f"is wrong: {error}", table) from None
        for machine in product(values):
            try:
                path = machines.path_of(machine["platform"])
                if "/" in machine["platform"] or machine["platform"].endswith(".toml"):
                    machine["platform"] = str((file.path.parent / path).resolve())
                machines.load(machines.MachineSpec(machine["platform"]))  # refuses what cannot be read, first of all
            except UserError as error:
                raise file.fail("machine", "platform", f"is wrong: {error}", table) from None
            yield machine, hashlib.sha256(machines.path_of(machine["platform"]).read_bytes()).hexdigest()


def _expect_effect(
    file: _File, table: Mapping[str, Any], values: Mapping[str, list[Any]], ways: list[str], *, switched: bool
) -> None:
    """UserError where a table names no policies, or an option that concerns none of them, or none of the machines."""
    if "policy" not in values:
        raise file.fail("policy", "policy", "is missing; say always-on where only cores are to rest", table)
    if "compress_only" in values and "compress" not in values:
        raise file.fail(
            "policy", "compress_only", "would do nothing: say with compress how much messages shrink", table
        )
    for key in _SWITCHES:
        if not switched and any(values.get(key, ())):
            why = "without contention (network loggp) switches, and links between them, stay on"
            raise file.fail("policy", key, f"would do nothing: {why}", table)
    for key in values:
        if not any(concerns(key, policy, cores) for policy in values["policy"] for cores in ways):
            of = [*sorted(POLICIES.get(key, ())), *(f"cores {c}" for c in sorted(CORES.get(key, ())))]
            whose = " or ".join(of) or "policies other than always-on"
            raise file.fail("policy", key, f"would do nothing: it is for {whose}", table)


def _expect_possible(
    file: _File, table: Mapping[str, Any], chosen: Mapping[str, Any], options: Mapping[str, Any], platforms: list[Any]
) -> None:
    """UserError where no machine of the study has what is chosen of its cores."""
    problem = ""
    for platform in platforms:
        try:
            platform.check_policy(options)
        except ValueError as error:
            problem = str(error)
        else:
            return
    key = next((k for k in ("core_state", "frequency", "cores") if k in chosen), "policy")
    raise file.fail("policy", key, f"is wrong: {problem}", table)


def _policies(file: _File, platforms: list[Any], *, switched: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    known = [n for n, _ in machines.require("sim_policies")()]
    waits = [n for n, _ in machines.require("sim_core_policies")()]
    seen = {_digest(["always-on", {}])}
    yield "always-on", {}
    for table in _tables(file, "policy"):
        values = file.values("policy", table, POLICY_KEYS)
        for cores in values.get("cores", []):
            if cores not in waits:
                raise file.fail("policy", "cores", f"must be one of {', '.join(waits)}", table)
        for which in values.get("compress_only", []):
            if which not in _COMPRESSED:
                raise file.fail("policy", "compress_only", f"must be {' or '.join(_COMPRESSED)}", table)
        for policy in values.get("policy", []):
            if policy not in known:
                raise file.fail("policy", "policy", f"must be one of {', '.join(known)}", table)
        ways = values.get("cores", ["spin"])
        _expect_effect(file, table, values, ways, switched=switched)
        for policy in values.pop("policy"):
            concerned = {k: v for k, v in values.items() if any(concerns(k, policy, cores) for cores in ways)}
            for chosen in product(concerned):
                cores = chosen.get("cores", "spin")
                said = {k: v for k, v in chosen.items() if concerns(k, policy, cores)}
                options = native_options(said)
                _expect_possible(file, table, said, options, platforms)
                if (digest := _digest([policy, options])) not in seen:
                    seen.add(digest)
                    yield policy, options


def _is_switched(machine: Mapping[str, Any], platform: Any) -> bool:  # noqa: ANN401  # of the native library
    """Whether messages pass its switches: the study says how the network is simulated, or else the platform's file."""
    if "network" in machine:
        return bool(machine["network"] != "loggp")
    return bool(machines.facts(platform)["contention"])


def read(path: Path) -> SweepStudy:
    """Reads and checks a study; UserError names file and line."""
    file = _File(path)
    for key in file.data:
        if key not in ("name", "traces", "synth", "machine", "policy", "slurm"):
            raise file.fail("", key, "is not known; there are: name, traces, synth, machine, policy, slurm")
    slurm, name = file.data.get("slurm", {}), file.data.get("name", path.stem)
    if not isinstance(slurm, dict):
        raise file.fail("", "slurm", "must be a table")
    if not isinstance(name, str):
        raise file.fail("", "name", "must be a text")
    points = []
    model: int = machines.require("sim_model")()
    machine_list = list(_machines(file))
    names = dict.fromkeys(m["platform"] for m, _ in machine_list)
    platforms = {name: machines.load(machines.MachineSpec(name)) for name in names}
    switched = any(_is_switched(m, platforms[m["platform"]]) for m, _ in machine_list)
    policy_list = list(_policies(file, list(platforms.values()), switched=switched))
    for trace, synth, options, mark in _programs(file):
        for machine, content in machine_list:
            group = _digest([trace, synth, mark, machine, content, model])
            setting = {k: v for k, v in machine.items() if k != "platform"}
            for policy, chosen in policy_list:
                number = _digest([group, policy, chosen])
                points.append(
                    Point(number, group, trace, synth, options, machine["platform"], setting, policy, chosen, model)
                )
    if not points:
        raise UserError(f"{path}: names no program: give traces = [..] or a [[synth]] table")
    unique = {p.id: p for p in points}
    return SweepStudy(name, tuple(unique.values()), slurm)
