"""How near the simulator comes to SimGrid's replay of the same programs on the same network, and LogGP to the full model.

usage: sim_accuracy.py [--ranks N] [--iterations N] [--quick]

SimGrid (Debian's, SMPI's replay of time-independent traces) shares links evenly between the flows on them; here packets
queue. Both get the same bandwidths, latencies, routes and algorithms of collectives. SimGrid runs without its
corrections for TCP and with every message as rendezvous: with eager ones its flows share the receiver's link with those
that are not needed yet, and pairwise exchanges take up to twice as long as their closed form on an idle crossbar.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from goals import GOALS

GOAL = 0.05
LATENCY_NS, GIGABITS = 100, 40
FALLOW = [sys.executable, "-m", "fallow"]
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-{last}" speed="1Gf" bw="{bandwidth}Bps" lat="{latency}ns"
           sharing_policy="SPLITDUPLEX" loopback_bw="{bandwidth}Bps" loopback_lat="0us" {shape}/>
</platform>
"""
MACHINE = """name = "comparison"
[network]
{network}
[link]
gbit_s = {gigabits}
switch_latency_ns = {latency}
[message]
latency_us = 0
eager_bytes = 8192
[node]
memory_gb_s = {memory}
memory_latency_ns = 0
"""
NO_CORRECTIONS = [
    "--cfg=network/model:CM02", "--cfg=network/crosstraffic:0", "--cfg=network/TCP-gamma:0", "--cfg=network/weight-S:0",
    "--cfg=smpi/async-small-thresh:0", "--cfg=smpi/send-is-detached-thresh:0", "--cfg=smpi/os:0:0:0", "--cfg=smpi/or:0:0:0",
    "--cfg=smpi/ois:0:0:0", "--cfg=smpi/iprobe:0", "--cfg=smpi/test:0", "--cfg=smpi/alltoall:ring", "--cfg=smpi/allreduce:rdb",
]  # fmt: skip


@dataclass(frozen=True)
class Network:
    name: str
    ours: str
    theirs: str


def networks(ranks: int) -> list[Network]:
    """A crossbar, and a fat tree with half as many links up as down."""
    below = 4
    return [
        Network("crossbar", f'topology = "crossbar"\nnodes = {ranks}', ""),
        Network(
            "tapered tree", f'topology = "XGFT(2;{below},{ranks // below};1,{below // 2})"\nrouting = "d-mod-k"',
            f'topology="FAT_TREE" topo_parameters="2;{below},{ranks // below};1,{below // 2};1,1"',
        ),
    ]  # fmt: skip


def run(command: list[str], where: Path) -> str:
    done = subprocess.run(command, check=False, cwd=where, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[:4])} failed:\n{done.stdout[-1000:]}{done.stderr[-1000:]}")
    return done.stdout + done.stderr


def simgrid_s(where: Path, ranks: int, network: Network) -> float:
    bandwidth = GIGABITS * 1e9 / 8
    (where / "platform.xml").write_text(PLATFORM.format(last=ranks - 1, bandwidth=f"{bandwidth:.0f}", latency=LATENCY_NS, shape=network.theirs))
    (where / "hosts").write_text("".join(f"n{r}\n" for r in range(ranks)))
    replay = ["smpirun", "-replay", "t.txt", "-np", str(ranks), "-platform", "platform.xml", "-hostfile", "hosts"]
    for line in run([*replay, *NO_CORRECTIONS], where).splitlines():
        if "Simulation time" in line:
            return float(line.split()[-1])
    raise RuntimeError("SimGrid's replay did not say how long it took")


def ours_s(where: Path, network: Network, *more: str) -> float:
    text = MACHINE.format(network=network.ours, gigabits=GIGABITS, latency=LATENCY_NS, memory=GIGABITS / 8)
    (where / "machine.toml").write_text(text)
    out = run([*FALLOW, "sim", "t.ftr", "--platform", "machine.toml", "--policy", "always-on", "--json", *more], where)
    return float(json.loads(out)["simulations"][0]["run_time_s"])


def comparisons(where: Path, ranks: int, iterations: int, sizes: list[str], jitters: list[str]) -> Iterator[tuple[str, float, float, float]]:
    """What was compared, and the times of SimGrid, of the full model and of LogGP."""
    for program in ("stencil3d", "cg", "fft", "alltoall"):
        for size in sizes:
            for jitter in jitters:
                options = ["--ranks", str(ranks), "--iterations", str(iterations), "--bytes", size, "--compute", "200us", "--jitter", jitter]
                run([*FALLOW, "synth", program, *options, "-o", "t.ftr"], where)
                run([*FALLOW, "trace", "convert", "t.ftr", "--to", "simgrid", "-o", "t.txt"], where)
                for network in networks(ranks):
                    label = f"{program:10} {size:>6} jitter {jitter:>3} {network.name:12}"
                    yield label, simgrid_s(where, ranks, network), ours_s(where, network), ours_s(where, network, "--network", "loggp")


def compare(ranks: int = 16, iterations: int = 5, quick: bool = False) -> bool:
    """Prints all; whether every time is within the goal."""
    if shutil.which("smpirun") is None:
        print("  left out: SimGrid is not installed (Debian: libsimgrid-dev)")
        return True
    print(f"  goal: within {GOAL:.0%} of SimGrid's simulated time; {ranks} ranks, {iterations} iterations of 200 us and an exchange")
    print(f"  {'':45}{'SimGrid us':>11}{'ours us':>11}{'ratio':>8}   LogGP's error")
    worst, errors = 0.0, []
    os.environ.setdefault("COLUMNS", "200")
    with tempfile.TemporaryDirectory() as folder:
        for label, theirs, ours, loggp in comparisons(Path(folder), ranks, iterations, ["8KB", "256KB"] if quick else ["8KB", "64KB", "256KB"], ["5%"] if quick else ["0%", "5%"]):
            worst = max(worst, abs(ours / theirs - 1))
            errors.append(loggp / ours - 1)
            print(f"  {label:45}{theirs * 1e6:11.1f}{ours * 1e6:11.1f}{ours / theirs:8.4f}   {loggp / ours - 1:+.1%}", flush=True)
    print(f"  furthest from SimGrid: {worst:.1%}; LogGP against the full model: {min(errors):+.1%} to {max(errors):+.1%}")
    GOALS.at_most("simulator", "furthest from SimGrid's simulated time", 100 * worst, 100 * GOAL, " %")
    return worst <= GOAL


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=16, help="a multiple of 4 (default 16)")
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="fewer sizes")
    args = parser.parse_args()
    return 0 if compare(args.ranks, args.iterations, args.quick) else 1


if __name__ == "__main__":
    sys.exit(main())
