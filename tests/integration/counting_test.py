"""Every call is counted once, and its bytes as sent or received, whatever threads come, go or are left behind."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness.building import build
from harness.fallow import rank_records
from harness.families import REPOSITORY
from harness.lab import PROGRAMS, Lab
from harness.quiet import needs_two_processors, shown
from harness.running import HANGS_S

_ENDS = 12  # of a process; of 80, some had calls that were never made
_TRIES = 3
_BLOCKS = 64  # threads of a rank that are recorded


def _alone(lab: Lab, rc: int, name: str, *args: str) -> dict[str, Any]:
    """The report of a program without a launcher."""
    running, record = lab.start("auto", [lab.program(name), *args])
    outcome = running.finish(HANGS_S)
    assert outcome.rc == rc and not outcome.timed_out, outcome.describe()
    return lab.fallow.report(record)


def _events(report: dict[str, Any]) -> list[int]:
    """How many calls each thread's timeline has."""
    return [len(row["events"]) for row in report["timeline"]["rows"]]


@pytest.mark.one_family
def test_a_process_that_ends_beside_its_threads(lab: Lab) -> None:
    """Who ends the process adds up the calls of threads that are still at it: none of them twice, and no others."""
    called: set[str] = set()
    for i in range(_ENDS):
        report = _alone(lab, 7, "exits_beside.c", str(3000 + 137 * i))
        called |= {f["function"] for f in report["functions"]}  # on a busy machine no thread may have come to its first
        assert report["health"]["events_skipped"] == 0
    assert called == {"MPI_Init_thread", "MPI_Iprobe"}


def test_a_signal_that_ends_the_adding(lab: Lab) -> None:
    """A handler that jumps out of a wait leaves an event half added: it and those that follow are added nevertheless."""
    if lab.family.name != "openmpi":
        pytest.skip("only Open MPI can be left where Fallow's code begins")
    waits, calls = 800, 100
    report = _alone(lab, 0, "left_adding.c", str(waits))
    made = {f["function"]: f["calls"] for f in report["functions"]}
    # A signal within an event has that counted twice, one within a call's first steps has it counted as the last call's kind.
    assert abs(made["MPI_Iprobe"] - calls * waits) < waits / 4, made
    assert waits / 2 < made["MPI_Probe"] < 1.1 * waits, made


def _counting(attempt: Callable[[], tuple[dict[str, Any], str]]) -> tuple[dict[str, Any], str]:
    """The first of some runs in which calls were counted only, its report and output: while others have the cores there may be none."""
    shares = []
    for _ in range(_TRIES):
        report, said = attempt()
        shares.append(report["totals"]["calls_counted"] / report["totals"]["calls"])
        # On a quiet machine 0.5 where there are loops by turns, which are all recorded, else 0.7 to 0.99; on a busy one it takes long to begin.
        if shares[-1] > 0.02:
            return report, said
    raise AssertionError(shares)


def _finished(lab: Lab, mode: str, command: list[str | Path]) -> tuple[dict[str, Any], str]:
    """The report of a run that ends well, and what it prints."""
    running, record = lab.start(mode, command)
    outcome = running.finish(HANGS_S)
    assert outcome.rc == 0 and not outcome.timed_out, outcome.describe()
    return lab.fallow.report(record), outcome.out


def _tests_made(outcome: str) -> dict[tuple[str, int], int]:
    """Of what works_between_tests.c says: calls by function and communicator, in the order in which these were made."""
    _, test, _, testany, _, *probes = outcome.split()
    return {("MPI_Test", 0): int(test), ("MPI_Testany", 0): int(testany)} | {("MPI_Iprobe", i): int(n) for i, n in enumerate(probes)}


@pytest.mark.parametrize("end", ["", "exit"])
@pytest.mark.parametrize("mode", ["auto", pytest.param("spin", marks=pytest.mark.one_family)])
def test_tests_that_are_counted_only(lab: Lab, mode: str, end: str) -> None:
    """All of them count, at their place and communicator, and what they take is part of the time in MPI."""
    report, said = _counting(lambda: _finished(lab, mode, [lab.program("works_between_tests.c"), "40000", *end.split()]))
    made = _tests_made(said)
    places = sorted((s for s in report["sites"] if s["function"] in {name for name, _ in made}), key=lambda s: int(s["comm"]))
    found: dict[tuple[str, int], int] = {}
    comms = sorted({s["comm"] for s in places if s["function"] == "MPI_Iprobe"})
    for s in places:
        key = (s["function"], comms.index(s["comm"]) if s["function"] == "MPI_Iprobe" else 0)
        found[key] = found.get(key, 0) + s["calls"]
    assert found == made
    calls = sum(f["calls"] for f in report["functions"])
    assert report["totals"]["calls"] == calls
    assert sum(b["count"] for b in report["gaps"]["papers"]) == calls
    tests = [f for f in report["functions"] if f["function"] in {name for name, _ in made}]
    assert 0 < sum(f["time_s"] for f in tests) < report["ranks"][0]["residency"]["transfer_s"]
    gaps = sum(s["gap_s"] for s in report["sites"])
    assert sum(b["time_s"] for b in report["gaps"]["papers"]) == pytest.approx(gaps, rel=1e-6)


