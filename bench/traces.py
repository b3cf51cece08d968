"""Records the traces that predictors and the simulator are measured on: those that python/fallow/reproduce/programs.toml
lists for "bench".

usage: traces.py [--out DIR] [--ranks N,...] [--only NAME,...] [--again]

Computation is taken as CPU time, so more ranks than cores give the times of a core each. What is there already is kept.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from families import ROOT, found_families

from fallow.reproduce import record

TRACES = ROOT / "build" / "traces"


class NotHere(Exception):
    """The MPI that the programs are built for is not installed."""


def _build_examples(compiler: str) -> Path:
    """Builds the programs of examples/ that have changed; where they lie."""
    out = ROOT / "build" / "examples" / compiler
    subprocess.run(["make", "-s", "-C", str(ROOT / "examples"), f"MPICC={compiler}", f"BIN={out}"], check=True)
    return out


def _chosen(ranks: Iterable[int], only: Iterable[str]) -> list[record.Program]:
    wanted, counts = set(only), set(ranks)
    found = [p for p in record.programs("bench") if not wanted or p.name in wanted]
    return [replace(p, values={n: v for n, v in p.values.items() if not counts or n in counts}) for p in found]


def traces(out: Path = TRACES, ranks: Iterable[int] = (), only: Iterable[str] = (), again: bool = False) -> list[Path]:
    """Every trace that can be had here, recorded where it is not there yet. Says on stderr what cannot."""
    family = next((f for f in found_families() if f.name == "openmpi"), None)  # the real programs are built for it
    if family is None:
        raise NotHere("Open MPI is not installed: tools/install-packages build")
    os.environ.update(family.environment())
    chosen = _chosen(ranks, only)
    launcher = " ".join(family.launcher) + " -n {ranks}"
    for line in record.record(chosen, out, _build_examples(family.compiler), launcher, again):
        print(f"  {line}", file=sys.stderr, flush=True)
    return [file for p in chosen for n in p.ranks if (file := p.trace(out, n)).exists()]


def main() -> int:
    """Records what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=TRACES, help="where traces go (default build/traces)")
    parser.add_argument("--ranks", default="", help="only these numbers of ranks, comma between them")
    parser.add_argument("--only", default="", help="these programs, comma between them")
    parser.add_argument("--again", action="store_true", help="record what is there already anew")
    args = parser.parse_args()
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    ranks = [int(n) for n in args.ranks.split(",") if n]
    only = [n for n in args.only.split(",") if n]
    try:
        files = traces(args.out, ranks, only, args.again)
    except NotHere as error:
        print(f"traces: {error}", file=sys.stderr)
        return 2
    for file in files:
        print(f"{file.stat().st_size / 1e6:9.3f} MB  {file}")
    return 0 if files else 2


if __name__ == "__main__":
    sys.exit(main())
