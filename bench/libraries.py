"""Benchmarks of the libraries below the runtime: plain programs of the release preset, beside other people's where there are any."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from pathlib import Path

from families import ROOT
from goals import GOALS
from measure import heading

_SPEED = re.compile(r" *(\d+) +\d+ +([\d.]+) (\w+) +[\w-]+ +(\w+) +(\w+) +(\d+) +([\d.]+) +([\d.-]+) +[\d.]+ +(\d+) +([\d.]+) +([\d.]+) ")
_SECOND = re.compile(r" +a second thread: ([\d.]+) times as fast .* bytes (.+)")
_PREDICTOR = re.compile(r"(\S+) +([\d.]+) +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ +([\d.]+)$")
_MANY = 4096  # ranks from which on what a simulation needs once for all does not count


@functools.cache
def _release() -> Path:
    """Builds the release preset; where its programs lie."""
    subprocess.run(["cmake", "--preset", "release"], cwd=ROOT, check=True, capture_output=True)
    subprocess.run(["cmake", "--build", "--preset", "release"], cwd=ROOT, check=True, capture_output=True)
    return ROOT / "build" / "release" / "bench"


def _lines(command: list[str]) -> list[str]:
    """What a command prints, which is shown as it comes. Its exit status says whether goals are reached, and is not looked at
    unless it printed nothing."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        lines = []
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line.rstrip("\n"))
    if process.returncode != 0 and not lines:
        raise subprocess.CalledProcessError(process.returncode, command)
    return lines


def predictor_costs() -> None:
    """Nanoseconds per event of each predictor, on made-up streams."""
    heading("predict_cost: predictors on made-up streams (goal: adaptive at most 100 ns, and a tenth of pps as published)")
    costs = [(float(m[2]), float(m[3]), m[1]) for line in _lines([str(_release() / "predict_cost")]) if (m := _PREDICTOR.match(line))]
    if costs:
        ns, of_published, stream = max(costs)
        GOALS.at_most("predictors", f"cost of adaptive per event, dearest stream ({stream})", ns, 100, " ns")
        GOALS.at_most("predictors", "cost of adaptive, of pps's as published", of_published, 0.1)


def simulator_speed() -> None:
    """Operations per CPU second of the simulator, what it keeps of a rank, and what a second thread gives."""
    heading("sim_speed: the simulator on a stencil (goals: of goal >= 1, at most 1024 bytes a rank, a second thread 1.5, a million ranks in 16 GB)")
    of, memories, sizes = "", [0.0], [0.0]
    for line in _lines([str(_release() / "sim_speed")]):
        if m := _SPEED.match(line):
            network, source, threads, share, memory, peak = m[3], m[4], int(m[6]), m[8], float(m[9]), float(m[11])
            of = f"{m[1]} ranks, jitter {100 * float(m[2]):g} %"
            if share != "-" and threads == 1:
                contention = "" if network == "full" else ", no contention"
                GOALS.at_least("simulator", f"{of}{contention}: speed, of the goal", float(share), 1)
            sizes.append(float(m[10]))
            if int(m[1]) >= _MANY and threads == 1 and m[5] == "sums":
                memories.append(memory)
            if source == "synth":
                GOALS.at_most("simulator", f"{of}: peak memory", peak / 1024, 16, " GiB")
        elif m := _SECOND.match(line):
            GOALS.at_least("simulator", f"{of}: a second thread, times as fast", float(m[1]), 1.5)
            GOALS.holds("simulator", f"{of}: the same bytes with two threads", m[2] == "the same")
    GOALS.at_most("simulator", "bytes of the stencil's trace per call, the most of all sizes", max(sizes), 4)
    GOALS.at_most("simulator", "bytes a rank, the most of sizes from 4096 ranks on", max(memories), 1024)


def simulator_beside_simgrid() -> None:
    """Speed of both."""
    heading("sim_speed beside SimGrid")
    _release()
    _lines([sys.executable, str(ROOT / "bench" / "sim_peers.py")])
