"""The simulator beside SimGrid's SMPI replay: the same stencil, the same fat tree, CPU time and simulated time of both.

usage: sim_peers.py [--sizes RANKSxITERATIONS,...]

SimGrid replays time-independent traces (`smpirun -replay`, Debian's libsimgrid-dev). It is left out where it is not
installed. Its costs grow fast with the number of ranks: sizes are those that it manages in seconds.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from families import ROOT

CALLS = 14  # per rank and iteration: six receives, six sends, one wait, one all-reduce
BYTES, REDUCE_BYTES, COMPUTE_S = 8192, 8, 1e-3
FLOPS = 1e9
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-{last}" speed="1Gf" bw="5GBps" lat="100ns"
           topology="FAT_TREE" topo_parameters="3;{k},{k},{k};1,{k},{k};1,1,1" sharing_policy="SPLITDUPLEX"/>
</platform>
"""


@dataclass(frozen=True)
class Run:
    cpu_s: float
    simulated_s: float


def grid(ranks: int) -> tuple[int, int, int]:
    """The most even three factors."""
    return min(
        ((x, y, ranks // x // y) for x in range(1, ranks + 1) if ranks % x == 0 for y in range(1, ranks // x + 1) if ranks // x % y == 0),
        key=max,
    )


def neighbors(rank: int, n: tuple[int, int, int]) -> list[int]:
    found, stride = [], 1
    for extent in n:
        x = rank // stride % extent
        found += [rank + ((x + step) % extent - x) * stride for step in (-1, 1)]
        stride *= extent
    return found


def write_work(folder: Path, ranks: int, iterations: int, jitter: float) -> None:
    shape, draw = grid(ranks), random.Random(1)  # noqa: S311
    for rank in range(ranks):
        near = neighbors(rank, shape)
        lines = [f"{rank} init"]
        for _ in range(iterations):
            lines.append(f"{rank} compute {COMPUTE_S * FLOPS * (1 + jitter * draw.uniform(-1, 1)):.0f}")
            lines += [f"{rank} irecv {near[d]} {d} {BYTES}" for d in range(6)]
            lines += [f"{rank} isend {near[d]} {d ^ 1} {BYTES}" for d in range(6)]
            lines += [f"{rank} waitall 12", f"{rank} allreduce {REDUCE_BYTES} 0"]
        lines.append(f"{rank} finalize")
        (folder / f"{rank}.txt").write_text("\n".join(lines) + "\n")
    (folder / "all.txt").write_text("".join(f"{folder / f'{r}.txt'}\n" for r in range(ranks)))
    k = round(ranks ** (1 / 3))
    while k**3 < ranks:
        k += 1
    (folder / "platform.xml").write_text(PLATFORM.format(last=k**3 - 1, k=k))
    (folder / "hosts.txt").write_text("".join(f"n{r}\n" for r in range(ranks)))


def children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def simgrid(ranks: int, iterations: int, jitter: float) -> Run:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_work(folder, ranks, iterations, jitter)
        before = children_cpu_s()
        command = ["smpirun", "-replay", str(folder / "all.txt"), "-platform", str(folder / "platform.xml"), "-hostfile", str(folder / "hosts.txt")]
        command += ["-np", str(ranks), "--log=root.fmt:%m%n", "--cfg=smpi/host-speed:1Gf"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"smpirun: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")
        text = done.stdout + done.stderr
        simulated = next((float(line.split()[-1]) for line in text.splitlines() if line.startswith("Simulation time")), float("nan"))
        return Run(children_cpu_s() - before, simulated)


def own(program: Path, ranks: int, iterations: int, jitter: float) -> Run:
    text = subprocess.run([str(program), str(ranks), str(iterations), str(jitter), "hardware"], check=True, capture_output=True, text=True).stdout
    heads, values = (line.split() for line in text.replace("simulated s", "simulated_s").replace("of goal", "goal").replace("peak MiB", "peak").replace("cpu s", "cpu_s").replace("wall s", "wall_s").splitlines()[-2:])
    found = dict(zip(heads, values, strict=True))
    return Run(float(found["cpu_s"]), float(found["simulated_s"]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="64x10,512x2", help="default 64x10,512x2")
    parser.add_argument("--program", type=Path, default=ROOT / "build" / "release" / "bench" / "sim_speed")
    args = parser.parse_args()
    if shutil.which("smpirun") is None:
        print("  SimGrid is not installed (tools/install-packages bench): left out")
        return 0
    print("  ours with links that rest by a timer, whose wake-ups delay messages; another draw of the jitter; sim_accuracy.py compares times")
    print(f"  {'ranks':>6} {'iter':>5} {'jitter':>6} {'SimGrid kops/s':>15} {'ours kops/s':>12} {'ratio':>8}   simulated s, both")
    for size in args.sizes.split(","):
        ranks, iterations = (int(x) for x in size.split("x"))
        for jitter in (0.0, 0.05):
            operations = CALLS * ranks * iterations
            theirs, ours = simgrid(ranks, iterations, jitter), own(args.program, ranks, iterations, jitter)
            rates = [operations / max(r.cpu_s, 1e-6) / 1e3 for r in (theirs, ours)]
            print(f"  {ranks:>6} {iterations:>5} {jitter:>6.2f} {rates[0]:>15.1f} {rates[1]:>12.1f} {rates[1] / rates[0]:>8.0f}   "
                  f"{theirs.simulated_s:.6f} {ours.simulated_s:.6f}", flush=True)  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
