"""How ranks ended, and how long the run lasted, where they outlive the command, or are watched while they run."""

from __future__ import annotations

import mmap
import os
import time

import pytest

from fallow import analyse, report_text
from fallow.text import Style
from rank_writer import OPS, Call, RankFile, write_run

SECOND = 10**9


def _running(rank: int, seconds: float, **kwargs) -> RankFile:
    """A rank that computes and sleeps by turns, and has not called MPI_Finalize."""
    step = SECOND // 10
    calls = [Call(i * step, (i + 1) * step, asleep=step // 2) for i in range(int(10 * seconds))]
    return RankFile(rank=rank, size=2, calls=calls, finalized=0, state=3, **kwargs)


def test_ranks_that_outlive_the_command_have_the_time_that_they_take(tmp_path):
    """A command of 0.2 s whose two ranks run for 3 s: what they had of cores does not exceed what there was."""
    ranks = [_running(r, 3, cpu_ns=SECOND) for r in range(2)]
    report = analyse.load(write_run(tmp_path / "r", ranks, run_time_s=0.2), "minotauro")
    assert report.totals.run_time_s == report.run.run_time_s == pytest.approx(3.0, abs=0.01)
    assert report.totals.core_time_s <= 2 * report.run.run_time_s
    (note,) = [n for n in report.health.notes if "ranks ran on" in n]
    assert note.startswith("ranks ran on for 2.8 s after the command had ended")
    modelled, compute_w, cores = report.energy.modelled, 13.3, 12  # as its file says
    assert modelled.cores_j / report.run.run_time_s <= cores * compute_w


def test_ranks_that_end_with_the_command_are_not_told_of(tmp_path):
    report = analyse.load(write_run(tmp_path / "r", [_running(r, 3) for r in range(2)], run_time_s=2.995))
    assert report.run.run_time_s == pytest.approx(3.0, abs=1e-3)
    assert report.health.notes == []


def test_clocks_of_other_hosts_do_not_make_a_run_longer(tmp_path):
    """A rank whose host's clock is a second ahead ran for no longer than it says itself."""
    ranks = [_running(0, 3), _running(1, 3, host=b"node2", wall_start_ns=RankFile.wall_start_ns + SECOND)]
    report = analyse.load(write_run(tmp_path / "r", ranks, run_time_s=3.1))
    assert report.run.run_time_s == 3.1
    ranks[1].wall_start_ns += 5400 * SECOND  # its times are moved
    ranks.reverse()
    ranks[0].rank, ranks[1].rank = 0, 1  # to those of the other host, which are not the launcher's
    report = analyse.load(write_run(tmp_path / "moved", ranks, run_time_s=3.1))
    assert report.run.run_time_s == 3.1 and "clock" in report.health.notes[0]


@pytest.mark.parametrize("over", [True, False])
def test_ranks_that_still_run_are_told_from_those_that_were_killed(tmp_path, fallow, over):
    """This process has the one's file open as a rank has."""
    ended = {} if over else {"run_time_s": None, "exit_status": None}
    directory = write_run(tmp_path / "r", [], **(ended | ({"run_time_s": 0.2} if over else {})))
    here, gone = (directory / f"rank-00000{r}-node1-{pid}.fallow" for r, pid in enumerate((os.getpid(), 2**22 + 1)))
    here.write_bytes(_running(0, 1).build())
    gone.write_bytes(_running(1, 1).build())
    with here.open("r+b") as file, mmap.mmap(file.fileno(), 0) as _held:
        out = fallow("report", directory).stdout
        ends = [row.end for row in analyse.load(directory).ranks]
    assert "! rank 0 is still running (it was waiting); the last call on its record is MPI_Recv" in out
    assert ("! rank 1 is still running, or was killed (it was waiting)" in out) != over
    assert ends == ["running", "unfinished" if over else "running"]
    assert ("! rank 1 did not reach MPI_Finalize" in out) == over
    assert ("ranks ran on for 800 ms so far" in out) == over
    if over:
        assert [row.end for row in analyse.load(directory).ranks] == ["unfinished", "unfinished"]


@pytest.mark.parametrize("state", [1, 3])
def test_a_rank_that_computes_while_it_is_looked_at_has_done_so_since_its_last_call(tmp_path, state):
    """One that waits has not, nor one that nobody writes any more."""
    directory = write_run(tmp_path / "r", [], run_time_s=None, exit_status=None)
    began = time.time_ns() - 60 * SECOND
    for rank, pid in enumerate((os.getpid(), 2**22 + 1)):
        file = _running(rank, 1, wall_start_ns=began)
        file.state = state
        (directory / f"rank-00000{rank}-node1-{pid}.fallow").write_bytes(file.build())
    with (directory / f"rank-000000-node1-{os.getpid()}.fallow").open("r+b") as held, mmap.mmap(held.fileno(), 0) as _held:
        report = analyse.load(directory)
    here, gone = (row.residency.computing_s for row in report.ranks)
    assert gone == 0
    assert here == pytest.approx(59 if state == 1 else 0, abs=10)
    assert report.totals.run_time_s == pytest.approx(60 if state == 1 else 1, abs=10)
    assert report.health.notes[0] == "ranks are still running; the run time is theirs so far"


def test_a_run_that_failed_is_told_beside_another(tmp_path, fallow):
    """Its figures are those of a part."""
    well = write_run(tmp_path / "well", [_running(0, 1)])
    failed = write_run(tmp_path / "failed", [_running(0, 1)], exit_status=7)
    killed = write_run(tmp_path / "killed", [_running(0, 1)], exit_status=None, signal=9)
    assert "wait mode auto, exit status 7\n" in fallow("report", well, failed).stdout
    assert "wait mode auto, ended by signal 9\n" in fallow("report", killed, well).stdout


PLACES = {site: (0x401000 + 64 * site, 0) for site in range(1, 5)}


def _hung(rank: int, op: int, peer: int, site: int = 4, **kwargs) -> RankFile:
    """One that has called twice and waits in a third call, or one that computes where `op` is 0."""
    at = 1_000_000 + rank * 1000
    calls = [Call(at, at + 1000, 2, site=1), Call(at + 2000, at + 3000, 3, site=2)]
    wait = Call(at + 10_000, at + SECOND, op, asleep=SECOND // 2, site=site, peer=peer) if op else None
    state = 4 if op else 1
    return RankFile(rank=rank, size=40, calls=calls, ops=OPS, sites=PLACES, open=wait, finalized=0, state=state, **kwargs)


def test_ranks_that_hang_at_one_place_are_told_together_the_odd_ones_first(tmp_path, fallow):
    """Of forty ranks 36 wait in a reduction, two for a message, one computes, and one has ended the program."""
    ranks = [_hung(r, 2, -1, 3) for r in range(40)]
    ranks[5], ranks[6], ranks[17], ranks[39] = _hung(5, 1, 17), _hung(6, 1, 17), _hung(17, 0, 0), _hung(39, 0, 0)
    ranks[39].finalized = 2
    directory = write_run(tmp_path / "r", ranks, exit_status=None, signal=9)
    report = analyse.load(directory)
    assert report.health.early == [
        "rank 39 called MPI_Abort; its record ends there",
        "rank 17 did not reach MPI_Finalize (it was computing); the last call on its record is MPI_Isend, called from "
        "program+0x1080, which ended 1.02 ms after the start",
        "2 ranks (5, 6) did not reach MPI_Finalize (they were asleep in MPI_Recv, called from program+0x1100, begun 1.02 ms "
        "after the start, for rank 17 of their communicator)",
        "36 ranks (0-4, 7-16, 18-38) did not reach MPI_Finalize (they were asleep in MPI_Allreduce among 40 ranks, called from "
        "program+0x10c0, begun 1.01 ms to 1.05 ms after the start)",
    ]
    told = " ".join(" ".join(fallow("report", directory).stdout.split("  ! ")).split())
    assert all(sentence in told for sentence in report.health.early)
    last = report.ranks[17].last_call
    assert last is not None and (last.function, last.place.symbol, last.place.source) == ("MPI_Isend", "program+0x1080", "")
    assert report.ranks[17].open_wait is None


def test_of_many_places_some_are_named(tmp_path):
    ranks = [_hung(r, 1, (r + 1) % 40, 1 + r % 4) for r in range(40)]
    for rank in ranks:
        rank.sites = {site: (address + 0x1000 * rank.rank, 0) for site, (address, _) in PLACES.items()}
    report = analyse.load(write_run(tmp_path / "r", ranks))
    told = [line for line in report_text.warnings(report, Style(False, True, 1000)) if "ended early" in line or "Finalize" in line]
    assert len(report.health.early) == 40 and len(told) == 9
    assert told[-1].endswith("32 more places where ranks ended early; --json has all")


def test_ranks_of_several_programs_and_without_a_call_are_told(tmp_path):
    none = [RankFile(rank=r, size=3, finalized=0, state=0, launch=1, wall_start_ns=10**18 + r) for r in range(3)]
    waiting = [_hung(r, 2, -1, launch=2, wall_start_ns=10**18 + SECOND) for r in range(2)]
    waiting[1].state = 3
    early = analyse.load(write_run(tmp_path / "r", [*none, *waiting])).health.early
    assert early[0].startswith("2 ranks (2:0, 2:1) did not reach MPI_Finalize (they were asleep or waiting in MPI_Allreduce")
    assert early[1] == "3 ranks (1:0-2) did not reach MPI_Finalize"
