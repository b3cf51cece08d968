"""`make bench`: what Fallow costs and saves on this machine, everything measured side by side in one run.

usage: run.py [--family NAME]... [--part NAME]... [--repeats N] [--json FILE] [--quick]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import applications
import net_replay
import prediction
import sim_accuracy
from families import FALLOW, Family, found_families, in_limited_group, on_two_hosts
from libraries import run_library_benchmarks
from measure import (
    AUTO,
    BARE,
    CLOCK_ONLY,
    SPIN,
    TRACED,
    Busy,
    Others,
    Results,
    Way,
    instructions_per_call,
    left_out,
    side_by_side,
)
from traces import NotHere, traces

CALL_WAYS = (BARE, SPIN, AUTO, TRACED)  # what tracing adds holds its packing and writing: these programs hardly wait
Waits = Iterable[tuple[int, int, int]]  # of so many microseconds, so often, give or take so many percent
WAITS_US = ((50, 4000, 0), (1000, 600, 0), (10000, 60, 0))
# What sleeping costs between hosts takes a second to learn.
WAITS_BETWEEN_HOSTS_US = ((1000, 3000, 0), (10000, 300, 0), (10000, 300, 90))


def pairs(text: str, name: int, value: int) -> dict[str, float]:
    return {f[name]: float(f[value]) for f in (line.split() for line in text.splitlines()) if len(f) > value}


def named(text: str) -> dict[str, float]:
    fields = text.split()
    return {fields[i]: float(fields[i + 1]) for i in range(0, len(fields) - 1, 2)}


def heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}", flush=True)


def call_costs(family: Family, repeats: int) -> Results:
    heading(f"{family.name}: cost per call (goal: at most 60 ns more in spin, 100 ns in auto)")
    results: Results = {}
    for ranks in (1, 2):
        results |= {f"calls-{ranks}": side_by_side(family, CALL_WAYS, ranks, [family.program("call_cost"), "31"], lambda t: pairs(t, 0, 2), repeats)}
    print("  in spin and auto most of these calls are counted only, as they follow each other closely; a trace has each of them")
    print("  cold_exchange: single calls, each after 8 MB of other data, so that what Fallow and the MPI library need is fetched anew")
    print(f"  {'':16}{'bare ns':>9}{'spin':>9}{'auto':>9}{'traced':>9}   more in spin, auto, by tracing (ns)   instructions of each")
    counted = {"iprobe": 1, "self_message": 3, "allreduce_self": 1}
    for found in results.values():
        for name in found["bare"]:
            bare, spin, auto, traced = (found[w.label][name].median for w in CALL_WAYS)
            line = f"  {name:16}{bare:9.1f}{spin:9.1f}{auto:9.1f}{traced:9.1f}   {spin - bare:+8.1f} {auto - bare:+8.1f} {traced - spin:+8.1f}"
            if name in counted and shutil.which("valgrind"):
                body = name.removesuffix("_self")
                counts = [instructions_per_call(family, w, body) / counted[name] for w in CALL_WAYS]
                line += "              " + "".join(f"{c:9.0f}" for c in counts)
            print(line, flush=True)
    return results


def pingpong(family: Family, repeats: int) -> Results:
    heading(f"{family.name}: ping-pong, half a round trip (goal: auto within 2 % of bare)")
    ways = (BARE, CLOCK_ONLY, SPIN, AUTO)
    found = side_by_side(family, ways, 2, [family.program("pingpong"), "4194304", "21"], lambda t: pairs(t, 1, 3), repeats)
    print("  clock only: a tool that takes the time before and after each call, and does nothing else")
    print(f"  {'bytes':>9}{'bare us':>12}{'clock only':>12}{'spin':>8}{'auto':>8}   ratios; range of auto us")
    for size in found["bare"]:
        bare, clock, spin, auto = (found[w.label][size] for w in ways)
        ratios = f"{clock.median / bare.median:12.3f}{spin.median / bare.median:8.3f}{auto.median / bare.median:8.3f}"
        print(f"  {size:>9}{bare.median:12.3f}{ratios}   {auto.spread}", flush=True)
    return {"pingpong": found}


def waiting_table(family: Family, ways: list[Way], waits: Waits, patterns: Iterable[str], repeats: int) -> Results:
    print(f"  {'wait':>14} {'pattern':10}" + "".join(f"{w.label + ' s':>14}{'waiting CPU':>13}" for w in ways) + "   time ratio  waiting CPU gone")
    results: Results = {}
    for wait_us, steps, percent in waits:
        for pattern in patterns:
            program = [family.program("imbalance"), pattern, str(wait_us), str(steps), "20", str(percent)]
            found = side_by_side(family, ways, 2, program, named, repeats)
            irregular = f" +-{percent} %" if percent else ""
            results[f"{pattern}-{wait_us}{irregular}"] = found
            waiting = {w.label: found[w.label]["cpu_s"].median - found["bare"]["computing_s"].median for w in ways}
            line = f"  {f'{wait_us} us{irregular}':>14} {pattern:10}"
            line += "".join(f"{found[w.label]['seconds'].median:14.3f}{max(waiting[w.label], 0):13.3f}" for w in ways)
            ratio = found[AUTO.label]["seconds"].median / found["bare"]["seconds"].median
            gone = f"{100 - 100 * max(waiting[AUTO.label], 0) / waiting['bare']:.1f} %" if waiting["bare"] > 0 else "-"
            print(f"{line}{ratio:13.4f}{gone:>18}", flush=True)
    return results


def imbalance(family: Family, repeats: int) -> Results:
    heading(f"{family.name}: imbalanced program, 2 ranks (goal: 90 % of the waiting CPU time gone from 1 ms on, at most 1 % slower)")
    ways = [BARE, *([Way("own yield", own_yield=True)] if family.own_yield else []), AUTO]
    results = waiting_table(family, ways, WAITS_US, ("recv", "allreduce", "waitall", "testall"), repeats)
    print("  seldom: one exchange in 1024 has to wait; the processors are busy otherwise")
    return results | waiting_table(family, ways, [(5000, 1024 * 20, 0)], ("seldom",), repeats)


def between_hosts(family: Family, repeats: int) -> Results:
    results: Results = {}
    for over in family.between_hosts:
        heading(f"{family.name}: imbalanced program, a rank on each of two hosts (network name spaces, over {over}; at most 1 % slower)")
        try:
            with on_two_hosts(family, over) as spread:
                found = waiting_table(spread, [BARE, AUTO], WAITS_BETWEEN_HOSTS_US, ("recv", "allreduce"), repeats)
        except (PermissionError, FileNotFoundError, subprocess.CalledProcessError) as error:
            print(f"  left out: {error}")
            continue
        results |= {f"hosts-{over}-{name}": figures for name, figures in found.items()}
    return results


def oversubscribed(family: Family, repeats: int) -> Results:
    heading(f"{family.name}: 8 ranks on this machine's cores (goal: faster than bare)")
    found = side_by_side(family, (BARE, AUTO), 8, [family.program("imbalance"), "allreduce", "1000", "200", "100"], named, repeats)
    for label, figures in found.items():
        print(f"  {label:12} run time {figures['seconds'].median:8.3f} s ({figures['seconds'].spread})   CPU {figures['cpu_s'].median:8.3f} s", flush=True)
    ratio = found[AUTO.label]["seconds"].median / found["bare"]["seconds"].median
    print(f"  run time ratio {ratio:.3f}")
    return {"oversubscribed": found}


def updates(family: Family, repeats: int) -> Results:
    """With a core for each rank, and with two ranks on each core."""
    cores = len(os.sched_getaffinity(0))
    results: Results = {}
    for ranks, ways in ((cores, (BARE, SPIN, AUTO)), (2 * cores, (BARE, AUTO))):
        heading(f"{family.name}: a test after each update of a table, {ranks} ranks on this machine's cores (goal: no slower than bare)")
        found = side_by_side(family, ways, ranks, [family.program("updates"), "4000000"], named, repeats)
        bare = found["bare"]["seconds"].median
        for label, figures in found.items():
            time, lost = figures["seconds"], figures["lost"].median / figures["tests"].median
            print(f"  {label:12} {time.median:8.3f} s ({time.spread})   ratio {time.median / bare:.3f}   core lost in {lost:.2%} of the tests", flush=True)
        results["crowded-tests" if ranks > cores else "tests"] = found
    return results


def one_sided(family: Family, repeats: int) -> Results:
    """With a core for each rank."""
    cores = len(os.sched_getaffinity(0))
    heading(f"{family.name}: short one-sided calls one after the other, {cores} ranks on this machine's cores (goal: no slower than bare)")
    found = side_by_side(family, (BARE, SPIN, AUTO), cores, [family.program("one_sided"), "1000000"], named, repeats)
    bare = found["bare"]["seconds"].median
    for label, figures in found.items():
        time, calls = figures["seconds"], figures["calls"].median
        print(f"  {label:12} {1e9 * time.median / calls:8.1f} ns a call   ratio {time.median / bare:.3f}", flush=True)
    return {"one-sided": found}


def message_rate(family: Family, repeats: int) -> Results:
    heading(f"{family.name}: short messages that are started and waited for, and exchanged in one call, 2 ranks (goal: no slower than bare)")
    print(f"  {'bytes':>5} {'':9}" + "".join(f"{w.label:>13} ns" for w in (BARE, SPIN, AUTO)) + "   ratio of each; range of auto")
    results: Results = {}
    for size in ("8", "512"):
        found = side_by_side(family, (BARE, SPIN, AUTO), 2, [family.program("message_rate"), size], named, repeats)
        results[f"messages-{size}"] = found
        for what, bare in found["bare"].items():
            spin, auto = found[SPIN.label][what], found[AUTO.label][what]
            times = "".join(f"{t.median:16.1f}" for t in (bare, spin, auto))
            print(f"  {size:>5} {what:9}{times}   {spin.median / bare.median:.3f} {auto.median / bare.median:.3f}; {auto.spread}", flush=True)
    return results


def crowded_collectives(family: Family, repeats: int) -> Results:
    ranks = len(os.sched_getaffinity(0)) + 1
    heading(f"{family.name}: collective calls, {ranks} ranks on this machine's cores (goal: faster than bare)")
    results: Results = {}
    print(f"  {'call':18} {'late':>6}   {'bare us':>10} {'auto us':>10}   ratio; range of auto us")
    for late_us in (0, 200):
        program = [family.program("collectives"), str(late_us), "50"]
        found = side_by_side(family, (BARE, AUTO), ranks, program, lambda t: pairs(t, 0, 1), repeats)
        results[f"collectives-{late_us}"] = found
        for call, bare in found["bare"].items():
            auto = found[AUTO.label][call]
            print(f"  {call:18} {late_us:3} us   {bare.median:10.1f} {auto.median:10.1f}   {auto.median / bare.median:5.3f}; {auto.spread}", flush=True)
    return results


@contextmanager
def computing() -> Iterator[None]:
    """A process that computes all the time."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def beside_another(family: Family, repeats: int) -> Results:
    """Collective calls one after the other, and ranks that take turns at a millisecond."""
    ranks = len(os.sched_getaffinity(0))
    heading(f"{family.name}: {ranks} ranks on this machine's cores beside a process that computes (goal: no slower than bare; single runs differ by half)")
    ways = (BARE, SPIN, AUTO)
    print(f"  {'call':18} {'bare us':>10} {'spin':>7} {'auto':>7}   ratios; range of auto us")
    with computing():
        found = side_by_side(family, ways, ranks, [family.program("collectives"), "0", "20000"], lambda t: pairs(t, 0, 1), repeats)
        turns = side_by_side(family, ways, ranks, [family.program("imbalance"), "allreduce", "1000", "600"], named, repeats)
    for call in found["bare"]:
        bare, spin, auto = (found[w.label][call] for w in ways)
        print(f"  {call:18} {bare.median:10.1f} {spin.median / bare.median:7.3f} {auto.median / bare.median:7.3f}   {auto.spread}", flush=True)
    bare, spin, auto = (turns[w.label]["seconds"] for w in ways)
    print(f"  {'in turns, 1 ms':18} {1e6 * bare.median / 600:10.1f} {spin.median / bare.median:7.3f} {auto.median / bare.median:7.3f}", flush=True)
    return {"beside-collectives": found, "beside-turns": turns}


