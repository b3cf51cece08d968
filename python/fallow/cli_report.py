"""`fallow report`: what a run did, in the terminal, as JSON or as a page."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from fallow import (
    analyse,
    compare,
    compare_html,
    compare_text,
    json_text,
    overview,
    overview_html,
    overview_text,
    pair_text,
    report_html,
    report_json,
    report_text,
    rundir,
)
from fallow.errors import UserError
from fallow.files import deliver
from fallow.help_text import HelpFormatter
from fallow.model import Report
from fallow.progress import Bar
from fallow.quantities import named_path
from fallow.text import Style

_EPILOG = """\
examples:
  fallow report                       the newest run in this directory
  fallow report RUN --html            writes RUN/report.html, one file that opens without a network
  fallow report RUN RUN2 --html both.html
                                      two runs side by side
  fallow report RUNS --html           what all runs in a directory did and saved together, and each program
  fallow report COMPARISON --html     what `fallow run --compare N` found, every run as a point
  fallow report RUN --json | jq .totals
"""


class _Html(argparse.Action):
    """Keeps how many runs were named before it: what follows it may be a run, too."""

    def __call__(self, _parser: object, namespace: argparse.Namespace, values: object, _option: object = None) -> None:
        namespace.html = values
        namespace.html_at = len(namespace.runs or [])


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    p = commands.add_parser(
        "report",
        help="show what a run did and saved",
        description="Shows what a run did and saved: time, waits, energy, by rank, function and call site. Of many "
        "runs: together, by program, and run by run.",
        epilog=_EPILOG,
        formatter_class=HelpFormatter,
    )
    p.add_argument(
        "runs", nargs="*", type=named_path, metavar="RUN",
        help="run directory (default: the newest); of two, both side by side; of more, or of a directory that holds "
        "runs, what they did and saved together",
    )  # fmt: skip
    p.add_argument(
        "--platform", metavar="NAME",
        help="machine to model energy on: a name or a TOML file, see fallow doctor (default: the run's, or the machine "
        "found there, at a server's watts)",
    )  # fmt: skip
    form = p.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON; its schema is part of the documentation")
    form.add_argument(
        "--html",
        action=_Html,
        nargs="?",
        type=named_path,
        const=True,
        metavar="FILE",
        help="write one self-contained page; - is standard output (default: RUN/report.html)",
    )
    p.set_defaults(action=_run)


def _made_ns(run: Path) -> int:
    """When a run ended or began. The directory itself changes later, too: pages are written into it."""
    records = [run / name for name in (rundir.RUN_FILE, compare.FILE)]
    return next((p for p in records if p.exists()), run).stat().st_mtime_ns


def newest(directory: Path) -> Path:
    """The newest run directory in `directory`."""
    runs = [p for p in directory.glob("fallow-run-*") if p.is_dir()]
    if not runs:
        raise UserError("no fallow-run-* directory here; name one, or make one: fallow run -- COMMAND")
    return max(runs, key=lambda p: (_made_ns(p), p.name))


def _print(reports: list[Report]) -> None:
    style = Style.of(sys.stdout)
    if len(reports) == 2:
        for line in pair_text.lines(reports[0], reports[1], style):
            print(line)
        for name, report in zip("AB", reports, strict=True):
            problems = list(report_text.warnings(report, style))
            if problems:
                print("\n".join([f"\n{name}:", *problems]))
        return
    for line in report_text.lines(reports[0], style):
        print(line)


def _show_comparison(arguments: argparse.Namespace, directory: Path) -> int:
    comparison = compare.read(directory)
    if arguments.html is not None:
        target = arguments.html if isinstance(arguments.html, Path) else directory / "report.html"
        deliver(target, compare_html.page(comparison))
    elif arguments.json:
        print(json.dumps(compare.as_dict(comparison), indent=1))
    else:
        for line in compare_text.lines(comparison, Style.of(sys.stdout)):
            print(line)
    return 0


def _show_overview(arguments: argparse.Namespace, paths: list[Path], every: list[Path]) -> int:
    if arguments.html is True and len(paths) > 1:
        raise UserError("--html: name the page's file; of several directories none is the one that it belongs to")
    bar = Bar("reading runs")
    try:
        found = overview.read(every, arguments.platform, bar.show)
    finally:
        bar.close()
    if arguments.json:
        print(json_text.dumps(overview.as_dict(found)))
    elif arguments.html is not None:
        target = arguments.html if isinstance(arguments.html, Path) else paths[0] / "report.html"
        deliver(target, overview_html.page(found))
    else:
        for line in overview_text.lines(found, Style.of(sys.stdout)):
            print(line)
    return 0


def _run(arguments: argparse.Namespace) -> int:
    if isinstance(arguments.html, Path) and arguments.html.is_dir():  # fallow report --html RUN
        arguments.runs.insert(arguments.html_at, arguments.html)
        arguments.html = True
    paths = arguments.runs or [newest(Path())]
    below = [overview.runs_in(path) for path in paths]
    if len(paths) > 2 or any(below):
        every = [run for path, found in zip(paths, below, strict=True) for run in found or [path]]
        return _show_overview(arguments, paths, every)
    if len(paths) == 1 and (paths[0] / compare.FILE).is_file():
        if arguments.platform:
            raise UserError(f"{paths[0]} is a comparison, modelled when it was made; --platform is for one of its runs")
        return _show_comparison(arguments, paths[0])
    for path in paths:
        if (path / compare.FILE).is_file():
            raise UserError(f"{path} is a comparison; name one of its runs: {path}/01-...")
        if why := compare.unfinished(path):
            raise UserError(f"{path}: {why}")
    reports = [analyse.load(path, arguments.platform) for path in paths]
    if arguments.json:
        print(report_json.dumps(reports))
    elif arguments.html is not None:
        target = arguments.html if isinstance(arguments.html, Path) else paths[-1] / "report.html"
        deliver(target, report_html.page(reports))
    else:
        _print(reports)
    return 0
