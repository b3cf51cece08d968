"""Each figure of a report is the one that its name says: ranks whose counters all differ."""

from __future__ import annotations

import ctypes
import dataclasses
from pathlib import Path

import pytest

from fallow import analyse, figures_text, pair_text, report_text, sites
from fallow.model import Metered, MeterEnergy
from fallow.text import Style
from rank_writer import HEADER_BYTES, Call, Counters, Header, OpStats, RankFile, SiteStats, write_run

S = 10**9
OPS = [("", "other"), ("MPI_Recv", "recv"), ("MPI_Allreduce", "collective")]


def _write(directory: Path, rank: int, times: int) -> None:
    """A rank whose counters are all different, and `times` those of another one."""
    data = bytearray(RankFile(rank=rank, size=2, calls=[Call(0, 20 * S)], ops=OPS, sites={1: (0x401234, 0), 2: (0x401300, 0)}, budget=0.01 * times).build())
    head, counters = Header.from_buffer(data), Counters.from_buffer(data, HEADER_BYTES)
    head.cpu_user_ns, head.cpu_system_ns, head.threads_dropped = 50 * S * times, 7 * S * times, 3 * times
    head.switches_voluntary, head.switches_involuntary = 11 * times, 13 * times
    for n, name in enumerate(("computing", "transfer", "wait_awake", "wait_asleep", "io"), 1):
        setattr(counters, name, n * S * times)
    counters.wake_delay, counters.wake_absorbed, counters.wake_send_ticks = 9 * S // 10 * times, 3 * S // 10 * times, S // 10 * times
    counters.counted = 37 * times
    counters.sleeps, counters.wakes_by_peer, counters.wakes_sent = 17 * times, 19 * times, 23 * times
    counters.bytes_sent, counters.bytes_received = 29 * times, 31 * times
    ops = OpStats * len(OPS)
    functions = ops.from_buffer(data, HEADER_BYTES + ctypes.sizeof(Counters))
    places = (SiteStats * 8).from_buffer(data, HEADER_BYTES + ctypes.sizeof(Counters) + ctypes.sizeof(ops))
    for number in (1, 2):
        own = number * times
        for row in (functions[number], places[number]):
            row.calls, row.ticks, row.bytes = 2 * own, 6 * S * own, 5 * own
            row.wait_awake, row.wait_asleep, row.wake_delay = S * own, 3 * S * own, S // 4 * own
        site = places[number]
        site.op, site.comm, site.comm_size = number, number, 2
        site.gap_ticks, site.sleeps, site.wait_max = 7 * S * own, 8 * own, S // 8 * own
    (directory / f"rank-{rank}").write_bytes(data)


@pytest.fixture
def report(tmp_path):
    run = write_run(tmp_path / "r", [], run_time_s=40.0, other_busy_s=1.5, stolen_s=2.5, signal=None)
    _write(run, 0, 1)
    _write(run, 1, 2)
    return analyse.load(run)


def test_ranks(report):
    second = report.ranks[1]
    r = second.residency
    assert (r.computing_s, r.transfer_s, r.wait_awake_s, r.wait_asleep_s, r.io_s) == pytest.approx((2, 4, 6, 8, 10))
    assert (second.core_time_s, second.mpi_share) == pytest.approx((30, 28 / 30))
    assert (second.wake_delay_s, second.wake_delay_share) == pytest.approx((1.8, 1.8 / 30))
    assert (second.wake_absorbed_s, second.wake_lasting_share) == pytest.approx((0.6, 1.2 / 30))
    assert (second.sleeps, second.sent_bytes, second.received_bytes) == (34, 58, 62)
    assert (second.cpu_user_s, second.cpu_system_s) == pytest.approx((100, 14))
    assert (second.switches_voluntary, second.switches_involuntary) == (22, 26)


def test_totals(report):
    t = report.totals
    r = t.residency
    assert (r.computing_s, r.transfer_s, r.wait_awake_s, r.wait_asleep_s, r.io_s) == pytest.approx((3, 6, 9, 12, 15))
    assert (t.mpi_share, t.wait_asleep_share) == pytest.approx((42 / 45, 12 / 21))
    assert (t.wake_delay_s, t.wake_absorbed_s, t.wake_send_s) == pytest.approx((2.7, 0.9, 0.3))
    assert (t.wake_delay_share, t.wake_absorbed_share) == pytest.approx((2.7 / 45, 0.9 / 45))
    assert (t.wake_delay_share_worst, t.wake_lasting_share_worst) == pytest.approx((0.06, 0.04))
    assert (t.calls_counted, t.calls) == (111, 111 + 2)
    assert (t.sleeps, t.wakes_by_peer, t.wakes_sent) == (51, 57, 69)
    assert (t.sent_bytes, t.received_bytes) == (87, 93)
    assert (t.cpu_ranks_s, t.slowdown_budget) == pytest.approx((171, 0.02))
    assert report.health.threads_dropped == 9
    assert (report.run.other_busy_s, report.run.stolen_s) == (1.5, 2.5)