def limited_time(family: Family, repeats: int) -> Results:
    """In a control group with less time than what they compute takes, as containers may be: what spins takes it from what computes."""
    heading(f"{family.name}: 2 ranks, one late by a millisecond, in a control group that gives them the time of 0.8 processors (goal: faster than bare)")
    ways = (BARE, AUTO)
    results: Results = {}
    print(f"  {'wait':18} {'bare s':>10} {'auto s':>10}   ratio; range of auto s")
    for wait in ("recv", "allreduce", "waitall", "testall"):
        program = [family.program("imbalance"), wait, "1000", "1000", "20", "0", "cpu"]
        try:
            with in_limited_group(family, 0.8) as inside:
                found = side_by_side(inside, ways, 2, program, named, repeats)
        except OSError as error:
            print(f"  left out: {error}", flush=True)
            return results
        bare, auto = (found[w.label]["seconds"] for w in ways)
        print(f"  {wait:18} {bare.median:10.3f} {auto.median:10.3f}   {auto.median / bare.median:5.3f}; {auto.spread}", flush=True)
        results[f"limited-{wait}"] = found
    return results


def trace_sizes() -> None:
    heading("traces: bytes per call (goal: at most 8, and 4 where loops repeat)")
    try:
        files = traces()
    except NotHere as error:
        print(f"  left out: {error}")
        return
    for file in files:
        done = subprocess.run([str(FALLOW), "trace", "info", "--json", str(file)], capture_output=True, text=True, check=True)
        info = json.loads(done.stdout)
        print(f"  {file.stem:14}{info['events']:>10} calls {info['bytes_per_event']:8.2f} bytes each", flush=True)


