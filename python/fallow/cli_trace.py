"""`fallow trace info|cut|merge|convert`: look into traces and hand them on."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from fallow import files, native
from fallow.errors import UserError
from fallow.help_text import HelpFormatter
from fallow.progress import Bar
from fallow.quantities import named_path, rank_list, time_ns
from fallow.text import Style, note, plural, seconds, table
from fallow.traces import convert
from fallow.traces.found import find_files, find_parts, numbered
from fallow.traces.model import FileSource

_EPILOG = """\
examples:
  fallow trace info OUT                       calls, gaps and size of the trace recorded into OUT
  fallow trace merge OUT -o run.ftr           one file of the parts that the ranks wrote
  fallow trace cut run.ftr --from 1s --to 2s -o middle.ftr
  fallow trace convert run.ftr -o run.prv     by the ending, or with --to paraver
  fallow trace convert traces.otf2 -o run.ftr

formats: fallow .ftr, otf2 (a new directory), paraver .prv, dimemas .dim, simgrid .tit, and for writing only
perfetto .json, parquet .parquet, goal .goal
"""
_EXAMPLES = {
    "info": """\
  fallow trace info OUT                  a directory with the parts that the ranks wrote
  fallow trace info run.ftr --json | jq '.operations[0]'""",
    "merge": """\
  fallow trace merge OUT -o run.ftr      easier to keep, and faster to open than the parts; of several programs,
                                         where a run was cut off: run.ftr, run2.ftr, ...
  fallow trace merge OUT/trace-0*.ftr -o some.ftr""",
    "cut": """\
  fallow trace cut run.ftr --from 1s --to 2s -o middle.ftr
  fallow trace cut run.ftr --ranks 0,4-7 -o few.ftr

