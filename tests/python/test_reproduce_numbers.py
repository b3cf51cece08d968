"""`fallow reproduce`: that each number of a report is what its heading says."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import pytest

from fallow import cli, native
from fallow.reproduce import chapter4, dickov2015, measure, record, streams
from fallow.reproduce.measure import LEADS, SIZES, SPPS_VARIANTS, Drawn, KernelResults, Reading, Saving, TraceResults
from fallow.sim.timeline import CallSpan, Timeline

PROGRAMS = {p.name: p for p in record.programs()}
PUBLISHED = record.data("dickov2015.toml")


def timeline(*ranks):
    """Calls of 1 us, each after a gap in us and of an operation."""
    calls = []
    for rank, gaps in enumerate(ranks):
        now = 0.0
        for gap_us, op in gaps:
            now += gap_us * 1000
            calls.append(CallSpan(rank, op, now, now + 1000, 0, 0))
            now += 1000
    return Timeline(tuple(calls), (), None)


def test_gaps_are_those_between_calls_of_a_rank_on_average():
    found = streams.gap_classes(timeline([(0, 1), (19, 1), (20, 1), (199, 1)], [(500, 1), (200, 1), (300, 1), (10, 1)]))
    assert [n for n, _ in found] == [1, 1, 1]
    assert [t for _, t in found] == pytest.approx([29e-6 / 2, 219e-6 / 2, 500e-6 / 2])
    assert streams.gap_classes(timeline()) == ((0, 0), (0, 0), (0, 0))


def test_gaps_repeat_where_they_are_like_the_last_one_after_the_same_calls():
    def steps(*gaps_us, first=(1, 1)):
        """Four calls after each gap, the first of them by turns one of two."""
        return timeline([(0, 9), *((5 if op else gap, op or first[i % 2]) for i, gap in enumerate(gaps_us) for op in (0, 2, 3, 4))])

    # The first two have no gap of their size before them, or no four calls.
    assert streams.repeated(steps(100, 100, 100, 100, 100)) == pytest.approx(2 / 4)
    assert streams.repeated(steps(100, 100, 100, 109, 109)) == pytest.approx(218 / 418)
    assert streams.repeated(steps(100, 100, 100, 112, 112)) == pytest.approx(112 / 424)
    assert streams.repeated(steps(10, 10, 10, 10, 10)) == 0  # too short to count
    # What comes before decides: the last gap, and all four calls.
    assert streams.repeated(steps(*[100, 400] * 10)) > 0.7
    assert streams.repeated(steps(*[100, 120] * 10)) == 0
    assert streams.repeated(steps(*[100, 120] * 10, first=(1, 7))) > 0.7


def test_what_a_predictor_costs_is_the_mean_over_calls(monkeypatch):
    asked = []

    class Stream:
        def __init__(self, **columns):
            self.calls = len(columns["op"])

        def evaluate(self, predictor, threshold):
            asked.append((predictor, threshold))
            return {"cost_ns": 1000.0 if self.calls == 1 else 3000.0}

    monkeypatch.setattr(native, "require", lambda: SimpleNamespace(predict=SimpleNamespace(Stream=Stream)))
    assert streams.cost_us(timeline([(0, 1)], [(0, 1), (5, 1), (5, 1)]), "pps", 20.5) == pytest.approx(2.5)
    assert asked == [("pps", 20_500)] * 2


def outcome(time_s, edge_j, rest=None):
    energy = {"edge_links": edge_j, "links": 1e9, "total": 2e9}
    return SimpleNamespace(energy_j=energy, run_time_s=time_s, raw={"mispredictions": 7},
                           rest_share=lambda kind: rest if kind == "edge_links" else 0.99)  # fmt: skip


def test_savings_are_of_edge_links_against_everything_on():
    assert Saving.of(outcome(1.1, 30.0, 0.4), outcome(1.0, 40.0)) == Saving(0.25, pytest.approx(0.1), 0.4, 7)


def test_a_reading_has_each_number_under_what_it_was_simulated_with():
    def read(cap):
        """What is saved tells the options; the threshold of 56 us saves most."""
        def savings(cases, _):
            found = []
            for c in cases:
                assert c.options["cap_by_first"] is cap and c.options["call_cost_us"] > 0
                given = (c.options["lead"], c.options.get("sample_gaps", 0), c.options.get("restarts", None))
                first = len(cases) == len(measure.THRESHOLDS_US)
                best = c.options.get("threshold_us") == 56.0
                found.append(Saving(1.0 if first and best else 0.0, 0, 0, hash(given)) if first or best or c.policy == "spps" else None)
            return found

        return measure._read(SimpleNamespace(savings=savings), outcome(1, 1), cap=cap)

    for cap in (True, False):
        reading = read(cap)
        assert reading.threshold_us == 56.0
        assert {k: v.mispredictions for k, v in reading.pps.items()} == {lead: hash((lead, 0, None)) for lead in LEADS}
        tuned = {(n, again): hash((0.01, n, again)) for n, again in SPPS_VARIANTS}
        assert {k: v.mispredictions for k, v in reading.spps.items()} == tuned


def kernel(name, ranks, per_node, *, step=0.0, slower=0.0):
    """Of which each number can be told from the others."""
    found = KernelResults(name, {"cg": "alya", "ft": "gromacs"}[name], ranks, per_node, 51_200 * per_node)
    found.speedup = {size: 1 + (1 - size) / 10 + step for size in SIZES}
    found.lanes = {(m, x): Saving((0.5 if m == "loops" else 0.3) - x / 10 + step, (0.01 if m == "loops" else 0.02) + slower, 0, 0)
                   for m in ("calls", "loops") for x in SIZES}  # fmt: skip
    return found


def test_tables_and_figures_of_chapter_4():
    kernels = [kernel("cg", 16, 1), kernel("cg", 16, 6, step=0.01, slower=0.5), kernel("ft", 16, 1, step=0.02)]
    drawn = ((0.0, 40.0), (50.0, 60.0))
    links = ((0.0, 30.0, "sending"), (30.0, 40.0, "changing"), (40.0, 80.0, "low"), (80.0, 120.0, "deep"))
    kernels[0].drawn = Drawn(0.0, 100.0, (drawn, ()), (links, ()))
    sizes, speedups, states, lanes, slowdowns = chapter4.sections(kernels, PROGRAMS, PUBLISHED["compression"])
    row = next(r for r in PUBLISHED["compression"]["message_kb"] if r[0] == 16)
    assert next(r for r in sizes.rows if r[0] == "16") == ("16", str(row[1]), str(row[2]), "50.0", str(row[3]), str(row[4]), "50.0")
    assert all(r[3] == r[6] == "-" for r in sizes.rows if r[0] != "16")
    assert speedups.rows[0][1:] == ("1.0250", "1.0375", "1.0500")
    assert f"The most here is 7.0 % ({PROGRAMS['ft'].title}, 16 ranks, 1 a node)" in speedups.differences[0]
    assert [r[1:] for r in states.rows] == [("25.0", "30.0", "5.0")]  # of two processes, one in MPI for half of the time
    (strips,) = states.strips
    assert [r[0] for r in strips.rows] == ["process 0", "link 0", "process 1", "link 1"]
    assert strips.rows[1][1:] == (2, ((30.0, 40.0, 3), (40.0, 80.0, 4), (80.0, 120.0, 4)))
    assert [r[1:] for r in lanes.rows[:2]] == [
        ("calls", "20.00", "22.50", "23.75", "25.00"), ("loops", "40.00", "42.50", "43.75", "45.00")
    ]  # fmt: skip
    assert [name for name, _ in lanes.bars.groups] == ["cg 16/1", "cg 16/6", "ft 16/1"]
    assert "ours up to 46.0 %" in lanes.differences[0] and "ours up to 47.0 %" in lanes.differences[1]
    assert [r[1:] for r in slowdowns.rows] == [("2.000", "1.000"), ("52.000", "51.000"), ("2.000", "1.000")]
    one, six = (PUBLISHED["compression"][f"slowdown_{n}ppn_pct"] for n in (1, 6))
    assert f"With 1 a node at most {one} % are published; for each loop ours is up to 1.00 %" in slowdowns.differences[0]
    assert f"With 6 a node at most {six} % are published; for each loop ours is up to 51.00 %: the rec" in slowdowns.differences[1]
    quick = [kernel("cg", 16, 1, slower=-0.0099)]
    assert "0.01 %, within what is published." in chapter4.sections(quick, PROGRAMS, PUBLISHED["compression"])[4].differences[0]


def trace(program, ranks, **changes):
    """Of which each number can be told from the others."""
    def reading(plus, threshold):
        pps = {lead: Saving(0.3 + lead + plus, lead / 10 + plus, 0.6, round(1000 * lead)) for lead in LEADS}
        spps = {(n, again): Saving(n / 10000 + plus + again / 100, n / 1e6 + plus, 0, 0) for n, again in SPPS_VARIANTS}
        return Reading(threshold, pps, spps)

    found = TraceResults(program, ranks, 100_000 * ranks, 10.0, ((5000, 0.1), (2000, 0.9), (1000, 4.0)), 0.1,
                         reading(0, 36.0), reading(0.015, 20.0), hit_rate=0.8)  # fmt: skip
    others = {"hardware": 0.2, "adaptive": 0.4, "oracle": 0.5}
    found.others = {n: Saving(saved, saved / 100, 0, 0) for n, saved in others.items()}
    found.repeated, found.search_share, found.cost_us = 0.7, 0.05, 0.25
    return dataclasses.replace(found, **changes)


def report(*traces, recorded=()):
    return dickov2015.document(dickov2015.Results(PUBLISHED, PROGRAMS, list(traces), recorded=frozenset(recorded)))


def section(found, title):
    return next(s for s in found.sections if title in s.title)


def test_idle_intervals_and_thresholds_stand_beside_the_published_ones():
    found = report(trace("bt", 16), trace("lammps", 16, repeated=0.2))
    row = next(r for r in PUBLISHED["idle_intervals"]["nas_bt"] if r[0] == 16)
    idle = section(found, "Table 5.1:")
    assert next(r for r in idle.rows if r[:2] == ("NAS BT", "16"))[2:] == (
        f"{row[1]} / 5000", f"{row[3]} / 2.00", f"{row[4]} / 2000", f"{row[6]} / 18.00", f"{row[7]} / 1000", f"{row[9]} / 80.00"
    )  # fmt: skip
    assert [r for r in idle.rows if r[0] == PROGRAMS["lammps"].title] == [
        (PROGRAMS["lammps"].title, "16", "- / 5000", "- / 2.00", "- / 2000", "- / 18.00", "- / 1000", "- / 80.00")
    ]  # fmt: skip
    share = 8000 / (row[1] + row[4] + row[7]) * 100
    assert idle.differences[0].startswith(f"NAS BT 16: {share:.0f} % of the published number of intervals; 80.00 % of")
    assert f"(published {row[9]} %), which last 4000 us on average: how it was recorded is not" in idle.differences[0]
    row = next(r for r in PUBLISHED["thresholds"]["nas_bt"] if r[0] == 16)
    thresholds = section(found, "Table 5.3:")
    assert ("NAS BT", "16", f"{row[1]} / 36", f"{row[2]} / 80") in thresholds.rows
    assert (PROGRAMS["lammps"].title, "16", "- / 36", "- / 80") in thresholds.rows
    text = f"On average 80 % of the calls are predicted where {row[2]:.0f} % are published"
    assert any(d.startswith(text) for d in thresholds.differences)
    assert any(d == text.replace("80 %", "100 %") + "." for d in section(report(trace("bt", 16, hit_rate=1.0)), "Table 5.3:").differences)
    assert "with 20 % of the published steps" in section(report(trace("bt", 16), recorded=[("bt", 16)]), "Table 5.1:").differences[0]


def test_costs_of_prediction_are_those_of_16_processes():
    costs = section(report(trace("bt", 16), trace("bt", 36, cost_us=9.0, search_share=0.9)), "Table 5.4:")
    row, mean = PUBLISHED["overheads"]["nas_bt"], PUBLISHED["overheads"]["mean"]
    assert ("NAS BT", f"{row[0]} / 5.00", f"{row[2]} / 0.250") in costs.rows
    assert costs.rows[-1] == ("mean (ours of 1 trace with 16 processes)", f"{mean[0]} / 5.00", f"{mean[2]} / 0.250")


def test_savings_stand_under_their_displacement_and_reading():
    worn = trace("mg", 16, repeated=0.2, calls=16 * 400_000, gaps=((5000, 0.1), (2000, 0.1), (1000, 4.0)))
    found = report(trace("bt", 16), worn)
    for title, lead, published in (("5.8 and", 0.05, None), ("5.10 and", 0.10, "saving_at_10_pct"), ("5.12 and", 0.01, "saving_at_1_pct")):
        s = section(found, title)
        assert s.rows[0] == ("NAS BT 16", f"{30 + lead * 100:.2f}", f"{lead * 10:.3f}", "60.00", str(round(1000 * lead)),
                             f"{31.5 + lead * 100:.2f}", f"{lead * 10 + 1.5:.3f}")  # fmt: skip
        assert s.rows[2][5:] == s.rows[0][5:]  # the mean
        assert "up to 4.00 % (NAS MG 16, whose ranks make 40.0 thousand calls a second)" in s.differences[-1]
        if published:
            assert s.rows[3][:2] == ("published mean", f"{PUBLISHED['pps'][published]}")
            assert "in these traces' gaps is 50.0 % (oracle)" in s.differences[0]
            assert "in gaps above 200 us for NAS BT 16 (" in s.differences[0]
            assert "from 20 % (NAS MG 16) to 70 % (NAS BT 16)" in s.differences[0]


def test_the_curve_over_thresholds_ends_where_nothing_rests():
    curve = section(report(trace("mg", 32, by_threshold={20.0: 0.5, 300.0: 0.25, 900.0: 0.0})), "Figure 5.14")
    assert curve.rows == [("20", "50.00"), ("300", "25.00"), ("900", "0.00")]
    assert "ours is zero above 300 us" in curve.differences[0]


def test_self_tuned_thresholds_and_other_policies():
    found = report(trace("bt", 16))
    tuned = section(found, "5.20 and")
    assert tuned.rows[0][1:] == ("2.00 / 0.010", "1.00 / 0.010", "5.00 / 0.040", "4.00 / 0.040", "31.00 / 0.100")
    assert tuned.rows[-1][1:] == ("3.50 / 1.510", "2.50 / 1.510", "6.50 / 1.540", "5.50 / 1.540", "32.50 / 1.600")
    assert f"save 5.0 % (published {PUBLISHED['spps']['saving']} %)" in tuned.differences[0]
    assert ", 26.0 percentage points behind the best threshold" in tuned.differences[0] and len(tuned.differences) == 1
    beyond = section(found, "Beyond")
    assert [r[1:] for r in beyond.rows] == [("20.00 / 0.200", "40.00 / 0.400", "50.00 / 0.500", "80")] * 2


def test_how_traces_were_recorded_is_said_if_it_is_known_of_all():
    both = (trace("bt", 16), trace("mg", 16))
    assert "recorded with the CPU-time clock" not in report(*both, recorded=[("bt", 16)]).intro[0]
    assert "recorded with the CPU-time clock" in report(*both, recorded=[("bt", 16), ("mg", 16)]).intro[0]


def test_shares_of_calls_and_of_the_first_link_are_those_of_the_best_threshold(monkeypatch, tmp_path):
    simulated = []

    class Bench:
        def __init__(self, trace, threads):
            pass

        def outcomes(self, cases, *, details=False):
            return [self.one(c) for c in cases]

        def one(self, c):
            simulated.append(c)
            tuned = c.options.get("threshold_us", 0)
            links = [("down", 0, 9, 9), ("up", 1, 9, 9), ("up", 0, tuned / 1000, 1)]
            found = outcome(10.0, 50.0 if c.policy == "always-on" or tuned != 56 else 25.0)
            found.links = [SimpleNamespace(kind=k, number=n, low_s=low, deep_s=deep) for k, n, low, deep in links]
            found.ranks = [SimpleNamespace(waiting_s=1, in_calls_s=2, end_s=10, expected=r + tuned, searches=r) for r in (1, 2)]
            found.raw |= {"ranks": 2, "calls": 1000}
            return found

        def drawn(self):
            return timeline([(0, 1), (500, 1)])

        def savings(self, cases, base):
            return [Saving.of(o, base) for o in self.outcomes(cases)]

    monkeypatch.setattr(measure, "Bench", Bench)
    found = measure.measure("mg", tmp_path / "mg-2.ftr", figure=True, threads=1)
    assert (found.ranks, found.calls, found.run_time_s) == (2, 1000, 10.0) and found.mpi_share == pytest.approx(0.3)
    assert found.hit_rate == pytest.approx((1 + 2 + 2 * 56) / 1000) and found.search_share == pytest.approx(3 / 1000)
    assert found.gaps[2] == (1, pytest.approx(500e-6))
    assert all(share == pytest.approx((t / 1000 + 1) / 10) for t, share in found.by_threshold.items()) and len(found.by_threshold) == 22
    others = {c.policy: c.options for c in simulated if c.policy in ("hardware", "adaptive", "oracle")}
    assert others == {key: {"upper_links": False} for key in found.others} and len(others) == 3


def kernels(path, compute):
    """An exchange of everybody with everybody, one process a node and six."""
    assert cli.main(["synth", "alltoall", "--ranks", "16", "--iterations", "6", "--bytes", "16KB", "--compute", compute, "-o", str(path)]) == 0
    return [measure.measure_kernel("ft", "gromacs", path, per_node, 1) for per_node in (1, 6)]


def test_smaller_messages_and_fewer_lanes_of_a_kernel(tmp_path):
    one, six = kernels(tmp_path / "ft-16.ftr", "1ms")
    assert one.message_bytes == pytest.approx(16384) and six.drawn is None
    for found in (one, six):
        speedups = [found.speedup[x] for x in SIZES]
        assert speedups == sorted(speedups) and speedups[0] == 1 < speedups[1] < speedups[3]
        for marks in ("calls", "loops"):
            saved = [found.lanes[marks, x].saved for x in SIZES]
            assert saved == sorted(set(saved)) and 0.4 < saved[0] < saved[3] < 0.57
    assert six.speedup[0.5] > one.speedup[0.5]  # a link carries what six ranks send
    link, calls = one.drawn.links[0], one.drawn.calls[0]
    first = next(begin for begin, _, state in link if state == "sending")
    assert len(calls) == 6 and first == pytest.approx(calls[0][0] + 10)  # once all lanes that it needs are on


def test_links_that_follow_loops_keep_their_lanes_in_short_gaps(tmp_path):
    found, _ = kernels(tmp_path / "ft-16.ftr", "20us")
    assert found.lanes["calls", 1.0].slowdown > 0.1 and found.lanes["loops", 1.0].slowdown == 0
    assert not any(state == "changing" for link in found.drawn.links for _, _, state in link)
