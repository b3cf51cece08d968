"""From rank files to the report: sums, shares, health, and files that are damaged or missing."""

from __future__ import annotations

import dataclasses
import json
import os
import struct

import pytest

from fallow import analyse, energy, ranks, report_text, symbols
from fallow.errors import UserError
from fallow.text import Style
from rank_writer import OPS, Call, RankFile, lively_rank, write_run


def two_calls() -> RankFile:
    """10 us gap, 100 us call with 30 awake and 60 asleep, 300 us gap, 10 us call without a wait."""
    calls = [
        Call(0, 1_000, 1),
        Call(11_000, 111_000, 1, awake=30_000, asleep=60_000, size=100),
        Call(411_000, 421_000, 2, size=1000, site=2),
    ]
    return RankFile(calls=calls, ops=OPS, sites={1: (0x401234, 0), 2: (0x401300, 0)}, wake_delay=2_000, wake_absorbed=500)


def test_sums_are_exact(tmp_path):
    report = analyse.load(write_run(tmp_path / "r", [two_calls()]))
    r, t = report.totals.residency, report.totals
    assert r.computing_s == pytest.approx(310e-6)
    assert r.transfer_s == pytest.approx(21e-6)
    assert r.wait_awake_s == pytest.approx(30e-6)
    assert r.wait_asleep_s == pytest.approx(60e-6)
    assert t.core_time_s == pytest.approx(421e-6)
    assert t.mpi_share == pytest.approx(111 / 421)
    assert t.wait_asleep_share == pytest.approx(2 / 3)
    assert t.wake_delay_share == t.wake_delay_share_worst == pytest.approx(2 / 421)
    assert t.wake_absorbed_share == pytest.approx(0.5 / 421)
    assert t.wake_lasting_share_worst == pytest.approx(1.5 / 421)
    assert t.calls == 3
    assert t.received_bytes == 8 + 100 + 1000
    assert [(f.function, f.calls) for f in report.functions] == [("MPI_Recv", 2), ("MPI_Allreduce", 1)]
    assert report.functions[0].time_s == pytest.approx(101e-6)
    assert report.sites[0].symbol == "program+0x1234"
    assert report.sites[0].wait_max_s == pytest.approx(90e-6)
    assert report.run.mpi == "Open MPI v4.1.4"


def test_ranks_of_several_programs_are_told_apart(tmp_path):
    """By the launcher's name for them; without one, what has the same rank a second time is of another program."""
    one = [lively_rank(r, 2, 20, launch=7, wall_start_ns=10_000_000_000 + r) for r in range(2)]
    other = [lively_rank(r, 2, 20, launch=5, wall_start_ns=10_000_000_000 - r) for r in range(2)]
    later = [lively_rank(r, 3, 20, wall_start_ns=20_000_000_000 + r) for r in range(3)]
    again = [lively_rank(r, 3, 20, wall_start_ns=30_000_000_000 - r) for r in range(3)]
    report = analyse.load(write_run(tmp_path / "r", [*again, *later, *one, *other]))
    assert [row.label for row in report.ranks] == ["1:0", "1:1", "2:0", "2:1", "3:0", "3:1", "3:2", "4:0", "4:1", "4:2"]
    assert [(row.program, row.rank) for row in report.ranks] == [tuple(map(int, row.label.split(":"))) for row in report.ranks]
    assert [row.label for row in report.timeline.rows] == [row.label for row in report.ranks]
    assert any("4 MPI programs" in note for note in report.health.notes)
    shown = list(report_text.lines(report, Style(width=120, colour=False, unicode=True)))
    assert sum(line.strip().startswith("4:2 ") for line in shown) == 2  # its row and its timeline
    alone = analyse.load(write_run(tmp_path / "a", one))
    assert [row.label for row in alone.ranks] == ["0", "1"] and not alone.health.notes


def test_a_launcher_of_another_mpi_is_suspected(tmp_path):
    """Its processes are programs of one rank each; those one after another, as of a script, are in order."""
    for apart_ns, told in ((0, True), (10_000_000_000, False)):
        alone = [lively_rank(0, 1, 20, wall_start_ns=20_000_000_000 + i * apart_ns + i) for i in range(3)]
        notes = analyse.load(write_run(tmp_path / str(apart_ns), alone)).health.notes
        assert any("3 MPI programs" in note for note in notes)
        assert any("its launcher (mpirun, mpiexec, srun) is that of another MPI" in note for note in notes) == told