def study_predictors(family: Family, out: Path) -> None:
    try:
        studies = prediction.predictors(family, traces())
    except NotHere as error:
        print(f"  predictors left out: {error}")
        return
    out.write_text(json.dumps(studies, indent=1) + "\n")


def save(path: Path, everything: dict[str, Results]) -> None:
    plain = {f: {b: {w: {n: list(s.values) for n, s in v.items()} for w, v in ways.items()} for b, ways in r.items()} for f, r in everything.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps({"version": 1, "results": plain}, indent=1) + "\n")
    temporary.replace(path)


PARTS = {
    "calls": call_costs,
    "pingpong": pingpong,
    "imbalance": imbalance,
    "hosts": between_hosts,
    "prediction": prediction.waits,
    "oversubscribed": oversubscribed,
    "tests": updates,
    "messages": message_rate,
    "one-sided": one_sided,
    "collectives": crowded_collectives,
    "beside": beside_another,
    "limited": limited_time,
    "applications": applications.compare,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", action="append", default=[], help="only these families")
    parser.add_argument("--part", action="append", default=[], choices=PARTS, help="only these of the measurements with MPI")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each way (default 5)")
    parser.add_argument("--json", type=Path, default=Path("build/bench/results.json"), help="where all figures go")
    parser.add_argument("--quick", action="store_true", help="3 runs of each, no libraries")
    args = parser.parse_args()
    repeats = 3 if args.quick else args.repeats
    families = [f for f in found_families() if not args.family or f.name in args.family]
    if not families:
        print("bench: none of the families asked for is installed", file=sys.stderr)
        return 2
    everything: dict[str, Results] = {}
    for family in families:
        family.compile_all()
        results = everything.setdefault(family.name, {})
        for part in [PARTS[name] for name in args.part or PARTS]:
            others = Others()
            try:
                results |= part(family, repeats)
            except Busy as e:
                print(f"  left out: {e}", flush=True)
            if again := sum(left_out):
                print(f"  repeated because the host took the processors meanwhile: {again}", flush=True)
            left_out.clear()
            if warning := others.warning():
                print(f"  {warning}", flush=True)
    save(args.json, everything)
    if not args.quick and not args.part:
        trace_sizes()
        study_predictors(families[0], args.json.with_name("predictors.json"))
        run_library_benchmarks()
        heading("the simulator beside SimGrid (goal: within 5 %)")
        sim_accuracy.compare()
        heading("the simulator beside a real run on network namespaces at 1 Gbit/s (goal: within 10 %)")
        try:
            net_replay.main(["--repeats", "3"])
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"  left out: {error}")
    print(f"\nAll figures: {args.json}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
