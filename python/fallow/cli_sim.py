"""`fallow sim`: replay a program on a modelled machine under policies."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from fallow import json_text, native
from fallow.cli_synth import add_synth_options, synth_options
from fallow.errors import UserError
from fallow.files import deliver, expect_apart, expect_room
from fallow.help_text import HelpFormatter
from fallow.quantities import listed, named, named_path, positive, share, threads, time_us, whole
from fallow.sim import page, run, text, timeline
from fallow.sim.machine import MachineSpec, machine_settings
from fallow.sim.model import Case, Study
from fallow.sim.options import CORES, POLICIES, concerns, native_options, product
from fallow.sim.timeline import Window
from fallow.text import Style, seconds

_EPILOG = """\
examples:
  fallow sim run.ftr --platform minotauro --policy hardware,pps,adaptive,oracle
  fallow sim OUT --policy pps,spps --lead 1%,5%,10%         the trace that a run left in OUT
  fallow sim run.ftr --platform my.toml --ranks-per-node 6 --html study.html
  fallow sim --synth stencil3d --ranks 4096 --topology fat-tree --policy oracle

Every study begins with everything always on; slowdown and savings are against that. All energy is modelled.
"""

_MOST_SPANS_PAGE, _MOST_SPANS_FILE = 40_000, 2_000_000
_MAX_RANKS = 1 << 20
_TIMELINE_RANKS = 16


def _names(part: str) -> list[str]:
    found = native.part(part)
    return [name for name, _ in found()] if callable(found) else []


def _help_of(what: str, part: str) -> str:
    found = native.part(part)
    rows = found() if callable(found) else []
    return f"{what}: " + "; ".join(f"{n}: {h}" for n, h in rows).replace("%", "%%")


def _add_rest_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--core-timer", type=time_us, metavar="TIME",
        help="polling before the rest (default: sleep: as long as to go to rest and back; countdown: 500us; throttle: "
        "ten changes of state)",
    )  # fmt: skip
    group.add_argument(
        "--core-state", type=named, metavar="NAME",
        help="sleep, adaptive, oracle: the platform's sleep state (default: blocked)",
    )  # fmt: skip
    group.add_argument(
        "--frequency", type=positive, metavar="GHZ", help="fixed, countdown: default the platform's lowest"
    )
    group.add_argument(
        "--memory-share", type=share, metavar="SHARE",
        help="computation that does not depend on the frequency (default: 0%%)",
    )  # fmt: skip
    group.add_argument(
        "--compress", type=share, metavar="SHARE",
        help="messages of 1 KB and more shrink to this share, so fewer lanes of a link carry them, e.g. 50%%",
    )  # fmt: skip
    group.add_argument(
        "--compress-only", choices=("point-to-point", "collectives"), help="which messages shrink (default: all)"
    )
    group.add_argument(
        "--rest-switches", action="store_true", help="switches rest too, not their ports alone; hardware: after 2ms"
    )
    group.add_argument("--rest-cards", action="store_true", help="network cards rest too; hardware: after 2ms")
    group.add_argument("--edge-only", action="store_true", help="links between switches stay on")
    group.add_argument(
        "--published-cost", action="store_true",
        help="pps and spps take the time of their core that their author measured",
    )  # fmt: skip


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    p = commands.add_parser(
        "sim", help="replay a program on a modelled machine: what would it save, what would it cost",
        description="Replays a recorded or made-up program on a modelled machine.",
        usage="fallow sim [options] TRACE [TRACE ...]\n       fallow sim [options] --synth PROGRAM",
        epilog=_EPILOG, formatter_class=HelpFormatter,
    )  # fmt: skip
    p.add_argument(
        "trace", nargs="*", type=named_path, metavar="TRACE", help="a trace, its parts, or a directory with them"
    )
    p.add_argument(
        "--platform",
        default="minotauro",
        metavar="NAME|FILE",
        help="machine: a platform's name or a TOML file (default: minotauro)",
    )
    p.add_argument(
        "--topology",
        type=named,
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
        "--network", choices=("full", "loggp"), help="full: links are shared; loggp: a first look without contention "
        "(default: the platform's)",
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
        help=_help_of("policies, comma-separated", "sim_policies") + " (default: hardware,adaptive,oracle)",
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
        "--no-cap-by-first",
        action="store_true",
        help="pps, spps: the first predicted pattern's length does not cap later ones",
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
        help="hardware: idling before the deeper state; all others but always-on take it, of any TIME, where it pays "
        "(default: never)",
    )
    policy.add_argument(
        "--call-cost",
        type=time_us,
        metavar="TIME",
        help="pps, spps, adaptive: what the predictor costs a core per call (default: 0)",
    )
    policy.add_argument(
        "--cores",
        type=listed(str.strip),
        default=["spin"],
        metavar="LIST",
        help=_help_of("what cores do in waits", "sim_core_policies") + " (default: spin)",
    )
    _add_rest_options(policy)
    add_synth_options(p.add_argument_group("a made-up program instead of a trace"), flag=True)
    p.add_argument(
        "--threads",
        type=threads,
        default=1,
        metavar="N",
        help="threads: simulations that run at once, and parts of large ones; 0: one per processor; results do not "
        "depend on it (default: 1)",
    )
    draw = p.add_argument_group("timelines (part of --html)")
    draw.add_argument(
        "--timeline",
        type=named_path,
        metavar="FILE",
        help="write a timeline: .json for ui.perfetto.dev, .prv for Paraver (the last policy)",
    )
    draw.add_argument(
        "--window",
        type=_window,
        metavar="FROM..TO",
        help="time that is drawn, e.g. 10ms..30ms (default: from the beginning as far as it holds)",
    )
    draw.add_argument(
        "--timeline-ranks",
        type=_how_many,
        metavar="N|all",
        help="ranks that are drawn, and the links of their nodes (default: 16)",
    )
    form = p.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument(
        "--html", type=named_path, metavar="FILE", help="write one self-contained page; - is standard output"
    )
    p.set_defaults(action=_run)


def _how_many(text: str) -> int:
    return _MAX_RANKS if text.strip() == "all" else whole(1, _MAX_RANKS)(text)


def _window(text: str) -> tuple[float, float | None]:
    first, dots, last = text.partition("..")
    begin, end = time_us(first) if first else 0.0, time_us(last) if last else None
    if not dots or (end is not None and end <= begin):
        raise argparse.ArgumentTypeError(f"'{text}' is no window; say 10ms..30ms")
    return begin, end


def _program(arguments: argparse.Namespace) -> run.ProgramSpec:
    if arguments.trace and arguments.synth:
        raise UserError(f"{arguments.trace[0]} and --synth {arguments.synth}: one program is replayed; leave one out")
    if not arguments.trace and not arguments.synth:
        raise UserError("name a trace, or a made-up program: --synth " + "|".join(_names("sim_programs")))
    options = synth_options(arguments, arguments.synth or "")
    if arguments.synth:
        return run.ProgramSpec(synth=arguments.synth, options=options)
    if options:
        raise UserError("a trace is replayed as it is: --ranks, --iterations and the like are for --synth")
    return run.ProgramSpec(paths=tuple(arguments.trace))


def _said(a: argparse.Namespace) -> dict[str, list[Any]]:
    """The options of policies and cores that were given, each with its values."""
    several = ("lead", "threshold")
    one = ("budget", "idle_timer", "deep_timer", "call_cost", "core_timer", "core_state", "frequency", "memory_share",
           "compress", "compress_only")  # fmt: skip
    said = {name: getattr(a, name) for name in several if getattr(a, name)}
    said |= {name: [value] for name in one if (value := getattr(a, name)) is not None}
    flags = ("rest_switches", "rest_cards", "edge_only", "published_cost", "no_cap_by_first")
    return said | {name: [True] for name in flags if getattr(a, name)}


def _expect_effect(a: argparse.Namespace) -> None:
    """UserError for options that concern none of the policies, or of the ways that cores wait."""
    for option in _said(a):
        if any(concerns(option, policy, cores) for policy in a.policy for cores in a.cores):
            continue
        tables = (("--policy", POLICIES), ("--cores", CORES))
        of = [f"{flag} {' or '.join(table[option])}" for flag, table in tables if option in table]
        why = f"it is for {' or '.join(of)}" if of else "with --policy always-on no link rests"
        raise UserError(f"--{option.replace('_', '-')} would do nothing: {why}")
    if a.compress_only is not None and a.compress is None:
        raise UserError("--compress-only would do nothing: say with --compress how much messages shrink")


def cases(arguments: argparse.Namespace) -> list[Case]:
    """Every policy with every value of the options that concern it, for every way of waiting."""
    known = _names("sim_policies")
    said = _said(arguments)
    out: list[Case] = []
    for cores in arguments.cores:
        for policy in arguments.policy:
            if policy not in known:
                raise UserError(f"no policy is called '{policy}'; there are: {', '.join(known)}")
            concerned = {option: values for option, values in said.items() if concerns(option, policy, cores)}
            for chosen in product(concerned | {"cores": [cores]}):
                case = Case(policy, native_options(chosen))
                out += [case] if case not in out else []
    return out


def _study(arguments: argparse.Namespace) -> Study:
    for option in ("cores", "core_state", "topology"):
        for word in [getattr(arguments, option) or ""] if option != "cores" else arguments.cores:
            flag = "--" + option.replace("_", "-")
            native.in_utf8(Path(word), f"fallow sim --help says what {flag} takes")
    _expect_effect(arguments)
    spec = _program(arguments)
    said = {name: getattr(arguments, name) for name in ("topology", "ranks_per_node", "network", "cpu_speed")}
    where = MachineSpec(arguments.platform, machine_settings(said, spec.open().ranks))
    return run.study(spec, where, cases(arguments), run.Wanted(window=_drawn(arguments)), arguments.threads)


def _drawn(arguments: argparse.Namespace) -> Window | None:
    """What a timeline is to show; None: none was asked for."""
    if arguments.timeline is None and arguments.html is None:
        if arguments.window is not None or arguments.timeline_ranks is not None:
            raise UserError("--window and --timeline-ranks are of timelines: add --html FILE or --timeline FILE")
        return None
    most = _MOST_SPANS_PAGE if arguments.timeline is None else _MOST_SPANS_FILE
    begin, end = arguments.window or (0.0, None)
    return Window(begin, end, ranks=arguments.timeline_ranks or _TIMELINE_RANKS, most=most)


def _expect_window(study: Study, window: Window | None) -> None:
    """UserError where the window begins after all has ended."""
    last = max(o.run_time_s for o in study.outcomes)
    if window is not None and window.from_us * 1e-6 > last:
        raise UserError(f"--window begins at {seconds(window.from_us * 1e-6)}; the runs have ended by {seconds(last)}")


def _write_timeline(study: Study, path: Path) -> None:
    drawn = [(o.case.label, o.timeline) for o in study.outcomes if o.timeline]
    if path.suffix == ".prv":
        slowed = study.outcomes[-1].case.options.get("core") in ("countdown", "throttle")
        timeline.write_paraver(drawn[-1][1], study.program.name, study.machine["ranks_per_node"], path, slowed=slowed)
    else:
        timeline.write_perfetto(drawn, path)
    until = min((t.complete_until_ns for _, t in drawn if t.complete_until_ns is not None), default=None)
    if until is not None:
        print(
            f"fallow: NOTE: {path}: drawn until {seconds(until * 1e-9)}; choose a later part with --window",
            file=sys.stderr,
        )


def _run(arguments: argparse.Namespace) -> int:
    if arguments.timeline and arguments.timeline.suffix not in (".json", ".prv"):
        raise UserError(f"{arguments.timeline}: a timeline is written as .json (Perfetto) or .prv (Paraver)")
    expect_room(arguments.html, arguments.timeline)
    platform = [Path(arguments.platform)] if arguments.platform.endswith(".toml") else []
    expect_apart((arguments.html, arguments.timeline), [*arguments.trace, *platform])
    found = _study(arguments)
    _expect_window(found, _drawn(arguments))
    if arguments.timeline:
        _write_timeline(found, arguments.timeline)
    if arguments.json:
        print(json_text.dumps(text.as_dict(found)))
    elif arguments.html:
        deliver(arguments.html, page.page(found))
    else:
        for line in text.lines(found, Style.of(sys.stdout)):
            print(line)
    return 0