def test_papers_bins_of_gaps_and_waits(tmp_path):
    report = analyse.load(write_run(tmp_path / "r", [two_calls()]))
    assert [b.count for b in report.gaps.papers] == [2, 0, 1]  # the first call has no gap before it
    assert [b.time_s for b in report.gaps.papers] == pytest.approx([10e-6, 0, 300e-6])
    assert [b.count for b in report.waits.papers] == [2, 1, 0]
    assert (report.gaps.none_count, report.waits.none_count) == (1, 2)


def test_only_the_delay_that_was_not_made_good_is_held_against_the_budget(tmp_path):
    """Of 421 us, 20 us are late; the budget is 1 %."""
    rank = two_calls()
    for absorbed, over in ((17_000, False), (3_000, True)):
        rank.wake_delay, rank.wake_absorbed = 20_000, absorbed
        directory = write_run(tmp_path / str(absorbed), [rank])
        lines = report_text.headline(analyse.load(directory), Style(colour=True, unicode=True, width=112))
        line = next(x for x in lines if "wake-up delay" in x)
        assert "4.75 %" in line and f"of which {absorbed / 4210:.2f} % made good by later waits" in line
        assert ("\x1b[31m" in line) == over, line


def test_a_record_made_without_the_launcher_is_read_and_told(tmp_path):
    directory = write_run(tmp_path / "r", [two_calls()])
    (directory / "run.json").unlink()
    report = analyse.load(directory)
    assert report.totals.ranks == 1 and report.run.command == []
    assert report.health.notes[0].startswith("there is no run.json, as of what ran under Fallow without `fallow run`")


@pytest.mark.parametrize("width", [60, 80, 94, 107, 108])
def test_on_a_terminal_figures_and_bars_stay_inside_it(tmp_path, width):
    report = analyse.load(write_run(tmp_path / "r", [two_calls()]))
    narrow = Style(width=width, colour=False, unicode=True)
    shown = list(report_text.lines(report, narrow))
    shown = shown[: next(i for i, line in enumerate(shown) if line.startswith("Timeline"))]
    assert [line for line in shown if len(line) > width] == []
    text = " ".join(" ".join(shown).split())
    assert "made good by later waits worst rank's rest " in text.replace(";", "") and ", budget 1.00 %" in text
    assert ("█ computing" in text) == (width >= 94)
    piped = Style(width=width, colour=False, unicode=True, breaks=False)
    assert any("made good by later waits; worst rank's rest" in line for line in report_text.lines(report, piped))


def test_what_waking_others_took_is_told(tmp_path):
    """Of 421 us of core time; a line of its own only where there is something to tell."""
    for woken, told in ((0, False), (8_420, True)):
        rank = two_calls()
        rank.wake_send = woken
        directory = write_run(tmp_path / str(woken), [rank])
        lines = list(report_text.headline(analyse.load(directory), Style(colour=False, unicode=True, width=112)))
        found = [x for x in lines if "waking others" in x]
        assert bool(found) == told
        assert not told or "8.42 us  2.00 % of core time" in found[0], found


def test_calls_that_did_not_wait_are_told(run_dir, fallow):
    waits = analyse.load(run_dir).waits
    assert f"{waits.none_count} of the first are blocking calls that did not wait at all" in fallow("report", run_dir).stdout


def test_timeline_counts_from_the_first_call_kept(tmp_path):
    timeline = analyse.load(write_run(tmp_path / "r", [two_calls()])).timeline
    assert timeline.functions == ["MPI_Recv", "MPI_Allreduce"]
    assert timeline.rows[0].events == [
        [0, 1_000, 0, 0, 0, 0, 8],
        [11_000, 100_000, 0, 30, 60, 0, 100],
        [411_000, 10_000, 1, 0, 0, 0, 1000],
    ]


