"""What the benchmarks' scripts decide, without running them."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    yield importlib.import_module
    for name in ("net_replay", "traces", "families", "measure"):
        sys.modules.pop(name, None)


def test_between_two_rates_a_replay_is_right(bench):
    net_replay = bench("net_replay")
    assert net_replay.miss(0.9, 1.2) == 0 and net_replay.miss(1.0, 1.0) == 0
    assert net_replay.miss(0.7, 0.8) == pytest.approx(0.2)
    assert net_replay.miss(1.3, 1.5) == pytest.approx(0.3)


def test_traces_are_those_of_the_list(bench):
    traces = bench("traces")
    chosen = traces._chosen([], [])
    assert {"bt", "lu", "peptide", "gromacs", "qe"} <= {p.name for p in chosen}
    assert all(set(p.ranks) <= {16, 64} for p in chosen)
    (mg,) = traces._chosen([64], ["mg"])
    assert mg.ranks == (64,) and mg.values[64]["points"] == 512


def test_what_other_programs_used_is_told(bench, monkeypatch):
    measure = bench("measure")
    now = {"clock": 100.0, "machine": 5000.0, "own": 7.0}
    monkeypatch.setattr(measure.time, "monotonic", lambda: now["clock"])
    monkeypatch.setattr(measure.Others, "_machine_s", staticmethod(lambda: now["machine"]))
    monkeypatch.setattr(measure.Others, "_own_s", staticmethod(lambda: now["own"]))
    others = measure.Others()
    now |= {"clock": 110.0, "machine": 5020.0, "own": 26.5}
    assert others.cores() == pytest.approx(0.05) and others.warning() == ""
    now["machine"] += 9.5
    assert "used 1.0 cores" in others.warning()


def test_the_machine_is_busier_than_we_are(bench):
    others = bench("measure").Others
    assert others._machine_s() > 0
    before = others._own_s()
    sum(range(3_000_000))
    assert others._own_s() > before
