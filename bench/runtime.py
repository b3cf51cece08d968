"""The parts of the benchmarks that run programs under each MPI, bare and under Fallow in turns."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import applications
import prediction
from families import Family, in_limited_group, on_two_hosts
from goals import GOALS
from measure import (
    AUTO,
    BARE,
    CLOCK_ONLY,
    SPIN,
    TRACED,
    Results,
    Way,
    heading,
    instructions_per_call,
    side_by_side,
)

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


def call_costs(family: Family, repeats: int) -> Results:
    heading(f"{family.name}: cost per call (goal: at most 60 ns more in spin, 100 ns in auto)")
    results: Results = {}
    for ranks in (1, 2):
        results |= {f"calls-{ranks}": side_by_side(family, CALL_WAYS, ranks, [family.program("call_cost"), "31"], lambda t: pairs(t, 0, 2), repeats)}
    print("  in spin and auto most of these calls are counted only, as they follow each other closely; a trace has each of them")
    print("  cold_exchange: single calls, each after 8 MB of other data, so that what Fallow and the MPI library need is fetched anew")
    print(f"  {'':16}{'bare ns':>9}{'spin':>9}{'auto':>9}{'traced':>9}   more in spin, auto, by tracing (ns)   instructions of each")
    more: dict[str, list[float]] = {"in spin": [], "in auto": [], "by tracing": []}
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
            if name != "cold_exchange":
                more["in spin"].append(spin - bare)
                more["in auto"].append(auto - bare)
                more["by tracing"].append(traced - spin)
    for way, limit in (("in spin", 60), ("in auto", 100), ("by tracing", 30)):
        GOALS.at_most(family.name, f"dearest call, more {way}", max(more[way]), limit, " ns")
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
        GOALS.at_most(family.name, f"ping-pong, {size} bytes, auto", auto.median / bare.median, 1.02)
    return {"pingpong": found}


def waiting_table(family: Family, ways: list[Way], waits: Waits, patterns: Iterable[str], repeats: int, where: str = "") -> Results:
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
            told = f"waits of {wait_us} us{irregular}, {pattern}"
            GOALS.at_most(where or family.name, f"{told}: time", ratio, 1.01)
            if wait_us >= 1000 and waiting["bare"] > 0 and pattern != "seldom" and not where:
                GOALS.at_least(family.name, f"{told}: CPU time gone", 100 - 100 * max(waiting[AUTO.label], 0) / waiting["bare"], 90, " %")
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
                found = waiting_table(spread, [BARE, AUTO], WAITS_BETWEEN_HOSTS_US, ("recv", "allreduce"), repeats, f"{family.name}, two hosts, {over}")
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
    GOALS.at_most(family.name, "8 ranks on this machine's cores: time", ratio, 1)
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
        GOALS.at_most(family.name, f"a test after each update, {ranks} ranks: time", found[AUTO.label]["seconds"].median / bare, 1)
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
    GOALS.at_most(family.name, "short one-sided calls: time", found[AUTO.label]["seconds"].median / bare, 1)
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
            GOALS.at_most(family.name, f"short messages, {what} of {size} bytes: time", auto.median / bare.median, 1)
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
            GOALS.at_most(family.name, f"{ranks} ranks on this machine's cores, {call}{', one late' if late_us else ''}: time", auto.median / bare.median, 1)
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
        GOALS.at_most(family.name, f"80 % of a processor, {wait}: time", auto.median / bare.median, 1)
        results[f"limited-{wait}"] = found
    return results


PARTS: dict[str, tuple[str, Callable[[Family, int], Results]]] = {
    "calls": ("cost per call, and of tracing it", call_costs),
    "pingpong": ("half a round trip, 8 bytes to 4 MB", pingpong),
    "imbalance": ("CPU time of waits that is gone, and run time", imbalance),
    "hosts": ("the same between two hosts (as root)", between_hosts),
    "prediction": ("waits with and without prediction", prediction.waits),
    "oversubscribed": ("8 ranks on this machine's cores", oversubscribed),
    "tests": ("a test after each piece of work", updates),
    "messages": ("rates of short messages", message_rate),
    "one-sided": ("short one-sided calls", one_sided),
    "collectives": ("collective calls of ranks that share cores", crowded_collectives),
    "beside": ("beside a process that computes", beside_another),
    "limited": ("in a control group with little time", limited_time),
    "applications": ("large programs of others", applications.compare),
}
