"""A study in the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from fallow.sim.machine import assumptions
from fallow.sim.model import COMPONENT_NAMES, COMPONENTS, PATH_NAMES, PATH_PARTS, Outcome, Study
from fallow.text import Style, count, joules, note, paragraph, percent, plural, seconds, table

_SHOWN_RANKS = 8
SCHEMA = 1


def _share(value: float | None) -> str:
    return "-" if value is None else percent(value)


def lines(study: Study, style: Style) -> Iterator[str]:
    """All of it, for people."""
    p, m = study.program, study.machine
    yield style.paint(f"{style.safe(p.name) or '(program unknown)'} on {style.safe(m['name'])}, simulated", "bold")
    clock = {"cpu": "CPU time of the recorded ranks", "wall": "time between the recorded calls", "made up": "made up"}[
        p.clock
    ]
    words = f"{plural(p.ranks, 'rank')}, {plural(p.events, 'call')}; computation: {clock}"
    yield from paragraph(words, style, "  ", "  ")
    for words in p.notes:
        yield from (style.paint(x, "yellow") for x in note(f"NOTE: {style.safe(words)}", style, "  "))
    yield ""
    yield from _overview(study, style)
    yield ""
    yield from _energies(study, style)
    if any(o.ranks for o in study.outcomes):
        yield ""
        yield from _ranks(study, style)
    if any(o.path for o in study.outcomes):
        yield ""
        yield from _paths(study, style)
    yield ""
    yield style.paint("what these figures assume", "bold")
    for sentence in all_assumptions(study):
        yield from paragraph(sentence, style, "  - ", "    ")


def all_assumptions(study: Study) -> list[str]:
    """Those of the machine, and what leaving contention out amounts to here."""
    found = assumptions(study.machine)
    found.insert(1, _counted(study))
    if study.contention_error is not None:
        full = seconds(study.full_run_time_s or 0)
        error = f"{study.contention_error * 100:+.3f} %"
        found.insert(
            2, f"With contention the run time is {full}: without it, it comes out {error} off (everything on)."
        )
    elif not study.machine["contention"]:
        found.insert(2, "How far off that is was not estimated, the program being large: compare with --network full.")
    return found


def _counted(study: Study) -> str:
    """Whose energy it is: the part of the network that no node has for itself is there as a whole."""
    nodes, upper = int(study.base.raw["nodes"]), int(study.base.raw["upper"]["links"])
    used = f"Energy is that of the {plural(nodes, 'node')} that the program uses, with their links"
    if not upper:
        return f"{used} and what of the switches is behind them."
    return (
        f"{used}, and of all {count(upper)} links between switches, used or not, each way one; of the switches what is "
        "behind these. --topology fat-tree takes a network of the program's size."
    )


def _overview(study: Study, style: Style) -> Iterator[str]:
    rows = []
    for o in study.outcomes:
        rows.append([
            o.case.label, seconds(o.run_time_s), f"{round(study.slowdown(o) * 100, 3) + 0.0:+.3f} %", joules(o.total_j),
            _share(study.saved(o)), count(o.raw["mispredictions"]), count(o.late_messages), seconds(o.wake_delay_s),
        ])  # fmt: skip
    header = ["policy", "run time", "slowdown", "energy", "saved", "mispredicted", "late messages", "they waited"]
    yield from (f"  {line}" for line in table(header, rows, style, apart=True))


def _energies(study: Study, style: Style) -> Iterator[str]:
    """Three tables: side by side they are wider than a terminal."""
    tables: tuple[tuple[str, Callable[[Outcome, str], str]], ...] = (
        ("modelled energy", lambda o, name: joules(o.energy_j[name])),
        ("of this energy saved", lambda o, name: _share(study.saved(o, name))),
        ("share of time at rest", lambda o, name: _share(o.rest_share(name))),
    )
    header = ["policy", *(COMPONENT_NAMES[name] for name in COMPONENTS)]
    for number, (title, cell) in enumerate(tables):
        if number:
            yield ""
        yield style.paint(title, "bold")
        rows = [[o.case.label, *(cell(o, name) for name in COMPONENTS)] for o in study.outcomes]
        yield from (f"  {line}" for line in table(header, rows, style, apart=True))


def _ranks(study: Study, style: Style) -> Iterator[str]:
    """The ranks that wait least: what holds the others up."""
    base = study.base
    ranks = sorted(base.ranks, key=lambda r: (r.waiting_s + r.resting_s, r.rank))[:_SHOWN_RANKS]
    yield style.paint(f"ranks that wait least with everything on ({len(ranks)} of {len(base.ranks)})", "bold")
    header = ["rank", "computing", "in calls", "waiting", "calls"]
    rows = [
        [
            str(r.rank),
            seconds(r.computing_s),
            seconds(r.in_calls_s),
            seconds(r.waiting_s + r.resting_s),
            count(r.calls),
        ]
        for r in ranks
    ]
    yield from (f"  {line}" for line in table(header, rows, style))


def path_dict(o: Outcome) -> dict[str, Any] | None:
    """The critical path as JSON has it."""
    if o.path is None:
        return None
    return {
        "messages": o.path.messages,
        "total": {part: o.path.total_s(part) for part in PATH_PARTS},
        "ranks": [vars(row) | {"total_s": row.total_s} for row in o.path.rows],
    }


def _paths(study: Study, style: Style) -> Iterator[str]:
    yield style.paint("critical path: what the run time consists of", "bold")
    rows = []
    for o in study.outcomes:
        if o.path is None:
            continue
        shares = [f"{o.path.total_s(part) / o.run_time_s * 100:.3f} %" if o.run_time_s else "-" for part in PATH_PARTS]
        rows.append([o.case.label, *shares, count(o.path.messages)])
    yield from (f"  {line}" for line in table(["policy", *PATH_NAMES, "messages"], rows, style, apart=True))


def outcome_dict(study: Study, o: Outcome) -> dict[str, Any]:
    """One simulation as JSON has it."""
    return {
        "policy": o.case.policy,
        "label": o.case.label,
        "options": dict(o.case.options),
        "run_time_s": o.run_time_s,
        "slowdown": study.slowdown(o),
        "energy_model_j": o.energy_j | {"total": o.total_j},
        "saved_share": {name: study.saved(o, name) for name in COMPONENTS} | {"total": study.saved(o)},
        "rest_share": {name: o.rest_share(name) for name in COMPONENTS},
        "mispredictions": o.raw["mispredictions"],
        "late_messages": o.late_messages,
        "wake_delay_s": o.wake_delay_s,
        "raw": dict(o.raw),
        "critical_path": path_dict(o),
        "edge_idle": asdict(o.edge_idle) if o.edge_idle else None,
        "ranks": [vars(r) for r in o.ranks],
        "links": [vars(x) for x in o.links],
    }


def as_dict(study: Study) -> dict[str, Any]:
    """All of it, for programs."""
    return {
        "schema": SCHEMA,
        "program": asdict(study.program),
        "machine": dict(study.machine),
        "contention_error": study.contention_error,
        "assumptions": all_assumptions(study),
        "simulations": [outcome_dict(study, o) for o in study.outcomes],
    }
