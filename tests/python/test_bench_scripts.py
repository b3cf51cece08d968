"""What the benchmarks' scripts decide, without running them."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    yield importlib.import_module
    for path in BENCH.glob("*.py"):
        sys.modules.pop(path.stem, None)


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


def test_goals_are_reached_at_their_limit_and_figures_tell_which_side(bench):
    goals = bench("goals").Goals()
    goals.at_most("here", "time", 1.02, 1.02)
    goals.at_most("here", "time", 1.0201, 1.02)
    goals.at_least("there", "saved", 89.999, 90, " %")
    goals.at_least("there", "saved", 97.123, 90, " %")
    goals.holds("there", "the same bytes", reached=False)
    assert [o.reached for o in goals.outcomes] == [True, False, False, True, False]
    assert [o.found for o in goals.outcomes] == ["1.02", "1.0201", "89.999 %", "97.1 %", "no"]
    assert goals.title() == "goals: 2 of 5 reached"
    lines = list(goals.lines())
    assert [line.endswith("MISSED") for line in lines] == [False, False, True, True, False, True]
    assert lines[3].split() == ["there", "saved", ">=", "90", "%", "89.999", "%", "MISSED"]


def test_each_part_is_measured_on_each_mpi_and_the_libraries_once(bench):
    run, families = bench("run"), bench("families")
    two = [families.Family(name, "cc", ("true",)) for name in ("a", "b")]
    chosen = run.steps(two, ["savings", "calls", "limited"], 1)
    assert [(s.of, s.part) for s in chosen] == [("a", "calls"), ("a", "limited"), ("b", "calls"), ("b", "limited"), ("libraries", "savings")]


def test_a_part_that_fails_does_not_end_the_others(bench, capsys):
    run, measure = bench("run"), bench("measure")

    def fails():
        raise RuntimeError("exit status 3")

    def is_busy():
        raise measure.Busy("no end within 5 s")

    assert run.carry_out(run.Step("x", "a", fails)) == (None, False)
    assert run.carry_out(run.Step("x", "a", is_busy)) == (None, True)
    assert run.carry_out(run.Step("x", "a", lambda: {"y": 1.0})) == ({"y": 1.0}, True)
    out = capsys.readouterr().out
    assert "FAILED: exit status 3" in out and "left out: no end within 5 s" in out


def test_figures_are_saved_with_their_goals(bench, tmp_path):
    run, measure = bench("run"), bench("measure")
    run.GOALS.at_most("a", "time", 1.5, 1)
    figures = {"a": {"calls": {"one": {"bare": {"ns": measure.Sample((1.0, 2.0))}}}, "hosts": None}, "libraries": {"traces": {"bt-16": 3.5}}}
    run.save(tmp_path / "new" / "results.json", figures)
    found = json.loads((tmp_path / "new" / "results.json").read_text())
    assert found["results"]["a"] == {"calls": {"one": {"bare": {"ns": [1.0, 2.0]}}}, "hosts": None}
    assert found["results"]["libraries"] == {"traces": {"bt-16": 3.5}}
    assert found["goals"][-1] == {"where": "a", "what": "time", "goal": "<= 1", "found": "1.50", "reached": False}
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["results.json"]


def test_what_the_programs_of_the_libraries_print_is_understood(bench, monkeypatch):
    libraries = bench("libraries")
    speed = [
        "   ranks  iter  jitt net  policy     from  of   th Mops/cpu of goal events/op   B/rank    B/op  peak MiB simulated s    cpu s   wall s",
        "      64  1000  0.05 full hardware   trace sums  1     2.15       -      1.23     2157    2.41      90.1    0.123456    2.345    2.345",
        "    4096   100  0.05 none always-on  trace sums  1     7.10    1.42      0.23      433    2.41      90.1    0.123456    2.345    2.345",
        "    4096   100  0.05 full hardware   trace path  1     1.85       -      1.23      512    2.41      95.3    0.123456    2.345    2.345",
        "    4096   100  0.05 full hardware   trace sums  1     2.15    0.72      1.23      433    2.41      90.1    0.123456    2.345    2.345",
        "    4096   100  0.05 full hardware   trace sums  2     2.05    0.68      1.23     1329    2.41      99.1    0.123456    2.345    2.345",
        "         a second thread: 1.61 times as fast (goal 1.5), bytes the same",
        " 1048576    10  0.00 full hardware   synth sums  1     0.90       -      1.23      612    0.00   12288.0    0.123456    2.345    2.345",
    ]
    costs = ["stream          adaptive       pps      spps      last      / pps     / last  / published",
             "nested              34.1      80.0     100.0       9.0       0.43       3.80        0.026",
             "noisy              110.5      80.0     100.0       9.0       0.43       3.80        0.085", "wait model: observe 9.1 ns, plan 8.2 ns"]  # fmt: skip
    monkeypatch.setattr(libraries, "_release", lambda: Path("/nonexistent"))
    monkeypatch.setattr(libraries, "_lines", lambda command: speed if command[0].endswith("speed") else costs)
    libraries.simulator_speed()
    libraries.predictor_costs()
    told = {o.what: (o.found, o.reached) for o in libraries.GOALS.outcomes}
    assert told == {
        "4096 ranks, jitter 5 %, no contention: speed, of the goal": ("1.42", True),
        "4096 ranks, jitter 5 %: speed, of the goal": ("0.72", False),
        "4096 ranks, jitter 5 %: a second thread, times as fast": ("1.61", True),
        "4096 ranks, jitter 5 %: the same bytes with two threads": ("yes", True),
        "1048576 ranks, jitter 0 %: peak memory": ("12.0 GiB", True),
        "bytes of the stencil's trace per call, the most of all sizes": ("2.41", True),
        "bytes a rank, the most of sizes from 4096 ranks on": ("612.0", True),
        "cost of adaptive per event, dearest stream (noisy)": ("110.5 ns", False),
        "cost of adaptive, of pps's as published": ("0.085", True),
    }


def test_savings_of_traces_are_simulated(bench, tmp_path, capsys):
    savings = bench("savings")
    good, bad = tmp_path / "stencil.ftr", tmp_path / "bad.ftr"
    fallow = [sys.executable, "-m", "fallow"]
    subprocess.run([*fallow, "synth", "stencil3d", "--ranks", "8", "--iterations", "30", "-o", str(good)], check=True, capture_output=True)
    bad.write_bytes(good.read_bytes()[:100])
    found = savings.compare([good, bad])
    assert list(found) == ["stencil"]
    saved = {policy: way["saved"] for policy, way in found["stencil"].items()}
    assert 0 < saved["adaptive"] <= saved["oracle"] < 0.57 and saved["pps"] >= 0  # a lane of four takes 43 %
    out = capsys.readouterr().out
    assert "bad          left out: it has no calls" in out and "\n  mean" in out
    assert [o.what for o in savings.GOALS.outcomes if "slowdown" in o.what] == ["slowdown by adaptive, slowest program"]


def test_programs_that_are_recorded_come_with_the_benchmarks(bench):
    """`make bench` installs what it records, whatever was made before."""
    packages = {"lmp": "lammps", "gmx_mpi": "gromacs", "pw.x": "quantum-espresso"}
    sections: dict[str, set[str]] = {}
    for line in (BENCH.parent / "tools" / "packages.txt").read_text().splitlines():
        if line.startswith("# "):
            here = sections.setdefault(line.split()[1], set())
        elif line:
            here.add(line)
    started = {p.command.split()[0] for p in bench("traces")._chosen([], [])}
    others = {word for word in started if not word.startswith("{programs}")}
    assert others == set(packages)
    assert {packages[word] for word in others} <= sections["bench"]
