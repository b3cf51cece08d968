"""One point: replayed by whoever is told to, as a row of results. Runs on workers, so everything it needs is in it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from fallow.errors import UserError, reason
from fallow.sim import run
from fallow.sim.machine import MachineSpec, load, machine_settings, require
from fallow.sim.model import COMPONENTS, Case, Outcome
from fallow.sweep.study import Point

Row = dict[str, Any]


def _results(outcome: Outcome) -> Row:
    row: Row = {"run_time_s": outcome.run_time_s}
    row |= {f"energy_{name}_j": value for name, value in outcome.energy_j.items()}
    row["energy_total_j"] = outcome.total_j
    row |= {f"rest_share_{name}": outcome.rest_share(name) for name in COMPONENTS}
    row["mispredictions"] = int(outcome.raw["mispredictions"])
    row["late_messages"] = outcome.late_messages
    row["wake_delay_s"] = outcome.wake_delay_s
    row["calls"] = int(outcome.raw["calls"])
    return row


def evaluate(point: Point) -> Row:
    """The row of a point. What goes wrong is told in it; it does not raise."""
    began = time.perf_counter()
    row = describe(point)
    try:
        if require("sim_model")() != point.model:
            raise UserError("the worker's Fallow is another version than that which started the sweep")
        paths = (Path(point.trace),) if point.trace else ()
        spec = run.ProgramSpec(paths, point.synth, point.synth_options)
        program = spec.open()
        row["ranks"] = int(program.ranks)
        machine = load(MachineSpec(point.platform, machine_settings(point.machine, program.ranks)))
        case = Case(point.policy, point.options)
        outcome = run.simulate(spec, machine, [case], run.Wanted(details=False))[0]
        row |= _results(outcome)
        if notes := (*spec.facts(program).notes, *run.doubts(outcome)):  # such as that the trace ends early
            row["notes"] = "; ".join(notes)
        row["status"] = "done"
    except Exception as error:  # a point that fails is a result, too
        said = reason(error) if isinstance(error, MemoryError) else str(error) or type(error).__name__
        row["status"], row["error"] = "failed", said
    row["simulation_s"] = time.perf_counter() - began
    return row


def describe(point: Point) -> Row:
    """What the point is, in the words of the study."""
    option, platform = dict(point.options), Path(point.platform)
    return {
        "id": point.id, "group": point.group, "program": point.synth or Path(point.trace).name, "trace": point.trace,
        **{f"synth_{k}": v for k, v in point.synth_options.items()},
        "platform": platform.stem, "platform_file": str(platform) if platform.is_absolute() else "",
        **{f"machine_{k}": v for k, v in point.machine.items()},
        "policy": point.policy, **{f"option_{k}": v for k, v in option.items()}, "model": point.model,
    }  # fmt: skip
