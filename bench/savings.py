"""What links would save in the recorded programs: the policies on the modelled cluster of the publication.

usage: savings.py [--platform NAME|FILE]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from families import FALLOW
from goals import GOALS
from measure import heading
from traces import NotHere, traces

POLICIES = ("pps", "spps", "adaptive", "oracle")
LIMIT_S = 1800


def simulate(trace: Path, platform: str) -> dict[str, dict[str, float]]:
    """Share of the edge links' energy that each policy saves, and its slowdown. All energy is modelled."""
    command = [str(FALLOW), "sim", str(trace), "--platform", platform, "--policy", ",".join(("always-on", *POLICIES))]
    # As published: rests of a node's link to its switch, in gaps between its ranks' calls.
    options = ["--edge-only", "--lead", "1%", "--json"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no word why"])[-1])
    found = {one["policy"]: one for one in json.loads(done.stdout)["simulations"]}
    if found["always-on"]["run_time_s"] == 0:
        raise RuntimeError("it has no calls")
    return {name: {"saved": found[name]["saved_share"]["edge_links"], "slowdown": found[name]["slowdown"]} for name in POLICIES}


def compare(files: Iterable[Path], platform: str = "minotauro") -> dict[str, dict[str, dict[str, float]]]:
    """The table of the programs, by trace and policy."""
    heading(f"energy of edge links saved on {platform}, modelled (lead 1 %, budget 1 %; goal: oracle >= adaptive >= spps, adaptive 90 % of oracle)")
    print(f"  {'program':12}" + "".join(f"{name:>11}" for name in POLICIES) + f"{'of oracle':>11}   slowdown: " + "".join(f"{name:>10}" for name in POLICIES))
    found: dict[str, dict[str, dict[str, float]]] = {}
    for file in files:
        try:
            ways = simulate(file, platform)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"  {file.stem:12} left out: {error}", flush=True)
            continue
        found[file.stem] = ways
        print(_row(file.stem, ways), flush=True)
    if found:
        mean = {p: {k: sum(ways[p][k] for ways in found.values()) / len(found) for k in ("saved", "slowdown")} for p in POLICIES}
        print(_row("mean", mean), flush=True)
        _hold(found, mean)
    return found


def _of_oracle(ways: dict[str, dict[str, float]]) -> float:
    return 100 * ways["adaptive"]["saved"] / max(ways["oracle"]["saved"], 1e-12)


def _row(name: str, ways: dict[str, dict[str, float]]) -> str:
    saved = "".join(f"{100 * ways[p]['saved']:9.2f} %" for p in POLICIES)
    return f"  {name:12}{saved}{_of_oracle(ways):9.1f} %             " + "".join(f"{100 * ways[p]['slowdown']:8.3f} %" for p in POLICIES)


def _hold(found: dict[str, dict[str, dict[str, float]]], mean: dict[str, dict[str, float]]) -> None:
    where = "traces, simulated"
    GOALS.at_most(where, "saved by adaptive, of the oracle's mean", mean["adaptive"]["saved"] / mean["oracle"]["saved"], 1)
    GOALS.at_most(where, "saved by spps, of adaptive's mean", mean["spps"]["saved"] / mean["adaptive"]["saved"], 1)
    GOALS.at_least(where, "saved by adaptive, of the oracle's, mean", _of_oracle(mean), 90, " %")
    GOALS.at_most(where, "slowdown by adaptive, slowest program", 100 * max(ways["adaptive"]["slowdown"] for ways in found.values()), 1, " %")


def main() -> int:
    """Simulates all traces, recording those that are not there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--platform", default="minotauro", help="a platform's name or file (default minotauro)")
    args = parser.parse_args()
    try:
        found = compare(traces(), args.platform)
    except NotHere as error:
        print(f"savings: {error}", file=sys.stderr)
        return 2
    return 0 if found else 2


if __name__ == "__main__":
    sys.exit(main())