def test_a_killed_rank_is_reported_up_to_its_last_call(tmp_path, fallow):
    ranks = [lively_rank(r, 2, 50) for r in range(2)]
    ranks[1].finalized, ranks[1].state = 0, 3
    directory = write_run(tmp_path / "r", ranks, exit_status=None, signal=9)
    report = analyse.load(directory)
    assert [row.end for row in report.ranks] == ["finalized", "unfinished"]
    assert report.health.ranks_unfinished == [1]
    out = fallow("report", directory)
    assert out.returncode == 0
    assert "rank 1 did not reach MPI_Finalize (it was waiting); the last call on its record is MPI_" in out.stdout
    assert "ended by signal 9" in out.stdout


def test_the_wait_in_which_a_rank_was_killed_is_told_and_counts(tmp_path, fallow):
    rank = two_calls()
    end = rank.calls[-1].exit
    rank.finalized, rank.state = 0, 4
    rank.open = Call(end + 2_000_000, end + 5_002_000_000, op=1, asleep=4_800_000_000, peer=3)
    before = analyse.load(write_run(tmp_path / "finalized", [two_calls()])).totals
    directory = write_run(tmp_path / "r", [rank], exit_status=None, signal=15)
    report = analyse.load(directory)
    assert report.totals.residency.wait_asleep_s == pytest.approx(before.residency.wait_asleep_s + 4.8)
    assert report.totals.residency.wait_awake_s == pytest.approx(before.residency.wait_awake_s + 0.2)
    assert report.totals.residency.computing_s == pytest.approx(before.residency.computing_s + 0.002)
    assert report.totals.calls == sum(f.calls for f in report.functions) == before.calls + 1
    assert max(site.wait_max_s for site in report.sites) == pytest.approx(5.0)
    assert report.timeline.rows[0].events[-1][1:3] == [5_000_000_000, 0]
    wait = report.ranks[0].open_wait
    assert wait is not None and (wait.function, wait.peer) == ("MPI_Recv", 3)
    assert (wait.since_s, wait.seen_s) == pytest.approx(((end + 2_000_000) * 1e-9, (end + 5_002_000_000) * 1e-9))
    said = fallow("report", directory).stdout
    begun = "begun 2.42 ms after the start, for rank 3 of its communicator)"
    assert f"(it was asleep in MPI_Recv, called from program+0x1234, {begun}" in " ".join(said.replace("\n    ", " ").split()), said


def test_an_aborted_rank_says_so(tmp_path, fallow):
    rank = lively_rank(0, 1, 5, finalized=2)
    assert "called MPI_Abort" in fallow("report", write_run(tmp_path / "r", [rank])).stdout


def test_damaged_files_are_named_and_the_rest_is_reported(run_dir, fallow):
    good = (run_dir / "rank-1").read_bytes()
    (run_dir / "rank-1").write_bytes(good[:-5])
    (run_dir / "rank-2").write_bytes(b"X" + good[1:])
    (run_dir / "rank-3").unlink()
    out = fallow("report", run_dir)
    assert out.returncode == 0, out.stderr
    assert f"rank-1: at offset {len(good) - 5}: truncated" in out.stdout
    assert "rank-2: at offset 0: not a Fallow rank file" in out.stdout
    assert "3 of 4 ranks left no readable record" in out.stdout


def test_nothing_readable_is_exit_2(tmp_path, fallow):
    directory = write_run(tmp_path / "r", [lively_rank(0, 1, 5)])
    (directory / "rank-0").write_bytes(b"FALLOWRK" + b"\xff" * 70000)
    out = fallow("report", directory)
    assert out.returncode == 2
    assert "at offset 8: version 4294967295" in out.stderr
    assert "Traceback" not in out.stderr


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_no_record_is_exit_2(tmp_path, fallow, name):
    (tmp_path / "empty").mkdir()
    out = fallow("report", tmp_path / name)
    assert out.returncode == 2
    assert out.stderr.startswith("fallow: ")
    assert "Traceback" not in out.stderr


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"schema": "fallow-run", "version": 9}', '{"schema": "fallow-run", "version": 1}', '{"a":' + "[" * 100_000],
)
def test_a_broken_run_json_is_noted(run_dir, text):
    (run_dir / "run.json").write_text(text)
    report = analyse.load(run_dir)
    assert report.health.notes
    assert report.run.run_time_s > 0


