"""`fallow sweep`: many simulations, on this machine or a cluster, resumable."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from fallow.errors import UserError
from fallow.files import deliver, expect_room
from fallow.help_text import HelpFormatter
from fallow.quantities import named_path
from fallow.sweep import execute, summary
from fallow.sweep.point import describe
from fallow.sweep.store import Row, Store
from fallow.sweep.study import SweepStudy, read
from fallow.text import Style, plural

_EPILOG = """\
examples:
  fallow sweep study.toml                     as many processes as there are cores; again after a kill
  fallow sweep study.toml --html              and a page: what each point saves against what it costs
  fallow sweep study.toml --on slurm:20       20 jobs, as the study's table [slurm] says
  fallow sweep study.toml --on dask://head:8786

a study:
  traces = ["bt.ftr", "mg.ftr"]       # and, or instead, made-up programs:
  [[synth]]
  program = "stencil3d"
  ranks = [64, 512]
  [machine]
  platform = "minotauro"
  ranks_per_node = [1, 6]
  [policy]
  policy = ["hardware", "pps", "adaptive", "oracle"]
  lead = ["1%", "5%", "10%"]

Every list multiplies. Results are kept in STUDY.results/results.parquet; a sweep that was killed goes on where it
was when it is started again. Points that fail are kept with the reason; the others go on. Rows of what has been taken
out of the study are kept, too; --results DIR begins anew.

The exit status is 0 if all points are done, 1 if some failed, and 2 if none could be simulated.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    p = commands.add_parser(
        "sweep", help="many simulations, here or on a cluster, resumable",
        description="Runs all simulations of a study, on this machine or a cluster.",
        epilog=_EPILOG, formatter_class=HelpFormatter,
    )  # fmt: skip
    p.add_argument("study", type=named_path, metavar="STUDY.toml", help="programs, machines and policies")
    p.add_argument(
        "--on", default="local", metavar="PLACE",
        help="local[:N], N processes here; slurm[:N], N jobs; dask://HOST:PORT, a scheduler (default: local)",
    )  # fmt: skip
    p.add_argument("--results", type=named_path, metavar="DIR", help="where results are kept (default: STUDY.results)")
    p.add_argument("--retry-failed", action="store_true", help="simulate points again that failed")
    p.add_argument(
        "--html", nargs="?", type=named_path, const=True, metavar="FILE",
        help="write one self-contained page at the end; - is standard output (default: results.html in DIR)",
    )  # fmt: skip
    p.add_argument("--dry-run", action="store_true", help="count the points and stop")
    p.set_defaults(action=_run)


def _point(row: Mapping[str, Any]) -> str:
    """The point in the study's words: which program on which machine under which policy."""

    def chosen(prefix: str) -> str:
        said = [f"{k.removeprefix(prefix)} {v}" for k, v in row.items() if k.startswith(prefix) and v is not None]
        return f" ({', '.join(said)})" if said else ""

    named = (("program", "synth_"), ("platform", "machine_"), ("policy", "option_"))
    return ", ".join(f"{row[name]}{chosen(prefix)}" for name, prefix in named)


def _run(arguments: argparse.Namespace) -> int:
    place = execute.Place.parse(arguments.on)
    study = read(arguments.study)
    if arguments.dry_run:
        print(f"{study.name}: {plural(len(study.points), 'point')}")
        return 0
    page = arguments.html if isinstance(arguments.html, Path) else None
    expect_room(page)
    with contextlib.closing(Store(arguments.results or arguments.study.with_suffix(".results"))) as store:
        told = sys.stderr if str(page) == "-" else sys.stdout
        rows, failed = _sweep(study, store, place, told, retry=arguments.retry_failed)
        if arguments.html is not None:
            deliver(page or store.directory / "results.html", summary.page(study.name, rows, str(store.directory)))
        return 1 if failed else 0


def _sweep(
    study: SweepStudy, store: Store, place: execute.Place, told: TextIO, *, retry: bool
) -> tuple[list[Row], int]:
    """The rows of the study's points, compared with always-on, and how many of them failed."""
    try:
        done, failed = execute.sweep(study, store, place, retry=retry)
    except KeyboardInterrupt:
        print(f"fallow: stopped; the same command goes on where this was: {store.directory}", file=sys.stderr)
        raise
    ids = [point.id for point in study.points]
    target = store.finish(ids)
    rows = [describe(point) | row for point, row in zip(study.points, store.compared(ids), strict=True)]
    print(f"{study.name}: {plural(done, 'point')} done, {failed} failed: {target}", file=told)
    for line in summary.lines(rows, Style.of(told)):
        print(line, file=told)
    if earlier := len(store.rows) - len(study.points):
        print(f"fallow: NOTE: {plural(earlier, 'row')} there of earlier forms of the study, too", file=sys.stderr)
    doubtful = [row for row in rows if row.get("notes")]
    for row in doubtful[:1]:
        of = f"of {plural(len(doubtful), 'point')}; see the column notes; the first: " if len(doubtful) > 1 else ""
        print(f"fallow: NOTE: {of}{_point(row)}: {row['notes']}", file=sys.stderr)
    for row in rows:
        if row["status"] != "done":
            print(f"fallow: {_point(row)}: {row['error']}", file=sys.stderr)
            if failed > 1:
                print(f"fallow: and {failed - 1} more; see the column error", file=sys.stderr)
            break
    if done == 0:
        raise UserError("no point could be simulated")
    return rows, failed
