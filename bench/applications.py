"""Large programs of others with and without Fallow: run time, CPU time and modelled energy.

usage: applications.py [--repeats N] [--size short|long] [NAME]...

Needs what `tools/install-packages long` installs; what is not there is left out. The programs lie in examples/applications.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from families import FALLOW, Family, found_families
from goals import GOALS
from harness.applications import Application, applications
from measure import Results, Sample

_BARE, _FALLOW = "bare", "Fallow auto"
_LIMIT_S = 3600
_TIME, _CPU, _ENERGY = "run time", "CPU time", "energy, modelled"
_COUNTED = ("waits awake", "waits asleep")


def _compare(app: Application, family: Family, size: str, repeats: int) -> dict[str, Any]:
    """What `fallow run --compare --json` says of it."""
    with tempfile.TemporaryDirectory(prefix="fallow-bench-") as scratch:
        folder = Path(scratch) / "work"
        app.make_input(folder, size)
        launch = [*family.launcher, "-n", str(app.ranks), *app.words(size)]
        command = [str(FALLOW), "run", "--compare", str(repeats), "--out", f"{scratch}/runs", "--json", "--", *launch]
        env = {**family.environment(), **app.environment()}
        done = subprocess.run(
            command,
            cwd=folder,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=_LIMIT_S,
            check=True,
        )
    return json.loads(done.stdout[("\n" + done.stdout).rindex("\n{\n") :])  # after what the program printed


def _figures(found: dict[str, Any]) -> dict[str, dict[str, Sample]]:
    runs: dict[str, list[dict[str, Any]]] = {_BARE: [], _FALLOW: []}
    for trial in found["trials"]:
        runs[_FALLOW if trial["with_fallow"] else _BARE].append(trial)
    names = {"seconds": "run_time_s", "cpu_s": "cpu_s", "modelled_j": "modelled_j"}
    return {
        way: {name: Sample(tuple(t[key] for t in trials)) for name, key in names.items()}
        for way, trials in runs.items()
    }


def _row(app: Application, found: dict[str, Any]) -> str:
    metrics = {m["name"]: m for m in found["metrics"]}
    line = f"  {app.title:36}{app.ranks:>6}{metrics[_TIME]['bare']['median']:10.2f}"
    for name in (_TIME, _CPU, _ENERGY):
        ratio = metrics[name]["ratio"]
        line += f"{ratio['median']:8.3f} ({ratio['low']:5.3f}..{ratio['high']:5.3f})"
    awake, asleep = (metrics[name]["fallow"]["median"] for name in _COUNTED)
    return line + (f"{100 * asleep / (awake + asleep):10.0f} %" if awake + asleep > 0 else f"{'-':>12}")


def compare(family: Family, repeats: int, size: str = "long", only: list[str] | None = None) -> Results:
    """Prints a line for each program that is built for the family and installed."""
    here = [app for app in applications() if app.family == family.name and (not only or app.name in only)]
    if not here:
        return {}
    print(f"\n{family.name}: programs of others, beside themselves without Fallow (goal: at most 1 % slower)")
    print(
        f"  {'program':36}{'ranks':>6}{'bare s':>10}{'time ratio':>24}{'CPU ratio':>24}{'modelled energy':>24}{'of waits asleep':>17}"
    )
    results: Results = {}
    for app in here:
        if not app.installed():
            print(f"  {app.title:36} left out: not installed (tools/install-packages long)")
            continue
        try:
            found = _compare(app, family, size, repeats)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired, RuntimeError) as error:
            print(f"  {app.title:36} left out: {error}", flush=True)
            continue
        print(_row(app, found), flush=True)
        ratio = next(m["ratio"]["median"] for m in found["metrics"] if m["name"] == _TIME)
        GOALS.at_most(family.name, f"{app.title}: time", ratio, 1.01)
        results[f"application-{app.name}"] = _figures(found)
    return results


def main() -> int:
    """Measures what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"which (default: all): {', '.join(a.name for a in applications())}"
    )
    parser.add_argument("--repeats", type=int, default=5, help="runs of each with and without (default 5)")
    parser.add_argument(
        "--size", choices=("short", "long"), default="long", help="how much work (default: some seconds each)"
    )
    args = parser.parse_args()
    if unknown := set(args.names) - {app.name for app in applications()}:
        parser.error(f"no such program: {', '.join(sorted(unknown))}")
    families = found_families()
    if not families:
        print("applications: no MPI is installed: tools/install-packages build", file=sys.stderr)
        return 2
    found = [compare(family, args.repeats, args.size, args.names) for family in families]
    return 0 if any(found) else 2


if __name__ == "__main__":
    sys.exit(main())