def _of_program(report: dict[str, Any], name: str) -> list[int]:
    """How many calls of the function each place in the program made, on each communicator."""
    sites = [s for s in report["sites"] if s["function"] == name]
    assert all("tests/integration/programs" in s["source"] for s in sites), sites
    return [int(s["calls"]) for s in sites]


@pytest.mark.parametrize("flags", [(), ("-DF08",)], ids=["mpi", "f08"])
def test_tests_of_fortran_are_counted_for_the_program(lab: Lab, flags: tuple[str, ...]) -> None:
    """Whichever way they go: Open MPI's bindings call the C function by its other name."""
    if not lab.family.fc:
        return
    source = PROGRAMS / "tests_in_fortran.F90"
    program = build(lab.family, f"tests_in_fortran{len(flags)}", [source], ["-O1", "-g", *flags])
    report, _ = _counting(lambda: _finished(lab, "auto", [program, "50000"]))
    assert _of_program(report, "MPI_Test") == [3 * 50000]


def test_tests_are_counted_only_where_ranks_share_cores(lab: Lab) -> None:
    """Once they are known to be made between works: until then each gives way to others."""
    program = build(lab.family, "updates", [REPOSITORY / "bench/programs/updates.c"], ["-O2"], [])
    launch = lab.family.launch(2 * len(os.sched_getaffinity(0)), program, "1500000")
    report, said = _counting(lambda: _finished(lab, "auto", launch))
    assert {f["function"]: f["calls"] for f in report["functions"]}["MPI_Testany"] == int(said.split()[-1])


def test_threads_count_their_tests(lab: Lab) -> None:
    report, _ = _counting(lambda: _finished(lab, "auto", [lab.program("threads_test.c"), "60000"]))
    assert _of_program(report, "MPI_Iprobe") == [60000] * 4


def test_tests_that_are_left_by_a_jump_count(lab: Lab) -> None:
    """Those that are not counted only are left before their communicator is known."""
    report, _ = _counting(lambda: _finished(lab, "auto", [lab.program("leaves_tests.c"), "100000"]))
    assert sum(_of_program(report, "MPI_Iprobe")) == 100000


@pytest.mark.measures
@pytest.mark.parametrize("mode", ["spin", "auto"])
def test_totals_are_made_in_the_shortest_waits(lab: Lab, mode: str) -> None:
    """Else they would be made of many calls at once where the rank computes, and its peer would wait for that."""
    rounds = 60  # fewer calls than are made together there

    def in_totals() -> int:
        running, record = lab.start(mode, lab.family.launch(2, lab.program("short_waits.c"), str(rounds)))
        outcome = running.finish(HANGS_S)
        assert outcome.rc != 0 and not outcome.timed_out, outcome.describe()
        calls = rank_records(record)[0].calls
        return calls["MPI_Send"] + calls["MPI_Recv"]

    shown(in_totals, lambda calls: calls >= 1.8 * rounds, 6)  # a rank that loses its core finds its answers there, and does not wait


def test_no_call_is_the_first_to_touch_a_page(lab: Lab) -> None:
    """It would take a microsecond or two: the events of 20,000 calls lie in some 200 pages."""
    if tuple(int(n) for n in platform.release().split("-")[0].split(".")[:2]) < (5, 14):
        pytest.skip("the kernel cannot make pages ready for writing")
    running, _ = lab.start("auto", [lab.program("faults.c")])
    outcome = running.finish(HANGS_S)
    assert outcome.rc == 0, outcome.describe()
    faults = int(outcome.out.split()[1])
    assert faults < 50, faults


def test_more_threads_than_are_recorded(lab: Lab) -> None:
    """Each of them counts once among those left out, however many calls it makes."""
    report = _alone(lab, 0, "many_threads.c", "70", "50", "together")
    assert report["health"]["threads_dropped"] == 70 + 1 - _BLOCKS  # with the one that starts MPI
    assert report["totals"]["calls"] == 2 + 50 * (_BLOCKS - 1)


