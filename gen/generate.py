"""Generates the MPI wrappers of one family, or the preloaded library's jump table, from the installed mpi.h
and calls.toml. Output goes to the build tree; the same input gives the same bytes out.

usage: generate.py wrappers --family F --header mpi.h --out DIR [--compiler CC] [--include DIR]...
       generate.py preload  --out DIR --present coverage-FAMILY.json...
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from calls import load_table
from emit_preload import emit_preload
from emit_wrappers import emit_coverage, emit_wrappers
from prototypes import read_prototypes


def write(path: Path, text: str) -> None:
    """Leaves the file alone when nothing changed, so that nothing is rebuilt."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["wrappers", "preload"])
    parser.add_argument("--family", choices=["openmpi", "mpich", "mpiabi"])
    parser.add_argument("--header", default="mpi.h")
    parser.add_argument("--compiler", default="cc")
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--present", type=Path, nargs="*", default=[])
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    table = load_table(Path(__file__).resolve().parent / "calls.toml")
    if args.what == "preload":
        present = {row["name"] for file in args.present for row in json.loads(file.read_text())}
        for name, text in emit_preload(table, present).items():
            write(args.out / name, text)
        return 0
    prototypes = read_prototypes(args.compiler, args.header, args.include)
    for name, text in emit_wrappers(table, prototypes, args.header).items():
        write(args.out / name, text)
    coverage = emit_coverage(table, prototypes)
    write(args.out / f"coverage-{args.family}.json", json.dumps(coverage, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
