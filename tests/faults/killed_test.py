"""Killed ranks, launchers and commands: nothing stays behind, and what was recorded can be read."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from harness.fallow import BARE, Fallow, rank_records
from harness.lab import Lab, Trial
from harness.running import Running

RANKS = 3
_GOES_ON_S = 1.0  # a program that ends with its starter would be gone by then
_CALLS = 300  # of each kind that a rank has made and the totals in its file show
_START_S = 240.0
_END_S = 240.0
SHARED_MEMORY = Path("/dev/shm")

Kill = Callable[[Running], None]


def _ranks(running: Running) -> list[int]:
    return running.processes("steady")


def _one_rank(running: Running) -> None:
    os.kill(_ranks(running)[-1], signal.SIGKILL)


def _all_ranks(running: Running) -> None:
    _kill(_ranks(running))


def _kill(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # the launcher may have been faster
            os.kill(pid, signal.SIGKILL)


def _launcher(running: Running) -> None:
    for pid in running.processes("mpi") or running.processes("orte"):
        with contextlib.suppress(ProcessLookupError):  # the launcher may have been faster
            os.kill(pid, signal.SIGKILL)


def _terminate(running: Running) -> None:
    running.process.send_signal(signal.SIGTERM)


KILLS: dict[str, Kill] = {"one rank": _one_rank, "all ranks": _all_ranks, "launcher": _launcher, "SIGTERM": _terminate}


def _shared_memory() -> set[str]:
    return {p.name for p in SHARED_MEMORY.glob("fallow*")}


def _under_way(running: Running, record: Path, ranks: int) -> None:
    """Waits until every rank has made some hundred calls, however busy the machine is."""

    def seen() -> bool:
        return sum(r.calls["MPI_Allreduce"] > _CALLS for r in rank_records(record)) == ranks

    assert running.wait_for(lambda: len(_ranks(running)) == ranks, _START_S), "the ranks did not start"
    assert running.wait_for(seen, _START_S), "the ranks do not get on"


def _run_and_kill(lab: Lab, mode: str, kill: Kill) -> Trial:
    program = lab.program("steady.c")
    begun = lab.scratch / f"begun-{mode}"
    running, record = lab.start(mode, lab.family.launch(RANKS, program, "600", lab.scratch / "stop", begun))
    assert running.wait_for(begun.exists, _START_S), "the ranks do not get on"
    if mode != BARE:
        _under_way(running, record, RANKS)
    kill(running)
    outcome = running.finish(_END_S)
    assert not outcome.timed_out, outcome.describe()
    return Trial(mode, outcome, record)


def _own_shared_memory(trial: Trial, fallow: Fallow) -> set[str]:
    run_id = fallow.report(trial.record)["run"]["run_id"]
    return {name for name in _shared_memory() if run_id in name}


def kill_of_hydra(lab: Lab, what: str) -> bool:
    return what == "SIGTERM" and lab.family.name != "openmpi"


@pytest.mark.parametrize("what", KILLS)
def test_killed(lab: Lab, fallow: Fallow, what: str) -> None:
    """The command ends as it does without Fallow; no process and no shared memory stay; the report tells the calls."""
    bare = _run_and_kill(lab, BARE, KILLS[what])
    trial = _run_and_kill(lab, "auto", KILLS[what])
    # MPICH's launcher that is terminated ends with 0 instead of 15 now and then, bare too.
    alike = {bare.outcome.rc, 0, signal.SIGTERM} if kill_of_hydra(lab, what) else {bare.outcome.rc}
    assert trial.outcome.rc in alike, f"bare gave {bare.outcome.rc}\n" + trial.outcome.describe()
    assert bool(trial.outcome.left_over) <= bool(bare.outcome.left_over), f"left: {trial.outcome.left_over}"
    report = fallow.report(trial.record)
    assert report["health"]["unreadable"] == []
    assert len(report["ranks"]) == RANKS
    calls = {f["function"]: f["calls"] for f in report["functions"]}
    assert calls["MPI_Init"] == RANKS and calls["MPI_Allreduce"] > _CALLS and calls["MPI_Sendrecv"] > _CALLS
    assert calls.get("MPI_Finalize", 0) == 0
    assert all(r["end"] != "finalized" for r in report["ranks"])
    assert not _own_shared_memory(trial, fallow)
    assert "Traceback" not in trial.outcome.err


def test_killed_without_a_launcher(lab: Lab, fallow: Fallow) -> None:
    """Where a module preloads Fallow into every job, nobody tidies up after a program."""
    begun, run = lab.scratch / "begun", f"alone-{os.getpid()}"
    env = {"LD_PRELOAD": str(fallow.library()), "FALLOW_RUN_ID": run}
    running, _ = lab.start(BARE, [lab.program("steady.c"), "600", lab.scratch / "stop", begun], env=env)
    assert running.wait_for(begun.exists, _START_S), "the program does not get on"
    _kill(_ranks(running))
    outcome = running.finish(_END_S)
    assert outcome.rc == -signal.SIGKILL and not outcome.timed_out, outcome.describe()
    assert not {name for name in _shared_memory() if run in name}


@pytest.mark.parametrize("last", [1, 61, 128])
def test_every_call_before_the_kill_is_counted(lab: Lab, fallow: Fallow, last: int) -> None:
    """Also those that were not in the totals yet: `last` and a few more were made without a wait among them."""
    program = lab.program("exact.c")
    running, record = lab.start("auto", lab.family.launch(RANKS, program, lab.scratch, str(last)))
    assert running.wait_for(lambda: len(list(lab.scratch.glob("done-*"))) == RANKS, _START_S), "the ranks do not get on"
    _kill(running.processes("exact"))
    outcome = running.finish(_END_S)
    assert not outcome.timed_out, outcome.describe()
    report = fallow.report(record)
    calls = {f["function"]: f["calls"] for f in report["functions"]}
    more = sum(range(RANKS))
    expected = {"MPI_Init": RANKS, "MPI_Allreduce": 3 * RANKS}
    expected |= {"MPI_Iprobe": 1000 * RANKS + more, "MPI_Sendrecv": last * RANKS + more}
    assert calls == expected
    assert report["totals"]["calls"] == sum(expected.values()) == sum(s["calls"] for s in report["sites"])
    assert report["waits"]["papers"] and all(r["end"] == "unfinished" for r in report["ranks"])
    by_rank = [sum(row["calls"] for row in report["timeline"]["rows"] if row["rank"] == r) for r in range(RANKS)]
    assert by_rank == [4 + 1000 + last + 2 * r for r in range(RANKS)]


@pytest.mark.parametrize("mode", ["spin", "auto", *(pytest.param(m, marks=pytest.mark.long) for m in ("yield", "sleep"))])
def test_the_wait_in_which_a_rank_was_killed_is_told(lab: Lab, fallow: Fallow, mode: str) -> None:
    """So that whoever ends a program that hangs sees where it did. It counts as far as it was looked at."""
    begun = lab.scratch / "begun"
    running, record = lab.start(mode, lab.family.launch(2, lab.program("waits_in_vain.c"), begun))
    assert running.wait_for(begun.exists, _START_S), "the ranks do not get on"
    time.sleep(_GOES_ON_S)
    _, computing = fallow.report(record)["ranks"]
    assert computing["is_written"] and computing["residency"]["computing_s"] > _GOES_ON_S / 2, "it does so since its last call"
    _kill(running.processes("waits_in_vain"))
    outcome = running.finish(_END_S)
    assert not outcome.timed_out, outcome.describe()
    report = fallow.report(record)
    waiting, computing = report["ranks"]
    assert computing["open_wait"] is None
    assert (computing["last_call"]["function"], computing["last_call"]["place"]["symbol"]) == ("MPI_Barrier", "main")
    wait = waiting["open_wait"]
    assert (wait["function"], wait["peer"], wait["comm_size"], wait["place"]["symbol"]) == ("MPI_Recv", 1, 2, "main")
    assert 0 < wait["since_s"] <= wait["seen_s"] <= report["run"]["run_time_s"]
    if mode in ("sleep", "auto"):
        assert waiting["residency"]["wait_asleep_s"] > _GOES_ON_S / 4
        assert wait["seen_s"] - wait["since_s"] > _GOES_ON_S / 2
    assert {s["symbol"] for s in report["sites"]} == {"main"}, "those of calls that were not in the totals, too"
    [site] = [s for s in report["sites"] if s["function"] == "MPI_Recv"]
    assert (site["symbol"], site["calls"], site["comm_size"]) == ("main", 1, 2)


def test_killed_command(lab: Lab, fallow: Fallow) -> None:
    """SIGKILL to `fallow run` itself: the program goes on to its end, and what it leaves is readable."""
    program = lab.program("steady.c")
    stop = lab.scratch / "stop"
    running, record = lab.start("auto", lab.family.launch(2, program, "600", stop))
    _under_way(running, record, 2)
    running.process.kill()
    running.process.wait()
    time.sleep(_GOES_ON_S)
    assert len(_ranks(running)) == 2, "the program ended with the command that started it"
    stop.touch()
    end = time.monotonic() + _END_S
    while running.processes() and time.monotonic() < end:
        time.sleep(0.05)
    outcome = running.finish()
    assert not outcome.left_over and "sum 1" in outcome.out, outcome.describe()
    assert [r.finalized for r in lab.records(record)] == [1, 1]
    assert fallow.report(record)["health"]["unreadable"] == []
    run_id = fallow.report(record)["run"]["run_id"]
    assert not {name for name in _shared_memory() if run_id in name}


def test_a_launcher_that_is_gone_before_its_ranks(lab: Lab, fallow: Fallow) -> None:
    """As one that is ended may be. What the run shows at its end holds what the ranks wrote after that."""
    launch = lab.family.launch(2, lab.program("steady.c"), "600", lab.scratch / "stop", lab.scratch / "begun")
    script = f"{shlex.join(map(str, launch))} & until [ -e begun ]; do sleep 0.1; done; (sleep 0.4; touch stop) & exit 3"
    command = [str(fallow.exe), "run", "--out", "record", "--", "sh", "-c", script]
    outcome = Running(command, lab.environment(), lab.scratch).finish(_END_S)
    assert outcome.rc == 3 and not outcome.left_over, outcome.describe()
    assert "MPI calls" in outcome.err and "did not reach MPI_Finalize" not in outcome.err, outcome.describe()


def test_report_while_it_runs(lab: Lab, fallow: Fallow) -> None:
    """The record of a run that has not ended yet can be read. A rank that sleeps has its CPU time there after a second."""
    running, record = lab.start("sleep", lab.family.launch(2, lab.program("steady.c"), "600"))
    try:
        _under_way(running, record, 2)
        report = fallow.report(record)
        assert report["totals"]["calls"] > _CALLS
        assert all(r["end"] == "running" for r in report["ranks"]), report["ranks"]
        told = running.wait_for(lambda: fallow.report(record)["ranks"][1]["cpu_user_s"] > 0, 30.0)
        assert told or lab.records(record)[1].sleeps < 100  # others use the machine's cores: it did not come to sleep
    finally:
        running.kill()
        running.finish(_END_S)