def test_a_thread_that_may_not_open_the_record(lab: Lab) -> None:
    """Where the program has become another user, the report says that something is missing, and what it may be."""
    if os.geteuid() != 0:
        pytest.skip("only root becomes another user")
    running, record = lab.start("auto", [lab.program("other_user.c")])
    outcome = running.finish(HANGS_S)
    assert outcome.rc == 0, outcome.describe()
    assert lab.fallow.report(record)["health"]["threads_dropped"] == 1
    text = subprocess.run([lab.fallow.exe, "report", record], capture_output=True, text=True, check=True).stdout
    assert "without access" in " ".join(text.split()), text


def test_threads_that_come_and_go(lab: Lab) -> None:
    """The next thread goes on where the last one ended, in the timeline too, and when the rank is killed."""
    report = _alone(lab, 0, "many_threads.c", "20", "10", "in turn")
    assert (report["totals"]["calls"], report["health"]["events_skipped"]) == (2 + 200, 0)
    assert _events(report) == [2, 200]
    report = _alone(lab, -9, "many_threads.c", "20", "10", "killed")
    assert (report["totals"]["calls"], report["health"]["events_skipped"]) == (1 + 200, 0)


def test_bytes_are_sent_or_received(lab: Lab, tmp_path: Path) -> None:
    """By what the calls do, not by their kind: what starts a receive sends nothing, nor does what goes to nobody."""
    trial = lab.run("auto", 2, lab.program("directions.c"), options=["--trace", str(tmp_path / "t.ftr")])
    assert trial.outcome.rc == 0, trial.outcome.describe()
    scattered = 2 * 2 * 3 * 4  # by two calls that do the same: three integers for each of the ranks
    parts = 2 * 4 * 10 if lab.family.mpi4 else 0
    summed = 2 * 5 * 4  # by a persistent request
    both = 10 * (1000 + 100 + 10) + 500 + scattered + 3 * 20 + parts + summed
    received = 10 * (1000 + 1000 + 10) + 200 + 150 + 3 * 40 + parts
    ranks = lab.fallow.report(trial.record)["ranks"]
    both += 9  # from the one group to the other
    both += 11 + 13 + 17  # along a line
    swapped = 4
    both, received = both + 2 * swapped, received + 3 * swapped
    both += 2 * 19  # in place at the root, too
    right = 7 + 3
    expected = [(both + 70 + 2 * 23 + right, received), (both + 80 + 2 * 29, received + right)]
    assert [(r["sent_bytes"], r["received_bytes"]) for r in ranks] == expected
    info = subprocess.run([lab.fallow.exe, "trace", "info", "--json", tmp_path / "t.ftr"], capture_output=True, text=True, check=True).stdout
    traced = {o["name"]: o["size_bytes"] for o in json.loads(info)["operations"]}
    reported = {f["function"].replace("MPIX_", "MPI_"): f["size_bytes"] for f in lab.fallow.report(trial.record)["functions"]}
    assert {name: traced[name] for name in reported if name in traced} == reported


def test_handles_that_come_back(lab: Lab) -> None:
    """A type or communicator is not taken for the one that had its handle before; many communicators make one place."""
    trial = lab.run("auto", 2, lab.program("again.c"))
    assert trial.outcome.rc == 0, trial.outcome.describe()
    report = lab.fallow.report(trial.record)
    sizes = {f["function"]: f["size_bytes"] for f in report["functions"]}
    assert sizes["MPI_Bcast"] == 2 * sum(range(1, 21))
    assert sizes["MPI_Alltoall"] == 2 * 10 * (10 * 2 + 10)
    places = [s for s in report["sites"] if s["function"] == "MPI_Barrier"]
    assert sum(s["calls"] for s in places) == 2 * 40
    assert len(places) < 32 and any(s["comm"] == 65535 for s in places), places


def test_where_time_goes(lab: Lab) -> None:
    """File access is no transfer, and no wait sleeps where the program has said that nothing must be late."""
    trial = lab.run("sleep", 2, lab.program("critical.c"), str(lab.scratch / "file"))
    assert trial.outcome.rc == 0, trial.outcome.describe()
    report = lab.fallow.report(trial.record)
    functions = {f["function"]: f for f in report["functions"]}
    files = [f for f in functions.values() if f["kind"] == "io"]
    spent = sum(f["time_s"] - f["wait_awake_s"] - f["wait_asleep_s"] for f in files)
    assert sum(f["calls"] for f in files) == 102
    assert spent > 0 and abs(report["totals"]["residency"]["io_s"] - spent) < 1e-6
    assert functions["MPI_Recv"]["wait_asleep_s"] == 0
    if functions["MPI_Probe"]["wait_asleep_s"] == 0:
        pytest.skip("others use the machine's cores: the rank did not come to sleep")


