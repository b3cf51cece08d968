"""Figures of a report that depend on how ranks shared cores, and on how far their records reach."""

from __future__ import annotations

import pytest

from fallow import analyse, clocks, energy, ranks, report_text, rundir, timeline_text
from fallow.errors import UserError
from fallow.model import Timeline, TimelineRow
from fallow.text import Style
from rank_writer import OPS, Call, RankFile, write_run


@pytest.mark.parametrize(("awake_ms", "burnt_ms"), [(90, 90), (190, 150)])
def test_waits_awake_burn_no_more_than_the_rank_had_of_cores(tmp_path, awake_ms, burnt_ms):
    """150 ms of CPU time, a tenth of a second of it the system's: while others had the core nothing was burnt."""
    ms = 10**6
    rank = RankFile(calls=[Call(0, 0), Call(0, 200 * ms, awake=awake_ms * ms)], cpu_ns=50 * ms)
    totals = analyse.load(write_run(tmp_path / "r", [rank])).totals
    assert totals.residency.wait_awake_s == pytest.approx(awake_ms / 1000)
    assert totals.wait_burnt_s == pytest.approx(burnt_ms / 1000)


@pytest.mark.parametrize(
    ("cpu_ms", "waits_ms", "said"),
    [
        (190, 90, "core time burnt in waits"),
        (100, 90, "core time burnt in waits, at most: ranks had a core for 50.0 % of their time awake"),
        (100, 105, "100 ms of core time burnt in waits, at most: ranks had a core for 50.0 % of their time awake"),
    ],
)
def test_time_burnt_is_told_as_a_bound_where_ranks_had_no_core_all_the_time(tmp_path, cpu_ms, waits_ms, said):
    """200 ms awake, some of it in waits: with less CPU time than that, who knows what had it."""
    ms = 10**6
    rank = RankFile(calls=[Call(0, 0), Call(0, 200 * ms, awake=waits_ms * ms)], cpu_ns=(cpu_ms - 100) * ms)
    report = analyse.load(write_run(tmp_path / "r", [rank]))
    lines = report_text.headline(report, Style(False, True, 160, breaks=False))
    assert next(line for line in lines if "waits awake" in line).split("  ")[-1] == said


def test_a_timeline_without_time_in_common_shows_all():
    def row(rank, begin, end):
        return TimelineRow(rank, str(rank), 0, "finalized", 1, [[begin, end - begin, 0, 0, 0, 0, 0]])

    def drawn(*rows):
        found = Timeline(0, ["MPI_Recv"], ["recv"], list(rows))
        return (*timeline_text.window(found), next(timeline_text.lines(found, Style(False, True, 100))))

    reaching = "Timeline   the last 50 ns, from where every rank's record reaches"
    assert drawn(row(0, 10, 50), row(1, 20, 70)) == (20, 70, True, reaching)
    assert drawn(row(0, 10, 50), row(1, 60, 90)) == (10, 90, False, "Timeline   all 80 ns recorded")


def test_a_timeline_draws_waits_first_awake_then_asleep():
    """Times of waits are in us, no longer than their call; file access is not divided."""
    events = [[1000, 500, 0, 0, 0, 0, 0], [10_000, 9_000, 0, 2, 3, 0, 0], [20_000, 4_000, 0, 1, 9, 0, 0], [30_000, 5_000, 1, 0, 0, 0, 0]]
    drawn = list(timeline_text.pieces(TimelineRow(0, "0", 0, "finalized", 4, events), ["recv", "io"]))
    computing, transfer, awake, asleep, io = range(5)
    assert [piece for piece in drawn if piece[0] < piece[1]] == [
        (1000, 1500, transfer),
        (1500, 10_000, computing), (10_000, 12_000, awake), (12_000, 15_000, asleep), (15_000, 19_000, transfer),
        (19_000, 20_000, computing), (20_000, 21_000, awake), (21_000, 24_000, asleep),
        (24_000, 30_000, computing), (30_000, 35_000, io),
    ]  # fmt: skip


def test_a_timeline_shows_waits_as_the_totals_count_them(tmp_path):
    """Where ranks share cores, a blocking call that took long waited, though it looked at the time too seldom to say so."""
    us = 1000
    calls = [Call(0, 20 * us), Call(30 * us, 90 * us + 1), Call(100 * us, 150 * us, op=3), Call(200 * us, 300 * us, awake=40 * us, asleep=50 * us)]
    for oversubscribed, second in ((0, 0), (1, 60)):
        rank = RankFile(calls=calls, ops=OPS, oversubscribed=oversubscribed)
        events = analyse.load(write_run(tmp_path / str(oversubscribed), [rank])).timeline.rows[0].events
        assert [tuple(e[3:5]) for e in events] == [(0, 0), (second, 0), (0, 0), (40, 50)]


_CORES_ARE_SHORT = [(0.0, None, 2_000_000_000, False), (0.2, None, 2_000_000_000, True), (0.0, 0.2, 2_000_000_000, True), (0.0, None, 10_000, True)]


@pytest.mark.parametrize(("others_s", "throttled_s", "cpu_ns", "short"), _CORES_ARE_SHORT)
def test_over_budget_where_cores_are_short_says_why(tmp_path, others_s, throttled_s, cpu_ns, short):
    """There sleeps do not depend on the budget."""
    calls = [Call(0, 1_000), Call(1_000, 401_000_000, awake=300_000_000, asleep=50_000_000)]
    rank = RankFile(calls=calls, wake_delay=20_000_000, cpu_ns=cpu_ns)
    report = analyse.load(write_run(tmp_path / "r", [rank], other_busy_s=others_s, throttled_s=throttled_s))
    said = ", budget 1.00 %, which does not bound sleeps where cores are short"
    assert any(said in line for line in report_text.headline(report, Style(False, True, 160, breaks=False))) == short


