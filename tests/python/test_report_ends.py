"""How ranks ended, and how long the run lasted, where they outlive the command, or are watched while they run."""

from __future__ import annotations

import mmap
import os

import pytest

from fallow import analyse
from rank_writer import Call, RankFile, write_run

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
    runs = "is still running (it was waiting)" if over else "is still running, or was killed (it was waiting)"
    assert f"! rank 0 {runs}; its record ends at its last call" in out
    assert ends == ["running", "unfinished" if over else "running"]
    assert ("! rank 1 did not reach MPI_Finalize" in out) == over
    assert ("ranks ran on for 800 ms so far" in out) == over
    if over:
        assert [row.end for row in analyse.load(directory).ranks] == ["unfinished", "unfinished"]


def test_a_run_that_failed_is_told_beside_another(tmp_path, fallow):
    """Its figures are those of a part."""
    well = write_run(tmp_path / "well", [_running(0, 1)])
    failed = write_run(tmp_path / "failed", [_running(0, 1)], exit_status=7)
    killed = write_run(tmp_path / "killed", [_running(0, 1)], exit_status=None, signal=9)
    assert "wait mode auto, exit status 7\n" in fallow("report", well, failed).stdout
    assert "wait mode auto, ended by signal 9\n" in fallow("report", killed, well).stdout