def test_who_moves_a_long_message_does_not_wait(lab: Lab) -> None:
    """The poll that finds a message may move all of it, and the call ends with that: on both MPICH it was counted as waiting."""
    needs_two_processors()
    shares = []
    for _ in range(_TRIES):
        trial = lab.run("sleep", 2, lab.program("late_large.c"))
        assert trial.outcome.rc == 0, trial.outcome.describe()
        functions = {f["function"]: f for f in lab.fallow.report(trial.record)["functions"]}
        received = functions["MPI_Recv"]
        moved = received["time_s"] - received["wait_awake_s"] - received["wait_asleep_s"]
        shares.append(moved / float(trial.outcome.out))
    assert max(shares) > 0.6, shares  # 0.9 to 1.0; 0.00 to 0.01, and 0.7 on Open MPI


def test_time_in_callbacks_counts_once(lab: Lab) -> None:
    """As that of the call around them, not as computation too; the calls that they make are no damage."""
    running, record = lab.start("auto", [lab.program("called_back.c")])
    outcome = running.finish(HANGS_S)
    assert outcome.rc == 0, outcome.describe()
    report = lab.fallow.report(record)
    times = {f["function"]: f["time_s"] for f in report["functions"]}
    assert report["totals"]["core_time_s"] < float(outcome.out.split()[-1])
    assert times["MPI_Comm_free"] >= 10 * 0.04
    computing = report["totals"]["core_time_s"] - sum(times.values())
    assert abs(computing - report["totals"]["residency"]["computing_s"]) < 1e-6
    assert report["health"]["events_skipped"] == 0
    assert sum(_events(report)) == report["totals"]["calls"] == 2 + 10 * (2 + 2)


