"""`fallow doctor`: what was found here and what is missing."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fallow import coverage, doctor, mpis, text
from fallow.doctor import Finding
from fallow.help_text import HelpFormatter
from fallow.progress import Bar
from fallow.text import Style

if TYPE_CHECKING:
    from fallow.resttest import RestTest

_EPILOG = """\
examples:
  fallow doctor                       meters, controls, MPIs and limits found on this machine
  fallow doctor --rest                also try whether cores that rest compute more slowly; half a minute
  fallow doctor --coverage            how each MPI function is treated, for every MPI built
  fallow doctor --coverage openmpi    for one of openmpi, mpich, mpiabi

treatments: "waits sleep", "rests in loops" (of tests that do nothing else), "passes through" (is recorded, and left
alone), "not wrapped" (neither communicates nor waits, or is an extension of that MPI alone: Fallow does not see it).

The exit status is 0 if Fallow can do its main work here, else 1.
"""
_MARKS = {doctor.OK: ("✓", "+", "green"), doctor.NOTE: ("·", "-", "dim"), doctor.MISSING: ("✗", "!", "red")}


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    p = commands.add_parser(
        "doctor",
        help="show what of this machine Fallow can use",
        description="Shows meters, controls, MPIs and permissions found here, what is missing and how to get it.",
        epilog=_EPILOG,
        formatter_class=HelpFormatter,
    )
    p.add_argument(
        "--coverage", nargs="?", const="all", choices=("all", *coverage.FAMILIES), metavar="FAMILY",
        help="list every MPI function and how it is treated (openmpi, mpich, mpiabi; default: all)",
    )  # fmt: skip
    p.add_argument(
        "--rest", action="store_true",
        help="also try, in half a minute, whether computation gets slower on cores that rest now and then",
    )  # fmt: skip
    p.add_argument("--json", action="store_true", help="as JSON")
    p.set_defaults(action=_run)


def _lines(findings: list[Finding], style: Style) -> Iterator[str]:
    group = ""
    width = max((len(f.name) for f in findings), default=0)
    indent = " " * (width + 6)
    for f in findings:
        if f.group != group:
            if group:
                yield ""
            group = f.group
            yield style.paint(group, "bold")
        wide, plain, colour = _MARKS[f.state]
        mark = style.paint(wide if style.unicode else plain, colour)
        first, *rest = text.paragraph(style.safe(f.found), style, indent, indent) or [""]
        yield f"  {mark} {f.name:<{width}}  {first.removeprefix(indent)}"
        yield from rest
        if f.remedy and f.state != doctor.OK:
            for line in text.paragraph(f"> {f.remedy}", style, indent, indent + "  "):
                yield style.paint(line, "dim")


def _function_lines(f: coverage.Function, column: int, style: Style) -> Iterator[str]:
    """One line in files and pipes, where they are searched; what has no room on a terminal goes on below."""
    sleeps = "sleep" in f.treatment or "rests" in f.treatment
    shown, used = f"    {f.name}", 4 + len(f.name)
    for at, words, colour in ((column, f.treatment, ["green"] if sleeps else []), (column + 28, f.why, ["dim"])):
        begin = max(at, used + 2)
        if not words or not style.breaks or begin + len(words) <= style.width:
            shown += " " * (begin - used) + style.paint(words, *colour) if words else ""
            used = begin + len(words)
            continue
        yield shown
        *first, last = text.paragraph(words, style, "      ", "      ")
        yield from (style.paint(line, *colour) for line in first)
        shown, used = style.paint(last, *colour), len(last)
    yield shown


def _coverage_lines(family: str, functions: list[coverage.Function], style: Style) -> Iterator[str]:
    yield style.paint(mpis.NAMES[family], "bold")
    name_width = max((len(f.name) for f in functions), default=0)
    for kind, group in coverage.by_kind(functions):
        yield ""
        yield style.paint(f"  {kind.replace('_', ' ')} ({len(group)})", "bold")
        for f in group:
            yield from _function_lines(f, 4 + name_width + 2, style)
    yield ""
    for treatment, count in coverage.treatments(functions).items():
        yield f"  {count:5} {treatment}"
    yield f"  {len(functions):5} functions"


def _run_coverage(arguments: argparse.Namespace) -> int:
    lists = coverage.load(None if arguments.coverage == "all" else arguments.coverage)
    if arguments.json:
        print(json.dumps({f: [dataclasses.asdict(x) for x in rows] for f, rows in lists.items()}, indent=1))
        return 0
    style = Style.of(sys.stdout)
    for number, (family, functions) in enumerate(lists.items()):
        if number:
            print()
        for line in _coverage_lines(family, functions, style):
            print(line)
    return 0


def _try_resting() -> Finding:
    resttest = importlib.import_module("fallow.resttest")  # only here: it loads much that others do without
    bar = Bar("computing, with and without rests")
    try:
        test: RestTest = resttest.measure(bar.show)
        return doctor.resting(test)
    finally:
        bar.close()


def _run(arguments: argparse.Namespace) -> int:
    if arguments.coverage is not None:
        return _run_coverage(arguments)
    findings = doctor.examine()
    if arguments.rest:
        findings.append(_try_resting())
    works = doctor.works(findings)
    if arguments.json:
        told = [dataclasses.replace(f, remedy="") if f.state == doctor.OK else f for f in findings]
        print(json.dumps({"works": works, "findings": [dataclasses.asdict(f) for f in told]}, indent=1))
    else:
        style = Style.of(sys.stdout)
        for line in _lines(findings, style):
            print(line)
        if not works:
            mark = _MARKS[doctor.MISSING][0 if style.unicode else 1]
            print(f"\nFallow cannot rest waiting cores here; the lines marked {mark} say why.")
    return 0 if works else 1
