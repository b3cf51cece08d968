"""Modelled energy of what is more than one rank on one node: several nodes, threads besides, other ways to wait."""

from __future__ import annotations

from pathlib import Path

import pytest

from fallow import analyse
from fallow.model import Modelled
from rank_writer import OPS, Call, Header, RankFile, write_run
from test_sampling import PLATFORM

S = 10**9
COMPUTE_W, SPIN_W, YIELD_W, SLEEP_W = 10.0, 8.0, 6.0, 1.0  # as PLATFORM has them
YIELD_MODE = 1


def _modelled(run: Path, platform: str = "") -> Modelled:
    file = run.parent / "tiny.toml"
    file.write_text(PLATFORM)
    modelled = analyse.load(run, platform or str(file)).energy.modelled
    assert modelled is not None
    return modelled


def test_each_node_has_its_cores(tmp_path):
    """A rank on each of two nodes of one core, one of which computes while the other one sleeps."""
    busy = RankFile(rank=0, size=2, calls=[Call(0, 0), Call(2 * S, 2 * S)])
    idle = RankFile(rank=1, size=2, calls=[Call(0, 0), Call(0, 2 * S, asleep=2 * S)], host=b"node2")
    modelled = _modelled(write_run(tmp_path / "r", [busy, idle], run_time_s=2.0))
    assert modelled.energy_j == pytest.approx(2 * COMPUTE_W + 2 * SLEEP_W, rel=1e-3)
    assert modelled.energy_spinning_j == pytest.approx(2 * COMPUTE_W + 2 * SPIN_W, rel=1e-3)


def test_ranks_without_a_core_of_their_node_are_told_of(tmp_path):
    """Two nodes of one core have one for each of two ranks: they need not have shared it."""
    calls = [Call(0, 1000), Call(1000, S, awake=9 * S // 10)]
    made = [RankFile(rank=n, size=2, calls=calls, cpu_ns=3 * S // 10, host=b"node%d" % (n + 1)) for n in range(2)]
    run = write_run(tmp_path / "r", made)
    (tmp_path / "tiny.toml").write_text(PLATFORM)
    notes = analyse.load(run, str(tmp_path / "tiny.toml")).health.notes
    [note] = [note for note in notes if note.startswith("ranks had a core for 40.0 % of the 2 s that they were not")]
    assert "slept in MPI_Init, in MPI_Finalize or between calls" in note


@pytest.mark.parametrize("yields", [True, False])
def test_waits_that_yield_draw_what_yielding_does(tmp_path, yields):
    data = bytearray(RankFile(calls=[Call(0, 0), Call(S, 2 * S, awake=S)]).build())
    if yields:
        Header.from_buffer(data).mode = YIELD_MODE
    run = write_run(tmp_path / "r", [], run_time_s=2.0)
    (run / "rank-0").write_bytes(data)
    modelled = _modelled(run)
    assert modelled.energy_j == pytest.approx(COMPUTE_W + (YIELD_W if yields else SPIN_W), rel=1e-3)
    told = _modelled(run, "minotauro").assumptions  # each of its values has a source of its own
    assert any("spin_w" in line for line in told)
    assert any("yield_w" in line for line in told) == yields


def test_threads_besides_are_those_of_all_ranks(tmp_path):
    """Two ranks, each with four threads that compute for a second, three of them without MPI."""
    calls = [Call(0, 1000), Call(999_000_000, S)]
    made = [RankFile(rank=n, size=2, calls=calls, cpu_ns=39 * S // 10) for n in range(2)]
    parts = _modelled(write_run(tmp_path / "r", made, run_time_s=1.0), "minotauro").parts
    assert parts["computing"] == pytest.approx(8 * 13.3, rel=0.01)


def test_a_thread_may_compute_while_another_one_accesses_files(tmp_path):
    """A second of computing, then one of file access: of 1.6 s of CPU time 0.6 s were another thread's."""
    rank = RankFile(calls=[Call(0, 0), Call(S, 2 * S, op=5)], ops=OPS, sites={1: (0x401234, 0)}, cpu_ns=15 * S // 10)
    parts = _modelled(write_run(tmp_path / "r", [rank], run_time_s=2.0), "minotauro").parts
    assert parts["computing"] == pytest.approx(1.6 * 13.3, rel=0.01)