@pytest.mark.parametrize(
    ("key", "value"),
    [("command", None), ("command", [1]), ("run_time_s", "1"), ("run_time_s", float("nan")), ("start_ns", 0.5), ("options", {"a": 1})],
)
def test_a_value_of_the_wrong_kind_in_run_json_is_noted(run_dir, fallow, key, value):
    data = json.loads((run_dir / "run.json").read_text())
    (run_dir / "run.json").write_text(json.dumps(data | {key: value}))
    for form in ((), ("--json",), ("--html",)):
        out = fallow("report", run_dir, *form)
        assert (out.returncode, out.stderr) == (0, ""), out.stderr
    (note,) = [n for n in analyse.load(run_dir).health.notes if "run.json" in n]
    assert key in note or "NaN" in note


def test_hostile_text_does_not_reach_the_terminal(tmp_path, fallow):
    rank = lively_rank(0, 1, 5, host=b"no\x1b[31mde\xff")
    out = fallow("report", write_run(tmp_path / "r", [rank], command=["a\x1b[2Jb\n"]))
    assert out.returncode == 0
    assert "\x1b" not in out.stdout


def test_damaged_numbers_are_survived(tmp_path, fallow):
    """Every eighth byte of the counters set to its largest value, one at a time."""
    data = bytearray(lively_rank(0, 1, 20).build())
    directory = write_run(tmp_path / "r", [])
    for at in range(65536, 65536 + 16 * 8, 8):
        damaged = bytearray(data)
        struct.pack_into("<Q", damaged, at, 2**64 - 1)
        (directory / "rank-0").write_bytes(damaged)
        analyse.load(directory)
    assert fallow("report", directory).returncode == 0
    assert json.loads(fallow("report", directory, "--json").stdout)["schema"] == "fallow-report"


def test_a_name_that_is_not_utf_8_is_told(run_dir, fallow):
    odd = run_dir.rename(run_dir.with_name(os.fsdecode(b"caf\xe9")))
    for form in ((), ("--json",), ("--html",)):
        out = fallow("report", odd, *form)
        assert out.returncode == 2
        assert "not UTF-8" in out.stderr and len(out.stderr.splitlines()) == 1, out.stderr
    assert fallow("report", ".", cwd=odd).returncode == 0


def test_the_newest_run_is_the_default(tmp_path, fallow):
    write_run(tmp_path / "fallow-run-20260101-000000", [lively_rank(0, 1, 5)], command=["older"])
    write_run(tmp_path / "fallow-run-20260102-000000", [lively_rank(0, 1, 5)], command=["newer"])
    assert "newer" in fallow("report").stdout


def test_a_page_in_an_older_run_does_not_make_it_the_newest(tmp_path, fallow):
    for day, name in ((1, "older"), (2, "newer")):
        write_run(tmp_path / f"fallow-run-2026010{day}-000000", [lively_rank(0, 1, 5)], command=[name])
    assert fallow("report", "fallow-run-20260101-000000", "--html").returncode == 0
    assert "newer" in fallow("report").stdout


def test_two_runs_side_by_side(tmp_path, fallow):
    a = write_run(tmp_path / "a", [two_calls()], run_time_s=2.0)
    b = write_run(tmp_path / "b", [two_calls()], run_time_s=1.0)
    out = fallow("report", a, b).stdout
    line = next(x for x in out.splitlines() if "run time" in x)
    assert line.split() == ["run", "time", "2", "s", "1", "s", "0.500"]


def test_what_follows_two_dashes_is_a_run(tmp_path, fallow):
    write_run(tmp_path / "fallow-run-20260101-000000", [lively_rank(0, 1, 5)], command=["newest"])
    write_run(tmp_path / "-odd", [lively_rank(0, 1, 5)], command=["this one"])
    assert "this one" in fallow("report", "--", "-odd").stdout


def test_a_comparison_is_not_compared(tmp_path, fallow):
    run = write_run(tmp_path / "run", [two_calls()])
    (tmp_path / "series").mkdir()
    (tmp_path / "series" / "compare.json").write_text("{}")
    out = fallow("report", run, "series")
    assert (out.returncode, out.stderr) == (2, "fallow: series is a comparison; name one of its runs: series/01-...\n")
    out = fallow("report", "series", "--platform", "minotauro")
    message = "fallow: series is a comparison, modelled when it was made; --platform is for one of its runs\n"
    assert (out.returncode, out.stderr) == (2, message)