def test_functions_and_call_sites(report):
    """Most time first; what each rank has of one call site is one row."""
    assert [f.function for f in report.functions] == [s.function for s in report.sites] == ["MPI_Allreduce", "MPI_Recv"]
    for row in (report.functions[0], report.sites[0]):
        assert (row.calls, row.size_bytes) == (12, 30)
        assert (row.time_s, row.wait_awake_s, row.wait_asleep_s, row.wake_delay_s) == pytest.approx((36, 6, 18, 1.5))
    site = report.sites[0]
    assert (site.gap_s, site.wait_max_s, site.sleeps) == pytest.approx((42, 0.5, 48))
    assert (site.comm, site.comm_size, site.ranks, site.offset) == (2, 2, 2, 0x1300)


def test_waits_and_gaps_have_histograms_of_their_own(tmp_path):
    us = 1000
    calls = [Call(0, 0), Call(10 * us, 310 * us, asleep=300 * us), Call(320 * us, 320 * us)]
    report = analyse.load(write_run(tmp_path / "r", [RankFile(calls=calls)]))
    assert [b.count for b in report.gaps.papers] == [3, 0, 0]
    assert [b.count for b in report.waits.papers] == [2, 0, 1]
    assert [b.count_share for b in report.waits.papers] == pytest.approx([2 / 3, 0, 1 / 3])
    assert [b.time_share for b in report.waits.papers] == pytest.approx([0, 0, 1], abs=1e-6)


def test_threads_of_a_rank_at_one_call_site_are_one_rank(tmp_path):
    data = bytearray(RankFile(calls=[Call(0, 1000), Call(2000, 3000)]).build())
    Header.from_buffer(data).blocks_used = 2
    run = write_run(tmp_path / "r", [])
    (run / "rank-0").write_bytes(bytes(data) + data[HEADER_BYTES:])
    report = analyse.load(run)
    assert (report.totals.threads, report.ranks[0].threads) == (2, 2)
    (site,) = report.sites
    assert (site.calls, site.ranks) == (4, 1)


def test_call_sites_of_programs_with_other_numbers_of_ranks_are_rows_of_their_own(tmp_path):
    """As of a program that is run with more ranks later on; what is run again with as many is added."""
    made = [RankFile(rank=r, size=size, calls=[Call(0, size * S)], launch=launch, wall_start_ns=launch * 1000 * S)
            for launch, size in enumerate((2, 3, 2), 1) for r in range(size)]  # fmt: skip
    report = analyse.load(write_run(tmp_path / "r", made, run_time_s=9.0))
    assert [(s.comm_size, s.ranks, s.calls, round(s.time_s)) for s in report.sites] == [(3, 3, 3, 9), (2, 4, 4, 8)]
    assert [line.split()[2] for line in _text(report).partition("Call sites")[2].splitlines()[2:4]] == ["0/3", "0/2"]


def test_call_sites_beyond_those_that_are_named_are_counted():
    """They are those with the least time."""
    row = {"calls": 1, "size_bytes": 1, "wait_awake_s": 0.0, "wait_asleep_s": 0.0, "wake_delay_s": 0.0, "gap_s": 0.0, "sleeps": 0,
           "wait_max_s": 0.0, "comm_size": 1, "comm": 0, "op": 0, "module": -1}  # fmt: skip
    made = [row | {"address": n, "time_s": float(n)} for n in range(1, sites.MAX_SITES + 4)]
    sums = sites.Sums()
    sums.add({"size": 1, "ops": [("MPI_Recv", "recv", True)], "modules": [], "threads": [{"sites": made}]})
    shown, left_out = sums.build()
    assert (len(shown), left_out) == (sites.MAX_SITES, 3)
    assert [site.time_s for site in shown[:2]] == [sites.MAX_SITES + 3, sites.MAX_SITES + 2]


def _rows(report):
    return [line.split() for line in report_text.lines(report, Style(False, True, 160, breaks=False))]


def test_the_terminals_tables_have_each_figure_under_its_heading(report):
    rows = _rows(report)
    (head,) = (row for row in rows if row[:1] == ["rank"])
    assert head == ["rank", "compute", "MPI", "work", "awake", "asleep", "I/O", "delay", "end"]
    (second,) = (row for row in rows if row[:1] == ["1"] and row[-1] == "finalized")
    assert second[2:-1] == ["6.7", "%", "13.3", "%", "20.0", "%", "26.7", "%", "33.3", "%", "4.00", "%"]
    assert [second[1].count(mark) for mark in "█▓▒·~"] == [5, 11, 17, 22, 27]
    assert ["MPI_Allreduce", "12", "36.0", "s", "6", "s", "18.0", "s", "30", "B", "1.5", "s"] in rows
    assert ["program+0x1300", "MPI_Allreduce", "2/2", "12", "36.0", "s", "6", "s", "18.0", "s", "500", "ms"] in rows
    waking = next(row for row in rows if row[:2] == ["waking", "others"])
    assert waking[2:9] == ["300", "ms", "0.67", "%", "of", "core", "time,"]
    asleep = next(row for row in rows if row[:2] == ["waits", "asleep"])
    assert asleep[2:9] == ["12.0", "s", "57.1", "%", "of", "21.0", "s"]
    assert next(row for row in rows if row[:2] == ["wake-up", "delay"])[2:7] == ["6.00", "%", "of", "which", "2.00"]
    assert any("9 threads, beyond 64 of a rank" in " ".join(row) for row in rows)


