"""`fallow predict`: what predictors would have rested and delayed on a recorded run."""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from fallow import json_text, native, predict_html, predict_study, predict_text
from fallow.errors import UserError
from fallow.files import deliver, expect_apart, expect_room
from fallow.help_text import HelpFormatter
from fallow.predict_model import PredictReport
from fallow.quantities import named_path, rank_list, share, threads, time_ns
from fallow.text import Style, seconds, size
from fallow.traces import convert, model
from fallow.traces.found import find_files

_EPILOG = """\
examples:
  fallow predict OUT                          all predictors; pps with the best of many thresholds
  fallow predict run.ftr --predictor adaptive,oracle --budget 0.5%
  fallow predict run.ftr --predictor pps --threshold 20us,200us --lead 1%,5%,10%
  fallow predict run.ftr --ranks 0-3 --html study.html
  fallow predict run.ftr --json | jq '.ways[] | {name, delay_share}'

A lasting rest is worth something only if the link is up again when it is needed: read rest together with delay.
Traces of other tools are read too: traces.otf2, x.prv, x.dim, x.tit.
"""
_SIZES = {"": 1, "k": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SPECIAL = ("react_down", "react_up", "threshold", "lead")
_LEAD = 0.05


def _error(text: str, example: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"'{text}' will not do; say {example}")


def _time(text: str) -> float:
    return float(round(time_ns(text)))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise _error(text, "a number") from None


def _bytes(text: str) -> float:
    try:
        return float(int(text.rstrip("kMG")) * _SIZES[text[len(text.rstrip("kMG")) :]])
    except (ValueError, KeyError):
        raise _error(text, "65536, 64k or 1M") from None


def _list(item: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    return lambda text: list(dict.fromkeys(item(part) for part in text.split(",")))


def _react(text: str) -> list[float]:
    times = [_time(part) for part in text.split(",")]
    if len(times) > 2:
        raise _error(text, "10us, or 10us,20us for down and up")
    return times


def _positive(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1 << 21:
        raise _error(text, "a number from 1 on")
    return int(text)


_TYPES: dict[str, Callable[[str], float]] = {
    "time": _time, "share": share, "number": _number, "count": _number, "bytes": _bytes,
}  # fmt: skip


def _default(unit: str, value: float) -> str:
    if unit == "time":
        return seconds(value * 1e-9).replace(" ", "")
    if unit == "share":
        return f"{100 * value:g}%".replace("%", "%%")
    if unit == "bytes":
        return f"{value / 1024:g}k" if value < 1 << 20 else f"{value / (1 << 20):g}M"
    return _whole_or_not(value)


def _whole_or_not(value: float) -> str:
    """A number as it is typed: no exponent where it is whole."""
    return f"{value:.15g}"


def _add_table(parser: argparse.ArgumentParser) -> None:
    """One flag for each row of the native table."""
    predictors: Any = native.part("predict")
    if predictors is None:
        return
    groups: dict[str, Any] = {}
    for name, heeded, unit, _, _, default, text in predictors.options():
        if name in _SPECIAL:
            continue
        group = groups.setdefault(heeded, parser.add_argument_group(f"options of {heeded.replace(' ', ' and ')}"))
        flag = _flag(name)
        if unit == "flag":
            group.add_argument(flag, dest=f"p_{name}", action=argparse.BooleanOptionalAction, default=None,
                               help=f"{text} [{'yes' if default else 'no'}]")  # fmt: skip
        else:
            group.add_argument(flag, dest=f"p_{name}", type=_TYPES[unit], metavar=unit.upper(),
                               help=f"{text} [{_default(unit, default)}]")  # fmt: skip


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    p = commands.add_parser(
        "predict", help="try predictors of rests on a trace", usage="%(prog)s [options] TRACE [TRACE ...]",
        description="Runs predictors over a recorded trace: what they would have rested, and the delay caused by it.",
        epilog=_EPILOG, formatter_class=HelpFormatter,
    )  # fmt: skip
    p.add_argument(
        "trace", nargs="+", type=named_path, metavar="TRACE", help="a trace, its parts, or a directory with them"
    )
    p.add_argument("--predictor", type=_list(str), metavar="LIST", help="oracle, last, pps, spps, adaptive [all]")
    p.add_argument("--threshold", type=_list(_time), default=[], metavar="LIST",
                   help="grouping thresholds of pps, e.g. 20us,200us [the best of 41]")  # fmt: skip
    p.add_argument("--lead", type=_list(share), metavar="LIST",
                   help="share of a gap by which pps, spps and last wake earlier, e.g. 1%%,5%% [5%%]")  # fmt: skip
    p.add_argument("--react", type=_react, default=[10e3], metavar="TIME",
                   help="time to go to rest and to come back; DOWN,UP where they differ [10us]")  # fmt: skip
    p.add_argument("--ranks", type=rank_list, default=[], metavar="LIST", help="only these ranks, e.g. 0,4-7")
    p.add_argument("--ranks-per-node", type=_positive, metavar="N",
                   help="ranks that share a link [those recorded on one node]")  # fmt: skip
    p.add_argument("--no-nodes", action="store_true", help="do not join the ranks of a node")
    p.add_argument("--no-cost", action="store_true", help="do not time the predictors")
    p.add_argument("--threads", type=threads, default=0, metavar="N",
                   help="threads to use; 0: one per processor [0]")  # fmt: skip
    form = p.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON; its schema is part of the documentation")
    form.add_argument(
        "--html", type=named_path, metavar="FILE", help="write one self-contained page with plots; - is standard output"
    )
    line = p.add_argument_group("timeline, in the page; in JSON if one of these is given")
    line.add_argument("--timeline-rank", type=int, metavar="RANK", help="whose calls to show [the first studied]")
    line.add_argument("--timeline-from", type=_time, metavar="TIME", help="where to begin, on the trace's clock")
    line.add_argument("--timeline-calls", type=_positive, metavar="N", help="calls to show [4000]")
    _add_table(p)
    p.set_defaults(action=_run)


def _expect_effect(predictors: list[str], given: set[str], options: dict[str, float]) -> None:
    """UserError for options that no predictor in question heeds, and for those that switch one off."""
    rows = predict_study.module().options()
    for name, heeded, *_ in rows:
        if name in given and not set(heeded.split()) & set(predictors):
            only = " or ".join(heeded.split())
            raise UserError(f"{_flag(name)} would do nothing: it is for {only}; add that to --predictor")
    values = {row[0]: row[5] for row in rows} | options
    if "spps" not in predictors:
        return
    if values["histogram_from"] >= values["histogram_to"]:
        raise UserError("--histogram-from must be less than --histogram-to, or spps finds no threshold")
    if values["demanded_share"] < values["demanded_least"]:
        raise UserError("--demanded-share must not be less than --demanded-least, or spps finds no threshold")
    bins = math.isqrt(int(values["sample_gaps"]))
    if values["alpha"] * values["bin_gaps"] < bins:
        raise UserError(
            f"--alpha times --bin-gaps must be at least {bins}, the number of bins (the root of --sample-gaps), or no "
            "bin may hold a gap and spps finds no threshold"
        )


def _shown(unit: str, value: float) -> str:
    """A bound as the user would type it."""
    if unit == "time":
        return seconds(value * 1e-9)
    if unit == "share":
        return f"{100 * value:g}%"
    return size(value) if unit == "bytes" else _whole_or_not(value)


def _expect_range(flag: str, name: str, values: Iterable[float]) -> None:
    """UserError for a value that the option `name` of the table does not take, which `flag` gave."""
    _, _, unit, least, most, *_ = next(row for row in predict_study.module().options() if row[0] == name)
    for value in values:
        if not least <= value <= most:
            raise UserError(f"{flag}: {_shown(unit, value)} is not from {_shown(unit, least)} to {_shown(unit, most)}")
        if unit == "count" and value != round(value):
            raise UserError(f"{flag}: {_whole_or_not(value)} is not a whole number")


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _wish(a: argparse.Namespace) -> predict_study.Wish:
    table = predict_study.module()
    known = [name for name, _ in table.predictors()]
    asked = a.predictor or known
    for name in asked:
        if name not in known:
            raise UserError(f"there is no predictor '{name}'; there are {', '.join(known)}")
    given = {row[0]: getattr(a, f"p_{row[0]}", None) for row in table.options()}
    options = {name: float(value) for name, value in given.items() if value is not None}
    for name, value in options.items():
        _expect_range(_flag(name), name, [value])
    _expect_effect(asked, {*options, *(name for name in ("threshold", "lead") if getattr(a, name))}, options)
    _expect_range("--threshold", "threshold", a.threshold)
    _expect_range("--react", "react_down", a.react)
    options |= {"react_down": a.react[0], "react_up": a.react[-1]}
    timeline = (a.timeline_rank, a.timeline_from, a.timeline_calls)
    asked_for = any(value is not None for value in timeline)
    if asked_for and a.html is None and not a.json:
        raise UserError("--timeline-rank, -from and -calls are of timelines: add --html FILE or --json")
    if a.timeline_rank is not None and a.timeline_rank < 0:
        raise UserError(f"--timeline-rank {a.timeline_rank}: ranks count from 0")
    if any(lead >= 1 for lead in a.lead or ()):
        raise UserError("--lead is a share from 0 to below 100 %: of a gap that is all lead nothing rests")
    if a.no_nodes and a.ranks_per_node:
        raise UserError("--no-nodes joins no ranks, --ranks-per-node says which: leave one out")
    return predict_study.Wish(
        predictors=asked,
        options=options,
        thresholds_ns=a.threshold,
        leads=a.lead or [_LEAD],
        ranks=a.ranks,
        ranks_per_node=0 if a.no_nodes else a.ranks_per_node,
        costs=not a.no_cost,
        timeline=a.html is not None or asked_for,
        timeline_rank=a.timeline_rank,
        timeline_from_ns=int(a.timeline_from or 0),
        timeline_calls=a.timeline_calls or 4000,
        threads=a.threads,
    )


def _native_trace(paths: list[Path], stack: ExitStack) -> list[Path]:
    """The trace as Fallow's own files; those of other tools are converted into a file that goes away again."""
    if len(paths) != 1 or convert.by_path(paths[0]).name == "fallow":
        return find_files(paths)
    directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fallow-predict-")))
    for line in convert.convert(convert.open_source(paths, None), directory / "trace.ftr", "fallow"):
        print(f"fallow: NOTE: {line}", file=sys.stderr)
    return [directory / "trace.ftr"]


def dumps(report: PredictReport) -> str:
    """The report as JSON."""
    return json_text.dumps(dataclasses.asdict(report))


def _run(arguments: argparse.Namespace) -> int:
    wish = _wish(arguments)
    expect_room(arguments.html)
    expect_apart([arguments.html], arguments.trace)
    with ExitStack() as stack:
        files = _native_trace(arguments.trace, stack)
        source = model.FileSource(files)
        for problem in source.reader.problems():
            print(f"fallow: NOTE: {problem}", file=sys.stderr)
        report = predict_study.study([str(f) for f in files], source.info, source.ranks, wish)
    named = dataclasses.replace(report.trace, paths=[str(p) for p in arguments.trace])
    shown = dataclasses.replace(report, trace=named)
    if arguments.json:
        print(dumps(shown))
    elif arguments.html is not None:
        deliver(arguments.html, predict_html.page(shown))
    else:
        for line in predict_text.lines(shown, Style.of(sys.stdout)):
            print(line)
    return 0
