"""A real run on network namespaces of this machine, one rank in each behind a link of 1 Gbit/s, beside the replay of its trace.

usage: net_replay.py [--ranks N] [--repeats N] [PROGRAM[:CLASS]...]       as root; needs ip, tc and Open MPI

The network is measured before each program (a round trip, the slope of long messages one way and both ways at once, what
a short message costs its cores) and written as two platforms. TCP carries less each way while as much comes back, probably as
the cores serve both and words of receipt wait behind data; a simulated link does not. So a program is replayed at either rate:
what it does lies between, and the goal of 10 % counts from the nearer one, or is met between them. Computation is CPU time. A
token bucket limits what comes to each namespace, at 1.1 times its rate for bursts, so that short messages are not free, and TCP
begins with open windows. Ranks run at real-time priority: polling ones would wait for others' programs else. More ranks than
cores measure the scheduler.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from goals import GOALS

from fallow.traces.model import Event, FileSource, MemorySource, ops, write_source

ROOT = Path(__file__).resolve().parents[1]
GOAL = 0.10
WIRE_US = 0.6  # of a short message between cores and through the switch, as PLATFORM has them
BRIDGE, NET = "fallow-br", "10.77.13"
LIMIT = ["tbf", "rate", "1gbit", "burst", "32kb", "latency", "200ms", "peakrate", "1100mbit", "mtu", "6000"]
# Slow starts and small windows are no part of the model.
TCP = ["net.ipv4.tcp_rmem=4096 16777216 33554432", "net.ipv4.tcp_wmem=4096 8388608 33554432", "net.ipv4.tcp_slow_start_after_idle=0"]
AGENT = """#!/bin/sh
host=$1; shift
space={prefix}$((${{host##*.}} - 1))
exec ip netns exec $space chrt -r 1 unshare -u sh -c "hostname $space; $*"
"""
PLATFORM = """name = "namespaces"
[network]
topology = "crossbar"
nodes = {ranks}
[link]
gbit_s = {gigabits:.4f}
switch_latency_ns = 500
[message]
latency_us = 0
overhead_ns = {sends}
receive_overhead_ns = {posts}
match_ns = {finds}
unexpected_ns = {late}
eager_bytes = 65536
segment_bytes = 1514
"""


def do(*command: str, **more: object) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, **more)  # type: ignore[call-overload]
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stdout[-500:]}{done.stderr[-1500:]}")
    return str(done.stdout)


@contextlib.contextmanager
def spaces(ranks: int) -> Iterator[str]:
    """Namespaces behind one bridge; the prefix of their names."""
    prefix = f"fallow{os.getpid()}-"
    with contextlib.ExitStack() as undo:
        do("ip", "link", "add", BRIDGE, "type", "bridge")
        undo.callback(do, "ip", "link", "del", BRIDGE)
        do("ip", "addr", "add", f"{NET}.254/24", "dev", BRIDGE)
        do("ip", "link", "set", BRIDGE, "up")
        for i in range(ranks):
            space, port = f"{prefix}{i}", f"fallow-p{i}"
            do("ip", "netns", "add", space)
            undo.callback(do, "ip", "netns", "del", space)
            do("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", space)
            do("ip", "link", "set", port, "master", BRIDGE, "up")
            do("ip", "-n", space, "link", "set", "lo", "up")
            do("ip", "-n", space, "addr", "add", f"{NET}.{i + 1}/24", "dev", "eth0")
            do("ip", "-n", space, "link", "set", "eth0", "up")
            do("tc", "qdisc", "add", "dev", port, "root", *LIMIT)
            do("ip", "netns", "exec", space, "sysctl", "-q", "-w", *TCP)
            do("ip", "-n", space, "route", "replace", f"{NET}.0/24", "dev", "eth0", "src", f"{NET}.{i + 1}", "initcwnd", "3000", "initrwnd", "3000")
        yield prefix


def launcher(ranks: int, agent: Path) -> list[str]:
    hosts = ",".join(f"{NET}.{i + 1}:1" for i in range(ranks))
    choices = {"plm_rsh_agent": str(agent), "oob_tcp_if_include": f"{BRIDGE},eth0", "btl": "tcp,self", "pml": "ob1", "btl_tcp_if_include": "eth0", "mpi_yield_when_idle": "1"}
    mca = [word for key, value in choices.items() for word in ("--mca", key, value)]
    return ["mpirun.openmpi", "-np", str(ranks), "--host", hosts, "--bind-to", "none", *mca]


def fit(mpirun: list[str], ranks: int, where: Path) -> list[Path]:
    """Measures the network and writes its platforms: at the rate of one way, and of both ways at once."""
    program = where / "network_fit"
    do("mpicc.openmpi", "-O2", "-o", str(program), str(ROOT / "bench" / "programs" / "network_fit.c"))
    words = do(*mpirun, str(program)).split()
    half_us, one_way, message_us, both_ways, send_us, receive_us, early_us = map(float, words[1::2])
    sends_us = min(send_us, half_us - WIRE_US)
    found_us = max(0.0, half_us - WIRE_US - sends_us)  # what is left of half a round trip: TCP runs to the receiver in the send
    costs = {"sends": sends_us, "posts": early_us, "finds": found_us, "late": max(0.0, receive_us - early_us - found_us)}
    paths = []
    for name, ns_per_byte in (("one-way", one_way), ("both-ways", max(one_way, both_ways))):
        paths.append(where / f"{name}.toml")
        paths[-1].write_text(PLATFORM.format(ranks=max(ranks, 2), gigabits=8 / ns_per_byte, **{k: round(us * 1e3) for k, us in costs.items()}))
    print(f"  network: {half_us:.1f} us half a round trip, {8 / one_way:.3f} Gbit/s one way, {8 / both_ways:.3f} each way at once, a short message costs its cores {send_us:.1f} us to send and {receive_us:.1f} us to receive late, {message_us:.1f} us in a stream")
    return paths


def between_init_and_finalize(trace: Path, out: Path) -> float:
    """Writes the calls between them as a trace; the time from the last rank's end of one to the last one's other, seconds."""
    source = FileSource([trace])
    kept: list[list[Event]] = []
    begin = end = 0
    for rank in range(source.info.size):
        kept.append([])
        for event in source.events(rank):
            name = ops()[event.op].name
            if name.startswith("MPI_Init"):
                begin = max(begin, event.exit_ns)
            elif name == "MPI_Finalize":
                end = max(end, event.enter_ns)
            else:
                kept[-1].append(event)
    write_source(MemorySource(source.info, kept), out)
    return (end - begin) * 1e-9


def compare(mpirun: list[str], platforms: list[Path], program: str, where: Path) -> tuple[float, list[float]]:
    """Seconds of the real run, and of the replay on each platform."""
    name, _, size = program.partition(":")
    command = [*mpirun, str(ROOT / "build" / "examples" / "mpicc.openmpi" / name), "--class", size or "S"]
    trace = where / "run"
    shutil.rmtree(trace, ignore_errors=True)
    do(sys.executable, "-m", "fallow", "run", "--mode", "spin", "--clock", "cpu", "--trace", str(trace), "--out", str(where / "report"), *command, cwd=where)
    shutil.rmtree(where / "report", ignore_errors=True)
    real = between_init_and_finalize(trace / "trace.ftr", where / "kept.ftr")
    replays = []
    for platform in platforms:
        found = do(sys.executable, "-m", "fallow", "sim", str(where / "kept.ftr"), "--platform", str(platform), "--policy", "always-on", "--json")
        replays.append(float(json.loads(found)["simulations"][0]["run_time_s"]))
    return real, replays


def miss(low: float, high: float) -> float:
    """How far two ratios of replay to reality are beside 1; 0 if it lies between them."""
    return max(0.0, low - 1, 1 - high)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("programs", nargs="*", default=["ft:S", "ft:W", "cg:S", "cg:W", "mg:W", "lu:S"])
    args = parser.parse_args(argv)
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "tc", "chrt", "mpirun.openmpi"))):
        print("  left out: namespaces need root, ip, tc, chrt and Open MPI", file=sys.stderr)
        return 0
    os.environ |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    do("make", "-s", "-C", str(ROOT / "examples"), "MPICC=mpicc.openmpi")
    far = 0
    with tempfile.TemporaryDirectory() as folder, spaces(args.ranks) as prefix:
        where = Path(folder)
        agent = where / "agent"
        agent.write_text(AGENT.format(prefix=prefix))
        agent.chmod(0o755)
        mpirun = launcher(args.ranks, agent)
        print(f"  {'program':10}{'real ms':>10}{'one way':>10}{'both ways':>11}   replay over real, median of {args.repeats} runs each; goal: within {GOAL:.0%} or between")
        for program in args.programs:
            platforms = fit(mpirun, args.ranks, where)  # each time: what the cores do besides changes
            runs = sorted((compare(mpirun, platforms, program, where) for _ in range(args.repeats)), key=lambda r: r[1][0] / r[0])
            real, replays = runs[len(runs) // 2]
            low, high = (replay / real for replay in replays)
            verdict = "ok" if miss(low, high) <= GOAL else "FAR"
            GOALS.at_most("simulator", f"beside a real run at 1 Gbit/s, {program}", 100 * miss(low, high), 100 * GOAL, " %")
            far += verdict != "ok"
            print(f"  {program:10}{real * 1e3:10.1f}{low:10.3f}{high:11.3f}   {verdict}; one way in each run: " + " ".join(f"{b[0] / a:.3f}" for a, b in runs), flush=True)
    return 1 if far else 0


if __name__ == "__main__":
    sys.exit(main())