def test_modelled_energy_adds_up_and_says_only_what_it_rests_on(run_dir, fallow):
    modelled = json.loads(fallow("report", run_dir, "--platform", "generic", "--json").stdout)["energy"]["modelled"]
    assert sum(modelled["parts"].values()) == pytest.approx(modelled["energy_j"])
    names = {a.partition(": ")[0] for a in modelled["assumptions"]}
    assert {"core.spin_w", "core.sleep_w", "nic.idle_w", "switch.share_w", "base"} <= names
    assert not [n for n in names if n.startswith("link.") or "rest" in n or n in ("core.wake_us", "core.throttle_us", "core.yield_w")]
    shown = fallow("report", run_dir, "--platform", "generic").stdout
    for word in ("waiting awake", "network card", "rest of the node", "mean power"):
        assert word in shown[shown.index("Energy, modelled") :]


def test_a_call_without_a_communicator_has_none(run_dir):
    report = analyse.load(run_dir)
    without = dataclasses.replace(report, sites=[dataclasses.replace(s, comm=0, comm_size=0) for s in report.sites])
    shown = "\n".join(report_text.lines(without, Style(False, True, 112)))
    assert "0/0" not in shown and "comm/size" in shown


def test_load_raises_the_users_error(tmp_path):
    with pytest.raises(UserError, match="no such run directory"):
        analyse.load(tmp_path / "nowhere")
    write_run(tmp_path / "runs" / "first", [lively_rank(0, 1, 5)])
    with pytest.raises(UserError, match=r"runs: no run directory; .* by `fallow run`; .*runs/first is one"):
        analyse.load(tmp_path / "runs")


def test_several_programs_in_one_run_are_noted(tmp_path):
    directory = write_run(tmp_path / "r", [lively_rank(0, 1, 5)])
    (directory / "rank-000000-node1-2.fallow").write_bytes(lively_rank(0, 1, 7, seed=2).build())
    report = analyse.load(directory)
    assert report.totals.calls == 12
    assert "2 MPI programs" in report.health.notes[0]


def test_programs_one_after_the_other_are_on_the_same_cores(tmp_path):
    """Four programs in turn are charged for no more cores, and no less of their sleep, than one of four times the length."""
    directory = write_run(tmp_path / "r", [], run_time_s=4.0)
    for turn in range(4):
        for rank in range(2):
            calls = [Call(0, 1000), Call(1000, 990_000_000, asleep=980_000_000)]
            start = RankFile.wall_start_ns + turn * 1_000_000_000
            made = RankFile(rank=rank, size=2, calls=calls, launch=turn + 1, wall_start_ns=start)
            (directory / f"rank-{rank:06d}-node1-{10 * turn + rank}.fallow").write_bytes(made.build())
    modelled = analyse.load(directory, "minotauro").energy.modelled
    sleep_w, cores = 2, 12  # as its file says
    assert modelled.parts["wait_asleep"] == pytest.approx(8 * 0.98 * sleep_w, rel=0.01)
    assert modelled.parts["unused_cores"] == pytest.approx((cores - 2) * 4.0 * sleep_w, rel=0.01)
    assert modelled.parts["unaccounted"] < 0.05 * modelled.energy_j
    assert [site.ranks for site in analyse.load(directory).sites] == [8]


def test_cores_are_in_use_while_a_program_has_them():
    second = 10**9
    assert energy.in_use_s([], 5.0, 12) == 0
    assert energy.in_use_s([(0, 3 * second, 2)], 5.0, 12) == pytest.approx(10)
    in_turn = [(0, 3 * second, 1), (4 * second, 5 * second, 8)]  # a second to start, in which the second has its cores
    assert energy.in_use_s(in_turn, 6.0, 12) == pytest.approx(3 + 8 + 8 + 1)
    assert energy.in_use_s(in_turn, 6.0, 4) == pytest.approx(3 + 4 + 4 + 1)
    spawned = [(0, 10 * second, 2), (4 * second, 6 * second, 3)]
    assert energy.in_use_s(spawned, 10.0, 12) == pytest.approx(20 + 6)
    assert (ranks.at_once(in_turn), ranks.at_once(spawned), ranks.at_once([])) == (8, 5, 0)


