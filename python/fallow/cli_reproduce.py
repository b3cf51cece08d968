"""`fallow reproduce`: published results beside ours."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from fallow.errors import UserError
from fallow.files import expect_room, save
from fallow.help_text import HelpFormatter
from fallow.quantities import named_path, threads, whole
from fallow.reproduce import dickov2015, document, record

_EPILOG = """\
examples:
  fallow reproduce dickov2015 --record --programs build/examples/mpicc.openmpi
                              records what is missing (long: minutes a trace), then replays all
  fallow reproduce dickov2015 --traces traces -o report
                              replays what is there, writes report.html, report.md and report.json
"""
_SUFFIXES = (".html", ".md", ".json")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    p = commands.add_parser(
        "reproduce", help="a publication's tables and figures, published beside ours",
        description="Records open programs, replays them on a publication's machine and compares.",
        epilog=_EPILOG, formatter_class=HelpFormatter,
    )  # fmt: skip
    p.add_argument("publication", choices=["dickov2015"], metavar="PUBLICATION", help="dickov2015")
    p.add_argument(
        "--traces", type=named_path, default=Path("traces"), metavar="DIR",
        help="where traces are kept (default: traces)",
    )  # fmt: skip
    p.add_argument("--record", action="store_true", help="record the traces that are missing there")
    p.add_argument("--programs", type=named_path, metavar="DIR", help="the built programs of examples/")
    p.add_argument(
        "--most-ranks",
        type=whole(1, 1 << 20),
        default=128,
        metavar="N",
        help="record with at most N ranks (default: 128)",
    )
    p.add_argument(
        "--launcher", default="mpirun.openmpi --oversubscribe -n {ranks}", metavar="COMMAND",
        help="starts the programs, {ranks} being their number (default: mpirun.openmpi --oversubscribe -n {ranks})",
    )  # fmt: skip
    p.add_argument(
        "--threads", type=threads, default=1, metavar="N",
        help="simulations that run at once; 0: one per processor (default: 1)",
    )
    p.add_argument(
        "-o",
        "--output",
        type=named_path,
        default=Path("dickov2015"),
        metavar="NAME",
        help="NAME.html, NAME.md and NAME.json are written",
    )
    p.set_defaults(action=_run)


def _chosen(most_ranks: int, traces: Path) -> list[record.Program]:
    """What is to be recorded; UserError where that is nothing, and nothing is there either."""
    programs = record.programs()
    chosen = [p.at_most(most_ranks) for p in programs]
    if not any(p.ranks for p in chosen) and not any(traces.glob("*.ftr")):
        fewest = min(n for p in programs for n in p.ranks)
        raise UserError(f"--most-ranks {most_ranks}: no program is recorded with so few; {fewest} is the least")
    return chosen


def _run(arguments: argparse.Namespace) -> int:
    notes = []
    if arguments.programs is not None and not arguments.programs.is_dir():
        raise UserError(f"{arguments.programs}: no such directory; --programs names that of the built examples")
    if not arguments.output.name:
        raise UserError(f"{arguments.output}: names no file; -o takes what names begin with, such as dickov2015")
    expect_room(*(arguments.output.with_name(arguments.output.name + suffix) for suffix in _SUFFIXES))
    if arguments.record:
        chosen = _chosen(arguments.most_ranks, arguments.traces)
        for line in record.record(chosen, arguments.traces, arguments.programs, arguments.launcher):
            print(line, flush=True)
            if "is left out" in line:
                notes.append(line + ".")
        if notes and not any(arguments.traces.glob("*.ftr")):
            more = f" ({len(notes) - 1} more stand above)" if len(notes) > 1 else ""
            raise UserError(f"{arguments.traces}: nothing could be recorded: {notes[0].rstrip('.')}{more}")
    results = dickov2015.collect(arguments.traces, arguments.threads)
    results.notes += notes
    report = dickov2015.document(results)
    texts = (document.page(report), document.markdown(report), json.dumps(document.as_dict(report), indent=1))
    for suffix, text in zip(_SUFFIXES, texts, strict=True):
        target = arguments.output.with_name(arguments.output.name + suffix)
        save(target, text)
        print(target)
    return 0
