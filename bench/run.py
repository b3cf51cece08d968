"""`make bench`: what Fallow costs and saves on this machine, everything measured side by side in one run, and held against its goals.

All takes hours, most of it to record the traces of programs with 16 and 64 ranks, which stay; `--list` says what there is, and
`--part` picks. Figures are saved after each part.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import libraries
import net_replay
import prediction
import runtime
import savings
import sim_accuracy
from families import FALLOW, Family, found_families
from goals import GOALS
from measure import Busy, Others, Results, Sample, heading, left_out
from traces import NotHere, traces

from fallow.text import seconds

MANY_CALLS = 10_000  # with fewer what a trace says once, of its ranks and places, is most of it


@dataclass(frozen=True)
class Step:
    """A part of the benchmarks on one MPI, or on what needs none."""

    part: str
    of: str
    measure: Callable[[], object]  # what it returns is saved


def trace_sizes() -> dict[str, float]:
    """Bytes per call by trace."""
    heading("traces: bytes per call (goal: at most 8 of the programs after NAS)")
    sizes: dict[str, float] = {}
    regular = [0.0]
    for file in traces():
        done = subprocess.run([str(FALLOW), "trace", "info", "--json", str(file)], capture_output=True, text=True, check=True)
        info = json.loads(done.stdout)
        sizes[file.stem] = info["bytes_per_event"]
        if file.stem.split("-")[0] in prediction.REGULAR and info["events"] >= MANY_CALLS:
            regular.append(info["bytes_per_event"])
        print(f"  {file.stem:14}{info['events']:>10} calls {info['bytes_per_event']:8.2f} bytes each", flush=True)
    GOALS.at_most("traces", f"bytes per call, programs after NAS with {MANY_CALLS} calls and more", max(regular), 8)
    return sizes


def beside_simgrid() -> None:
    """Simulated times of both."""
    heading("the simulator beside SimGrid (goal: within 5 %)")
    sim_accuracy.compare()


def beside_a_real_run() -> None:
    """Simulated times and real ones."""
    heading("the simulator beside a real run on network namespaces at 1 Gbit/s (goal: within 10 %)")
    try:
        net_replay.main(["--repeats", "3"])
    except (RuntimeError, subprocess.TimeoutExpired) as error:  # where no namespaces may be made
        print(f"  left out: {error}", flush=True)


LIBRARY_PARTS: dict[str, tuple[str, Callable[[], object]]] = {
    "traces": ("recorded programs: bytes per call", trace_sizes),
    "predictors": ("predictors on the recorded programs", lambda: prediction.predictors(found_families()[0], traces())),
    "savings": ("what links would save in the recorded programs, simulated", lambda: savings.compare(traces())),
    "predict-cost": ("cost of the predictors per event", libraries.predictor_costs),
    "sim-speed": ("speed and memory of the simulator, up to a million ranks", libraries.simulator_speed),
    "sim-peers": ("speed of the simulator beside SimGrid's", libraries.simulator_beside_simgrid),
    "sim-accuracy": ("simulated times beside SimGrid's", beside_simgrid),
    "net-replay": ("simulated times beside real ones (as root)", beside_a_real_run),
}


def save(path: Path, figures: dict[str, dict[str, object]]) -> None:
    """Figures by MPI (or "libraries") and part, and the goals."""

    def plain(found: object) -> object:
        if isinstance(found, Sample):
            return found.values
        return {name: plain(value) for name, value in found.items()} if isinstance(found, dict) else found

    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    whole = {"version": 2, "results": plain(figures), "goals": [dataclasses.asdict(o) for o in GOALS.outcomes]}
    temporary.write_text(json.dumps(whole, indent=1) + "\n")
    temporary.replace(path)


def steps(families: Iterable[Family], parts: list[str], repeats: int) -> list[Step]:
    """All that is to be measured, in order."""

    def on(family: Family, name: str) -> Callable[[], Results]:
        return lambda: runtime.PARTS[name][1](family, repeats)

    chosen = [Step(name, family.name, on(family, name)) for family in families for name in runtime.PARTS if name in parts]
    return chosen + [Step(name, "libraries", measure) for name, (_, measure) in LIBRARY_PARTS.items() if name in parts]


def carry_out(step: Step) -> tuple[object, bool]:
    """What it found, and whether it came to its end; why it did not is said."""
    left_out.clear()
    others = Others()
    found, ended = None, True
    try:
        found = step.measure()
    except (Busy, NotHere) as error:
        print(f"  left out: {error}", flush=True)
    except (RuntimeError, subprocess.SubprocessError) as error:
        print(f"  FAILED: {error}", flush=True)
        ended = False
    if again := sum(left_out):
        print(f"  repeated because the host took the processors meanwhile: {again}", flush=True)
    if warning := others.warning():
        print(f"  {warning}", flush=True)
    return found, ended


def options() -> argparse.Namespace:
    """Of the command line."""
    known = {**runtime.PARTS, **LIBRARY_PARTS}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the parts and end")
    parser.add_argument("--part", action="append", default=[], choices=known, metavar="NAME", help="only these parts, see --list; may be repeated")
    parser.add_argument("--family", action="append", default=[], help="only these MPIs: openmpi, mpich, mpiabi; may be repeated")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each way (default 5)")
    parser.add_argument("--json", type=Path, default=Path("build/bench/results.json"), help="where all figures go (default build/bench/results.json)")
    parser.add_argument("--quick", action="store_true", help="3 runs of each way; without --part, only what runs programs under an MPI")
    args = parser.parse_args()
    if args.list:
        for name, (about, _) in known.items():
            print(f"  {name:16}{about}")
        raise SystemExit(0)
    args.repeats = 3 if args.quick else args.repeats
    args.part = args.part or list(runtime.PARTS if args.quick else known)
    return args


def main() -> int:
    """Measures what the command line asks for."""
    args = options()
    families = [f for f in found_families() if not args.family or f.name in args.family]
    if not families:
        print("bench: none of the families asked for is installed", file=sys.stderr)
        return 2
    for family in families:
        family.compile_all()
    figures: dict[str, dict[str, object]] = {}
    failed: list[str] = []
    chosen, began = steps(families, args.part, args.repeats), time.monotonic()
    for number, step in enumerate(chosen, 1):
        print(f"bench: {number} of {len(chosen)}, {step.of}: {step.part} ({seconds(time.monotonic() - began)} so far)", file=sys.stderr, flush=True)
        figures.setdefault(step.of, {})[step.part], ended = carry_out(step)
        failed += [] if ended else [f"{step.of}: {step.part}"]
        save(args.json, figures)
    if GOALS.outcomes:
        heading(GOALS.title())
        print("\n".join(GOALS.lines()))
    print(f"\nAll figures: {args.json}")
    if failed:
        print(f"bench: failed, see above: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