def test_threads_that_call_no_mpi_are_charged_for(tmp_path):
    """A rank whose eight threads compute for a second, seven of them without MPI."""
    rank = RankFile(calls=[Call(0, 1000), Call(999_000_000, 1_000_000_000)], cpu_ns=8_000_000_000)
    parts = analyse.load(write_run(tmp_path / "r", [rank], run_time_s=1.0), "minotauro").energy.modelled.parts
    assert parts["computing"] == pytest.approx(8.1 * 13.3, rel=0.01)
    assert parts["unused_cores"] == pytest.approx(3.9 * 2, rel=0.01)


def test_a_program_that_was_built_anew_is_noted(tmp_path, monkeypatch):
    """Its call sites are named by the file that is there now."""
    program = tmp_path / "app"
    program.write_bytes(b"built")
    rank = lively_rank(0, 1, 5, modules=[(0x400000, str(program))])
    directory = write_run(tmp_path / "r", [rank])
    monkeypatch.setattr(symbols, "_addr2line", lambda _tool, _module, offsets: {o: symbols.Symbol("main", "") for o in offsets})
    note = f"{program} has changed since the run: the names of its call sites may be wrong"
    assert note in analyse.load(directory).health.notes
    os.utime(program, ns=(0, rank.wall_start_ns))
    assert note not in analyse.load(directory).health.notes


def test_a_platform_that_is_gone_costs_the_modelled_energy_alone(tmp_path, fallow):
    directory = write_run(tmp_path / "r", [lively_rank(0, 1, 5)], platform="/gone/mine.toml")
    out = fallow("report", directory)
    assert out.returncode == 0 and "MPI functions" in out.stdout
    note = "! no energy is modelled: cannot read /gone/mine.toml: No such file or directory; the run was made with that platform"
    assert note in out.stdout and "no platform model" in out.stdout
    assert "Energy, modelled on minotauro" in fallow("report", directory, "--platform", "minotauro").stdout
    assert fallow("report", directory, "--platform", "/gone/mine.toml").returncode == 2


def test_ranks_without_a_record_are_named(tmp_path, fallow):
    directory = write_run(tmp_path / "r", [lively_rank(i, 4, 5) for i in (0, 3)])
    out = fallow("report", directory).stdout
    assert "2 of 4 ranks left no readable record" in out
    assert "no record of rank 1, 2: where it ran, the launcher did not pass on the environment" in out
    assert "not to be written, or without room" in " ".join(out.split()) and "for each rank" not in out
    alone = fallow("report", write_run(tmp_path / "alone", [lively_rank(1, 4, 5)])).stdout
    assert "started a `fallow run` for each rank: put that in front (fallow run -- mpirun ...)" in " ".join(alone.split())


def test_missing_ranks_of_two_programs_are_counted(tmp_path):
    directory = write_run(tmp_path / "r", [lively_rank(i, 3, 5) for i in range(3)])
    (directory / "rank-000001-node1-9.fallow").write_bytes(lively_rank(1, 3, 7, seed=2).build())
    report = analyse.load(directory)
    assert (report.health.ranks_read, report.health.ranks_expected) == (4, 6)
    assert all("no record of" not in note for note in report.health.notes)


def test_a_clock_that_is_wrong_is_set_right(tmp_path, fallow):
    """Of two hosts whose ranks seem to have run at different times: the same report as with right clocks, and a line about it."""
    off = 5400 * 10**9

    def load(name: str, ahead: int):
        ranks = [lively_rank(r, 4, 40, host=(b"node1", b"node2")[r // 2], cpu_ns=10_000_000) for r in range(4)]
        for rank in ranks[2:]:
            rank.wall_start_ns += ahead
        return analyse.load(write_run(tmp_path / name, ranks, platform="minotauro"))

    right = load("right", 0)
    assert right.health.notes == [] and right.energy.modelled is not None
    for name, ahead, said in (("ahead", off, "1.50 h ahead of"), ("behind", -off, "1.50 h behind")):
        wrong = load(name, ahead)
        assert [n for n in wrong.health.notes if "clock" in n] == [f"the clock of node2 is {said} that of node1: its ranks' times are moved by that"]
        assert wrong.energy.modelled.energy_j == pytest.approx(right.energy.modelled.energy_j, rel=1e-3)
        begins = [row.events[0][0] for row in wrong.timeline.rows]
        assert max(begins) < 10**9, begins
