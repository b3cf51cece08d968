"""`fallow sim`: replay a program on a modelled machine under policies."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from fallow import native
from fallow.cli_synth import add_synth_options, synth_options
from fallow.errors import UserError
from fallow.quantities import listed, positive, share, time_us, whole
from fallow.sim import page, run, text
from fallow.sim.machine import MachineSpec
from fallow.sim.model import Case, Study
from fallow.text import Style

_EPILOG = """\
examples:
  fallow sim run.ftr --platform minotauro --policy hardware,pps,adaptive,oracle
  fallow sim OUT --policy pps,spps --lead 1%,5%,10%         the trace that a run left in OUT
  fallow sim run.ftr --platform my.toml --ranks-per-node 6 --html study.html
  fallow sim --synth stencil3d --ranks 4096 --topology fat-tree --policy oracle

Every study begins with everything always on; slowdown and savings are against that. All energy is modelled.
"""


def _names(part: str) -> list[str]:
    found = native.part(part)
    return [name for name, _ in found()] if callable(found) else []


def _policy_help() -> str:
    found = native.part("sim_policies")
    rows = found() if callable(found) else []
    return "policies, comma-separated: " + "; ".join(f"{n}: {h}" for n, h in rows).replace("%", "%%")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    p = commands.add_parser(
        "sim", help="replay a program on a modelled machine: what would it save, what would it cost",
        description="Replays a recorded or made-up program on a modelled machine.",
        epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    p.add_argument("trace", nargs="*", type=Path, metavar="TRACE", help="a trace, its parts, or a directory with them")
    p.add_argument(
        "--platform",
        default="minotauro",
        metavar="NAME|FILE",
        help="machine: a platform's name or a TOML file (default: minotauro)",
    )
    p.add_argument(
        "--topology",
        metavar="SHAPE",
        help="another network: XGFT(h;m..;w..), fat-tree or crossbar, these two as large as the program needs",
    )
    p.add_argument(
        "--ranks-per-node",
        type=whole(1, 65536),
        metavar="N",
        help="ranks that share a node's link (default: the platform's)",
    )
    p.add_argument(
        "--network", choices=("full", "loggp"), help="full: links are shared; loggp: a first look without contention"
    )
    p.add_argument(
        "--cpu-speed", type=positive, metavar="X", help="cores compute X times as fast as where the trace was recorded"
    )
    policy = p.add_argument_group("what rests")
    policy.add_argument(
        "--policy",
        type=listed(str.strip),
        default=["hardware", "adaptive", "oracle"],
        metavar="LIST",
        help=_policy_help(),
    )
    policy.add_argument(
        "--lead",
        type=listed(share),
        metavar="LIST",
        help="pps, spps: how much of a gap before its end links wake, e.g. 1%%,5%%,10%% (default: 5%%)",
    )
    policy.add_argument(
        "--threshold", type=listed(time_us), metavar="LIST", help="pps: grouping threshold (default: 20us)"
    )
    policy.add_argument(
        "--budget", type=share, metavar="SHARE", help="adaptive: slowdown that is acceptable (default: 1%%)"
    )
    policy.add_argument(
        "--idle-timer", type=time_us, metavar="TIME", help="hardware: idling before the rest (default: 50us)"
    )
    policy.add_argument(
        "--deep-timer",
        type=time_us,
        metavar="TIME",
        help="hardware, oracle: idling before the deeper state (default: never)",
    )
    policy.add_argument(
        "--call-cost", type=time_us, metavar="TIME", help="what the predictor costs a core per call (default: 0)"
    )
    policy.add_argument(
        "--cores",
        type=listed(str.strip),
        default=["spin"],
        metavar="LIST",
        help="what waiting cores do: spin, sleep (default: spin)",
    )
    add_synth_options(p.add_argument_group("a made-up program instead of a trace"), flag=True)
    p.add_argument(
        "--threads",
        type=whole(1, 256),
        default=1,
        metavar="N",
        help="simulations that run at once; results do not depend on it",
    )
    form = p.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--html", type=Path, metavar="FILE", help="write one self-contained page")
    p.set_defaults(action=_run)


def _program(arguments: argparse.Namespace) -> run.ProgramSpec:
    if bool(arguments.trace) == bool(arguments.synth):
        raise UserError("name a trace, or a made-up program: --synth " + "|".join(_names("sim_programs")))
    if arguments.synth:
        return run.ProgramSpec(synth=arguments.synth, options=synth_options(arguments))
    return run.ProgramSpec(paths=tuple(arguments.trace))


def machine_settings(arguments: argparse.Namespace, ranks: int) -> dict[str, Any]:
    """Changes to the platform, as the native part takes them."""
    topology, ranks_per_node = arguments.topology, arguments.ranks_per_node
    out: dict[str, Any] = {}
    if ranks_per_node:
        out["ranks_per_node"] = ranks_per_node
    nodes = max(2, -(-ranks // (ranks_per_node or 1)))
    if topology in ("fat-tree", "crossbar"):
        out[topology.replace("-", "_")] = nodes
    elif topology:
        if not topology.startswith("XGFT("):
            raise UserError(f"'{topology}' is no topology; say XGFT(2;18,14;1,18), fat-tree or crossbar")
        out["xgft"] = topology
    if arguments.network:
        out["contention"] = arguments.network == "full"
    if arguments.cpu_speed:
        out["compute_ps_per_ns"] = max(1, round(1000 / arguments.cpu_speed))
    return out


def cases(arguments: argparse.Namespace) -> list[Case]:
    """Every policy with every value of the options that concern it, for every way of waiting."""
    known = _names("sim_policies")
    common = {
        "budget": arguments.budget, "idle_timer_us": arguments.idle_timer, "deep_timer_us": arguments.deep_timer,
        "call_cost_us": arguments.call_cost,
    }  # fmt: skip
    out: list[Case] = []
    for core in arguments.cores:
        for policy in arguments.policy:
            if policy not in known:
                raise UserError(f"no policy is called '{policy}'; there are: {', '.join(known)}")
            leads = arguments.lead if policy in ("pps", "spps") and arguments.lead else [None]
            thresholds = arguments.threshold if policy == "pps" and arguments.threshold else [None]
            for lead in leads:
                for threshold in thresholds:
                    options = common | {
                        "lead": lead,
                        "threshold_us": threshold,
                        "core": core if core != "spin" else None,
                    }
                    out.append(Case(policy, {k: v for k, v in options.items() if v is not None}))
    return out


def _study(arguments: argparse.Namespace) -> Study:
    spec = _program(arguments)
    where = MachineSpec(arguments.platform, machine_settings(arguments, spec.open().ranks))
    return run.study(spec, where, cases(arguments), threads=arguments.threads)


def _run(arguments: argparse.Namespace) -> int:
    found = _study(arguments)
    if arguments.json:
        print(json.dumps(text.as_dict(found), indent=1))
    elif arguments.html:
        page.write(found, arguments.html)
        print(arguments.html)
    else:
        for line in text.lines(found, Style.of(sys.stdout)):
            print(line)
    return 0