def test_the_terminals_histograms_and_energy(tmp_path):
    us = 1000
    calls = [Call(0, 0), Call(10 * us, 310 * us, asleep=300 * us), Call(320 * us, 320 * us)]
    report = analyse.load(write_run(tmp_path / "r", [RankFile(calls=calls)], run_time_s=2.0), "minotauro")
    rows = [[word for word in row if not set(word) <= set("█▏▎▍▌▋▊▉")] for row in _rows(report)]
    assert [">", "200", "us", "1", "33.3", "%", "300", "us", "100.0", "%"] in rows
    modelled = report.energy.modelled
    for row in rows:
        if row[:2] == ["unused", "cores"]:
            part = modelled.parts["unused_cores"]
            assert row[4:8] == [f"{part / 2:.1f}", "W", f"{100 * part / modelled.energy_j:.1f}", "%"]
            break
    else:
        pytest.fail("no row of unused cores")


@pytest.mark.parametrize(("energy_j", "said"), [(75.0, "25.0 % less"), (100.0, "0.0 % less"), (125.0, "25.0 % more")])
def test_energy_beside_that_of_spinning(energy_j, said):
    assert figures_text.less(energy_j, 100.0) == said


def test_two_reports_side_by_side_have_the_ratio_of_the_second_to_the_first(report):
    totals = report.totals
    residency = dataclasses.replace(totals.residency, wait_asleep_s=3.0, computing_s=12.0)
    other = dataclasses.replace(report, totals=dataclasses.replace(totals, residency=residency, wake_delay_share=0.03))
    rows = [line.split() for line in pair_text.lines(report, other, Style(False, True, 160, breaks=False))]
    for row in (
        ["computing", "3", "s", "12.0", "s", "4.000"], ["waits", "awake", "9", "s", "9", "s", "1.000"],
        ["waits", "asleep", "12.0", "s", "3", "s", "0.250"], ["wake-up", "delay", "6.00", "%", "3.00", "%", "0.500"],
    ):  # fmt: skip
        assert row in rows


def _text(report):
    return "\n".join(report_text.lines(report, Style(False, True, 160, breaks=False)))


def test_what_stands_in_no_table_is_counted(report):
    many = [dataclasses.replace(report.sites[0], symbol=f"f{n}") for n in range(report_text.MAX_ROWS + 2)]
    said = _text(dataclasses.replace(report, sites=many, sites_left_out=5)).partition("Call sites")[2].partition("Gaps between calls")[0]
    assert said.rstrip().endswith("  and 7 more")


def test_of_many_ranks_those_that_waited_longest_are_shown(report):
    def waiting(number):
        residency = dataclasses.replace(report.ranks[0].residency, wait_asleep_s=float(number))
        return dataclasses.replace(report.ranks[0], label=f"r{number}", residency=residency)

    said = _text(dataclasses.replace(report, ranks=[waiting(n) for n in range(report_text.MAX_ROWS + 3)]))
    assert [f"r{n} " in said for n in (0, 1, 2)] == [False] * 3 and all(f" r{n} " in said for n in range(3, report_text.MAX_ROWS + 3))


def test_only_the_delay_that_lasts_is_over_the_budget(report):
    """Of the rank that has most of it: it is painted."""
    def painted(lasting):
        totals = dataclasses.replace(report.totals, slowdown_budget=0.05, wake_delay_share_worst=0.06, wake_lasting_share_worst=lasting)
        return any("\x1b[31m" in line for line in report_text.headline(dataclasses.replace(report, totals=totals), Style(True, True, 160)))

    assert painted(0.055) and not painted(0.04)


def test_domains_in_the_sum_are_told_from_those_that_are_not(report):
    domains = [MeterEnergy("rapl", name, "package", 4.0, 2.0, 2.0, counted, None) for name, counted in (("package-0", True), ("core", False))]
    said = _text(dataclasses.replace(report, energy=dataclasses.replace(report.energy, metered=Metered(4.0, 8.0, "", domains, []))))
    rows = [line.split() for line in said.splitlines() if line.split()[:1] == ["rapl"]]
    assert [(row[1], row[-1]) for row in rows] == [("package-0", "yes"), ("core", "no")]