@pytest.mark.parametrize(("throttled_s", "limit", "told"), [(0.3, 1.0, "1 processor"), (0.3, 1.5, "1.5 processors"), (0.0, 1.0, ""), (None, None, "")])
def test_for_how_long_a_limit_stopped_the_command_is_told(tmp_path, throttled_s, limit, told):
    run = write_run(tmp_path / "r", [RankFile(calls=[Call(0, 1_000)])], run_time_s=1.0, throttled_s=throttled_s, processor_limit=limit)
    lines = [line.strip() for line in report_text.headline(analyse.load(run), Style(False, True, 160, breaks=False)) if "throttled" in line]
    assert lines == ([f"throttled            300 ms  of core time; control groups give the command the time of {told}"] if told else [])


def test_of_many_ranks_little_is_kept(tmp_path):
    """Call sites are summed while ranks are read, and what all ranks have alike is kept once: there may be thousands."""
    run = write_run(tmp_path / "r", [RankFile(rank=n, size=3, calls=[Call(0, 1000)] * 5) for n in range(3)])
    summed: list[int] = []
    found = ranks.load(ranks.files(run), 10, lambda rank: summed.append(rank["threads"][0]["sites"][0]["calls"]))
    assert summed == [5, 5, 5]
    assert [thread["sites"] for rank in found.read for thread in rank["threads"]] == [[], [], []]
    assert len({id(rank["ops"]) for rank in found.read}) == 1
    (site,) = analyse.load(run).sites
    assert (site.calls, site.ranks) == (15, 3)


def test_of_many_programs_each_is_looked_at_a_few_times(tmp_path):
    """A script may start thousands: what looks at all of them for each of them takes minutes."""

    class Counted(list):
        walks = 0

        def __iter__(self):
            Counted.walks += 1
            return super().__iter__()

    spans = Counted((10 * n, 10 * n + 8, 2) for n in range(200))
    assert energy.in_use_s(spans, 2000e-9, 4) == pytest.approx(2 * 2000e-9)
    read = ranks.load(ranks.files(write_run(tmp_path / "r", [RankFile()])), 10, lambda _: None).read * 200
    assert clocks.errors(read, Counted(range(200))) == {}
    assert Counted.walks < 20


def test_a_large_program_takes_no_cores_from_a_small_one_before_it(tmp_path):
    """Two ranks on twelve cores, then 48, which compute all the time: the first two had a core each."""
    directory = write_run(tmp_path / "r", [], run_time_s=2.0)
    for turn, size in enumerate((2, 48)):
        for rank in range(size):
            calls = [Call(0, 1000), Call(989_999_000, 990_000_000)]
            start = RankFile.wall_start_ns + turn * 10**9
            made = RankFile(rank=rank, size=size, calls=calls, launch=turn + 1, wall_start_ns=start, cpu_ns=0)
            (directory / f"rank-{rank:06d}-node1-{100 * turn + rank}.fallow").write_bytes(made.build())
    parts = analyse.load(directory, "minotauro").energy.modelled.parts
    assert parts["computing"] == pytest.approx((2 + 12) * 0.99 * 13.3, rel=1e-3)
    assert parts["unaccounted"] < 0.05 * parts["computing"]


def test_programs_that_ran_side_by_side_share_cores():
    assert energy.together({1: (0, 3, 1), 2: (4, 5, 8)}) == [({1}, 1), ({2}, 8)]
    assert energy.together({1: (0, 10, 2), 2: (4, 6, 3), 3: (8, 12, 1), 4: (12, 13, 9)}) == [({1, 2, 3}, 5), ({4}, 9)]


@pytest.mark.parametrize(("size", "cpu_ns", "end", "told"), [(1, 300_000_000, 1, True), (1, 750_000_000, 1, False), (13, 300_000_000, 1, False), (1, 300_000_000, 0, False)])
def test_ranks_that_had_no_core_are_told_of(tmp_path, size, cpu_ns, end, told):
    """A tenth of a second of the system's besides, of a second awake; what shares cores with its own kind is modelled so."""
    calls = [Call(0, 1000), Call(1000, 10**9, awake=9 * 10**8)]
    made = [RankFile(rank=n, size=size, calls=calls, cpu_ns=cpu_ns, finalized=end) for n in range(size)]
    notes = analyse.load(write_run(tmp_path / "r", made), "minotauro").health.notes
    assert any(note.startswith("ranks had a core for 40.0 % of the 1 s that they were not asleep") for note in notes) == told


def test_the_record_of_a_run_within_a_run_is_told(tmp_path):
    outer, inner = write_run(tmp_path / "outer", []), tmp_path / "inner"
    rundir.tell_outer(str(outer), inner)
    with pytest.raises(UserError, match=f"the command started a `fallow run` of its own, whose record is {inner}$"):
        analyse.load(outer)
    rundir.tell_outer(str(outer), inner)
    with pytest.raises(UserError, match="and 1 more"):
        analyse.load(outer)
    rundir.tell_outer("", inner)
    rundir.tell_outer(str(tmp_path), inner)
    assert not (tmp_path / rundir.INNER_FILE).exists()


def test_a_clock_is_wrong_by_that_of_the_host_that_it_is_compared_with():
    """Of two programs that have one host in common: its clock is found to be wrong by the first one."""
    def rank(host, begin):
        return {"host": host, "threads": [{"first_ns": begin, "last_ns": begin + 10}]}

    read = [rank("a", 0), rank("b", 100), rank("b", 120), rank("c", 320)]
    assert clocks.errors(read, [1, 1, 2, 2]) == {"b": (100, "a"), "c": (300, "a")}