def test_children_of_callbacks_count_nothing(lab: Lab) -> None:
    """They return from the call that the callback was made in: it is their parent's, and so is what waits to be added up then."""
    times = 600
    report = _alone(lab, 0, "forks_inside.c", str(times))
    made = {f["function"]: f["calls"] for f in report["functions"]}
    assert (made["MPI_Send"], made["MPI_Iprobe"]) == (times, times // 3 * 3)
    assert report["health"]["events_skipped"] == 0


def test_calls_in_callbacks_keep_the_places_of_others(lab: Lab) -> None:
    """With those that they make, more calls may have to be added up than there is room for beside the call around them."""
    report = _alone(lab, 0, "called_in_freeing.c")
    calls = sorted(s["calls"] for s in report["sites"] if s["function"] == "MPI_Iprobe")
    assert calls == [200, 20 * 200]  # of which communicator the former are is not known


def test_calls_of_libraries_that_come_and_go(lab: Lab, tmp_path: Path) -> None:
    """Each call is named by the library that was there then, also one that was loaded by a relative path."""
    flags = ["-shared", "-fPIC", "-O1", "-g", "-fno-optimize-sibling-calls"]
    for part, more in (("first_part", []), ("second_part", ["-DLATER"])):
        library = build(lab.family, f"{part}.so", [PROGRAMS / "plugin.c"], [*flags, f"-DPART={part}", *more])
        (tmp_path / f"{part}.so").symlink_to(library)
    trial = lab.run("auto", 2, lab.program("plugins.c"), "./first_part.so", "./second_part.so", cwd=tmp_path)
    assert trial.outcome.rc == 0, trial.outcome.describe()
    calls = {s["symbol"]: s["calls"] for s in lab.fallow.report(trial.record)["sites"] if "part" in s["module"]}
    assert set(calls) == {"first_part", "second_part"}, calls


# Without this its atomic operations crash here, also bare.
_WITHOUT_SINGLE_COPY = {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}


def _counted(lab: Lab, program: str, mode: str, *args: str, options: tuple[str, ...] = ()) -> tuple[dict[str, Any], str]:
    """Report and output of one of the programs counted_*.c with two ranks."""
    launch = lab.family.launch(2, lab.program(program), *args)
    running, record = lab.start(mode, launch, env=_WITHOUT_SINGLE_COPY, options=options)
    outcome = running.finish(HANGS_S)
    assert outcome.rc == 0 and not outcome.timed_out, outcome.describe()
    return lab.fallow.report(record), outcome.out


_COUNTED = [
    "counted_one_sided.c 6000",
    "counted_messages.c 6000",
    "counted_exchanges.c 6000",
    "counted_collectives.c 6000",
    "counted_started.c 6000",
    "counted_repeats.c 6000",
    "counted_repeats.c 6000 jump",
]


@pytest.mark.measures  # messages are so close where no rank loses its core
@pytest.mark.parametrize("command", _COUNTED)
@pytest.mark.parametrize("mode", ["auto", pytest.param("spin", marks=pytest.mark.one_family)])
def test_calls_that_are_counted_only(lab: Lab, command: str, mode: str) -> None:
    """As many calls and bytes of each function, place and rank as where each is recorded; what they do is the program's to check."""
    program, *args = command.split()
    recorded, _ = _counted(lab, program, mode, *args, options=("--trace", "run.ftr"))
    assert recorded["totals"]["calls_counted"] == 0

    def exact(report: dict[str, Any]) -> dict[str, Any]:
        sites: dict[tuple[str, str], tuple[int, int]] = {}  # of calls that are left by a jump the communicator may not be known
        for s in report["sites"]:
            calls, size = sites.get((s["function"], s["source"]), (0, 0))
            sites[s["function"], s["source"]] = (calls + s["calls"], size + s["size_bytes"])
        ranks = sorted((r["rank"], r["sent_bytes"], r["received_bytes"]) for r in report["ranks"])
        return {"functions": {f["function"]: (f["calls"], f["size_bytes"]) for f in report["functions"]}, "sites": sites, "ranks": ranks}

    counted, _ = _counting(lambda: _counted(lab, program, mode, *args))  # none are while the other rank sleeps
    assert exact(counted) == exact(recorded)
    calls = sum(f["calls"] for f in counted["functions"])
    assert counted["totals"]["calls"] == calls == sum(b["count"] for b in counted["gaps"]["papers"])
    assert sum(b["count"] for b in counted["waits"]["papers"]) == sum(b["count"] for b in recorded["waits"]["papers"])


def test_a_rank_alone_counts_its_messages(lab: Lab) -> None:
    """It waits for nobody, so that it is never seen whether the library calls the hook."""
    times = 20000
    program = build(lab.family, "one_call", [REPOSITORY / "bench/programs/one_call.c"], ["-O2", "-Wno-stringop-overflow"], [])
    report, _ = _counting(lambda: _finished(lab, "auto", [program, "self_message", str(times)]))
    made = {f["function"]: f["calls"] for f in report["functions"]}
    assert {name: made[name] for name in ("MPI_Irecv", "MPI_Send", "MPI_Wait")} == dict.fromkeys(("MPI_Irecv", "MPI_Send", "MPI_Wait"), times)


# Which calls may wait, and how many of them there are each time.
_MAY_WAIT = {
    "counted_one_sided.c": ("MPI_Win_flush", 3),
    "counted_messages.c": ("MPI_Recv", 2),
    "counted_exchanges.c": ("MPI_Sendrecv", 2),
    "counted_collectives.c": ("MPI_Allreduce", 2),
    "counted_started.c": ("MPI_Wait", 4),
}


@pytest.mark.measures  # messages are so close where no rank loses its core
@pytest.mark.parametrize("program", _MAY_WAIT)
@pytest.mark.parametrize("mode", ["spin", "auto"])
def test_a_call_that_was_to_be_counted_and_waits(lab: Lab, program: str, mode: str) -> None:
    """Its wait is told, and in mode auto slept in, unless what sleeping may cost is spent. Only MPICH needs the target for what is written
    there. What others do with the cores can cost all of it, and a flush that lost its core lasted long without waiting."""
    function, times = _MAY_WAIT[program]

    def attempt() -> dict[str, float]:
        report, said = _counted(lab, program, mode, "6000", "late")
        (calls,) = (f for f in report["functions"] if f["function"] == function)
        assert calls["calls"] == times * 6000
        waited = float(said.split()[1])
        assert (waited > 0.05) == (function != "MPI_Win_flush" or lab.family.name == "mpich"), said
        assert mode == "auto" or calls["wait_asleep_s"] == 0
        counted = report["totals"]["calls_counted"] / report["totals"]["calls"]
        return {"waited": waited, "awake": calls["wait_awake_s"], "asleep": calls["wait_asleep_s"], "counted": counted}

    def holds(found: dict[str, float]) -> bool:
        told = found["awake"] + found["asleep"] >= 0.8 * found["waited"]
        slept = mode == "spin" or found["asleep"] >= 0.5 * found["waited"]
        return told and slept and found["counted"] > 0.1

    shown(attempt, holds, _TRIES)