What was cut out is for looking at and for `fallow predict`. A replay (`fallow sim`) needs the whole run: messages to
other ranks, and those that cross the window's ends, would be waited for in vain.""",
    "convert": """\
  fallow trace convert run.ftr -o run.prv                 the format by the ending
  fallow trace convert run.ftr --to otf2 -o run-otf2      a new directory, for Vampir or Scalasca
  fallow trace convert scorep/traces.otf2 -o run.ftr      the other way

What a format cannot carry is said on stderr, once each.""",
}
_END_NS = (1 << 62) - 1


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    top = commands.add_parser(
        "trace", help="look into, cut, merge and convert traces", description="Looks into traces and hands them on.",
        epilog=_EPILOG, formatter_class=HelpFormatter,
    )  # fmt: skip
    parts = top.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def part(name: str, text: str, action: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        p = parts.add_parser(
            name, help=text, description=text[0].upper() + text[1:] + ".", epilog="examples:\n" + _EXAMPLES[name],
            formatter_class=HelpFormatter,
        )  # fmt: skip
        p.add_argument(
            "trace", nargs="+", type=named_path, metavar="TRACE", help="a trace, its parts, or a directory with them"
        )
        p.set_defaults(action=action)
        return p

    info = part("info", "show ranks, calls, gaps and size", _info)
    info.add_argument("--json", action="store_true", help="as JSON")
    merge = part("merge", "make one file of the parts that ranks wrote", _merge)
    cut = part("cut", "keep a window of time or some ranks", _cut)
    cut.add_argument(
        "--from",
        dest="from_ns",
        type=_time,
        default=0,
        metavar="TIME",
        help="first instant, e.g. 1.5s or 300ms (default: 0)",
    )
    cut.add_argument(
        "--to", dest="to_ns", type=_time, default=_END_NS, metavar="TIME", help="end of the window (default: the end)"
    )
    cut.add_argument(
        "--ranks", type=rank_list, default=[], metavar="LIST", help="ranks to keep, e.g. 0,4-7 (default: all)"
    )
    other = part("convert", "write another tool's format, or read one", _convert)
    names = [f.name for f in convert.FORMATS]
    other.add_argument(
        "--from", dest="source", choices=names, metavar="FORMAT", help="format of TRACE (default: by its name)"
    )
    other.add_argument(
        "--to", dest="target", choices=names, metavar="FORMAT", help="format to write (default: by its name)"
    )
    for p in (merge, cut, other):
        p.add_argument("-o", "--output", type=named_path, required=True, metavar="FILE", help="file to write")


def _time(text: str) -> int:
    return round(time_ns(text))


def _open(paths: list[Path]) -> FileSource:
    source = FileSource(find_files(paths))
    _tell_problems(source)
    return source


def _tell_problems(source: FileSource) -> None:
    for problem in source.reader.problems():
        print(f"fallow: NOTE: {problem}", file=sys.stderr)


def _native_errors(action: Callable[[], Any]) -> Any:  # noqa: ANN401  # whatever the action returns
    try:
        return action()
    except (ValueError, OverflowError) as error:
        raise UserError(str(error)) from None


def _summary(source: FileSource) -> dict[str, Any]:
    s = _native_errors(source.reader.statistics)
    events = s["events"]
    return {
        "program": source.info.program,
        "mpi_version": source.info.mpi_version,
        "ranks": source.info.size,
        "hosts": len(set(source.info.hosts) - {""}),
        "clock": source.info.clock,
        "start_wall_ns": source.info.start_wall_ns,
        "duration_s": (s["last_ns"] - s["first_ns"]) * 1e-9,
        "events": events,
        "events_dropped": s["dropped"],
        "ranks_incomplete": s["incomplete_ranks"],
        "ranks_empty": s["empty_ranks"],
        "size_bytes": s["stored_bytes"],
        "bytes_per_event": s["stored_bytes"] / events if events else None,
        "mpi_s": s["mpi_ns"] * 1e-9,
        "compute_s": s["compute_ns"] * 1e-9,
        "communicators": len(source.info.comms),
        "sites": len(source.info.sites),
        "operations": [
            {"name": name, "calls": calls, "size_bytes": size, "time_s": time * 1e-9, "wait_s": wait * 1e-9}
            for name, calls, size, time, wait in sorted(s["ops"], key=lambda row: -row[3])
        ],
        "gaps": [
            {"from_s": low * 1e-9, "below_s": high * 1e-9 if high else None, "count": count, "time_s": time * 1e-9}
            for low, high, count, time in s["gaps"]
        ],
        "problems": source.reader.problems(),
    }


def _bin_name(gap: dict[str, Any]) -> str:
    low, high = round(gap["from_s"] * 1e6), gap["below_s"]
    if high is None:
        return f">= {low} us"
    return f"{low}-{round(high * 1e6)} us" if low else f"< {round(high * 1e6)} us"


def _info_lines(d: dict[str, Any], style: Style) -> Iterator[str]:
    title = style.safe(d["program"] or "(program unknown)")
    yield style.paint(title[: style.width] if style.breaks else title, "bold")
    for words in _sums(d):
        yield from note(words, style, "  ", "    ")
    yield ""
    rows = [
        [op["name"], str(op["calls"]), str(op["size_bytes"]), f"{op['time_s']:.6f}", f"{op['wait_s']:.6f}"]
        for op in d["operations"]
    ]
    yield from _columns(["operation", "calls", "bytes", "time s", "wait s"], rows, style)
    total = sum(g["count"] for g in d["gaps"])
    total_s = sum(g["time_s"] for g in d["gaps"])
    rows = [
        [
            _bin_name(gap),
            str(gap["count"]),
            f"{100 * gap['count'] / total if total else 0.0:.2f}",
            f"{gap['time_s']:.6f}",
            f"{100 * gap['time_s'] / total_s if total_s else 0.0:.2f}",
        ]
        for gap in d["gaps"]
    ]
    yield ""
    yield from _columns(["gaps between calls", "count", "%", "time s", "%"], rows, style)
    if d["clock"] == "cpu":
        words = "gaps as they passed, with waiting for a core; fallow predict takes the CPU time"
        yield from (style.paint(line, "dim") for line in note(words, style, "  ", "  "))


def _columns(header: list[str], rows: list[list[str]], style: Style) -> Iterator[str]:
    """A table, of a heading alone where there is nothing."""
    yield from (f"  {line}" for line in table(header, rows, style) or [style.paint(header[0], "dim")])


def _sums(d: dict[str, Any]) -> Iterator[str]:
    """What is to be said of the whole trace."""
    where = plural(d["ranks"], "rank") + (f" on {plural(d['hosts'], 'host')}" if d["hosts"] else "")
    yield f"{where}, {d['duration_s']:.6g} s, computation by {d['clock']} clock"
    per_event = f", {d['bytes_per_event']:.2f} bytes per event" if d["events"] else ""
    yield f"{plural(d['events'], 'event')} in {d['size_bytes']} bytes{per_event}"
    yield f"{plural(d['communicators'], 'communicator')} beside the world, {plural(d['sites'], 'call site')}"
    if d["events_dropped"]:
        yield f"{plural(d['events_dropped'], 'event')} not recorded, as they came too fast: gaps there are too long"
    if d["ranks_empty"]:
        yield f"without events: {plural(d['ranks_empty'], 'rank')}"
    if d["ranks_incomplete"]:
        yield f"read up to the last whole block, as its end is missing: {plural(d['ranks_incomplete'], 'rank')}"


def _info(arguments: argparse.Namespace) -> int:
    summary = _summary(_open(arguments.trace))
    if arguments.json:
        print(json.dumps(summary, indent=1))
        return 0
    for line in _info_lines(summary, Style.of(sys.stdout)):
        print(line)
    return 0


def _expect_other(paths: list[Path], output: Path) -> None:
    """UserError where the output is one of the files that are read, by whatever name."""
    read = [file for path in paths for file in (path.glob("trace*.ftr") if path.is_dir() else [path])]
    if output in paths or any(output.exists() and file.exists() and output.samefile(file) for file in read):
        raise UserError(f"{output}: would be written over itself; give another name with -o")


def _merge(arguments: argparse.Namespace) -> int:
    convert.expect_own(arguments.output)
    if len(arguments.trace) > 1:
        _expect_other(arguments.trace, arguments.output)
    starts = find_parts(arguments.trace[0]) if len(arguments.trace) == 1 else []
    several = len(starts) > 1
    traces = starts if several else [find_files(arguments.trace)]
    targets = [numbered(arguments.output, n) for n in range(1, len(traces) + 1)]
    for file in targets[1:]:
        if file.exists():
            raise UserError(f"{file} is there already; remove it or give another name with -o")
    for paths, file in zip(traces, targets, strict=True):
        source = _open(paths)
        _native_errors(partial(source.reader.merge, native.file_name(file)))
        if several:
            program = Style.of(sys.stderr).safe(source.info.program) or "an unknown program"
            print(f"fallow: trace {file}: {plural(source.info.size, 'rank')} of {program}", file=sys.stderr)
    return 0


def _cut(arguments: argparse.Namespace) -> int:
    convert.expect_own(arguments.output)
    _expect_other(arguments.trace, arguments.output)
    source = _open(arguments.trace)
    missing = [r for r in arguments.ranks if r >= source.info.size]
    if missing:
        raise UserError(f"rank {missing[0]} is not in this trace of {source.info.size} ranks")
    if arguments.from_ns >= arguments.to_ns:
        raise UserError("--from must be before --to")
    length_ns = _native_errors(source.reader.statistics)["last_ns"]
    if arguments.from_ns > length_ns:
        raise UserError(f"--from is after the end of the trace: its last call ends at {seconds(length_ns * 1e-9)}")
    _native_errors(
        lambda: source.reader.cut(
            native.file_name(arguments.output), arguments.from_ns, arguments.to_ns, arguments.ranks
        )
    )
    if not FileSource([arguments.output]).calls:
        whose = "of these ranks " if arguments.ranks else ""
        print(f"fallow: NOTE: no call {whose}begins in this window: {arguments.output} has none", file=sys.stderr)
    return 0


def _convert(arguments: argparse.Namespace) -> int:
    files.expect_name(arguments.output)
    _expect_other(arguments.trace, arguments.output)
    source = convert.open_source(arguments.trace, arguments.source)
    if isinstance(source, FileSource):
        _tell_problems(source)
    bar = Bar("converting")
    try:
        lost = convert.convert(source, arguments.output, arguments.target, bar.show)
    finally:
        bar.close()
    for line in lost:
        print(f"fallow: NOTE: {line}", file=sys.stderr)
    return 0
