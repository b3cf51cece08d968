"""Comparisons: order of the runs, ratios and their spread, warnings."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import resource
import signal
import sys

import pytest

from fallow import analyse, compare, compare_text, launch, rundir, runner, stats, sysload
from fallow.compare import Comparison, Trial
from fallow.text import Style
from rank_writer import Call, RankFile, write_run


def test_the_order_alternates_both_ways():
    assert compare.order(4, bare_first=True) == [False, True, True, False, False, True, True, False]
    assert compare.order(2, bare_first=False) == [True, False, False, True]


def test_a_ratio_of_few_values_has_their_range():
    r = stats.ratio([1.0, 1.2], [2.0, 2.5])
    assert r is not None
    assert (r.median, r.low, r.high, r.method) == pytest.approx((1.1 / 2.25, 1 / 2.5, 1.2 / 2, "min..max"))


def test_a_ratio_of_more_values_has_an_interval_that_repeats():
    before, after = [10.0, 10.1, 9.9, 10.05, 9.95], [9.0, 9.1, 8.9, 9.05, 8.95]
    r = stats.ratio(after, before)
    assert r is not None
    assert r.low <= r.median <= r.high
    assert r.low > 0.87
    assert r.high < 0.93
    assert r == stats.ratio(after, before)


def test_no_ratio_where_none_is_defined():
    assert stats.ratio([], [1.0]) is None
    assert stats.ratio([1.0], [0.0]) is None
    assert stats.ratio([1.0, 1.0], [0.0, 3.0]) is None
    assert stats.spread([]) is None


def trial(number, with_fallow, run_time, **kwargs):
    fixed = {"directory": "", "cpu_s": run_time, "exit_status": 0, "signal": None, "other_cores": 0.0}
    return Trial(number=number, with_fallow=with_fallow, run_time_s=run_time, **(fixed | kwargs))


def test_metrics_keep_both_sides_apart():
    trials = [trial(1, False, 2.0), trial(2, True, 1.0, wait_asleep_s=0.5), trial(3, True, 1.2, wait_asleep_s=0.7)]
    found = {m.name: m for m in compare.metrics(trials)}
    assert found["run time"].bare is not None
    assert found["run time"].bare.median == 2.0
    assert found["run time"].ratio is not None
    assert found["run time"].ratio.median == pytest.approx(0.55)
    assert found["waits asleep"].bare is None
    assert "energy, metered" not in found


def test_runs_without_fallow_are_modelled_by_the_power_of_those_with_it():
    """The median of their power, for the time that each takes; those with Fallow keep their own energy."""
    watts = (40.0, 10.0, 12.0)
    trials = [trial(n, True, 2.0, spinning_w=w, modelled_j=1.0) for n, w in enumerate(watts, 1)]
    modelled = compare.model_bare([*trials, trial(4, False, 3.0)])
    assert [t.modelled_j for t in modelled] == [1.0, 1.0, 1.0, 36.0]
    bare = [trial(1, False, 3.0), trial(2, True, 2.0)]
    assert compare.model_bare(bare) == bare


def test_warnings_name_what_is_doubtful():
    good = [trial(1, False, 2.0), trial(2, True, 1.0)]
    assert compare.warnings(good, 2) == []
    assert "stopped after 2 of 4" in compare.warnings(good, 4)[0]
    noisy = [dataclasses.replace(good[0], other_cores=0.5), good[1]]
    assert "run 1: other load took 0.50 cores" in compare.warnings(noisy, 2)[0]
    differ = [good[0], dataclasses.replace(good[1], exit_status=1)]
    assert "did not all end in the same way" in compare.warnings(differ, 2)[0]
    alone = [dataclasses.replace(good[0], exit_status=1)]
    assert compare.warnings(alone, 2) == ["stopped after 1 of 2 runs", "there is nothing to compare with"]
    failed = [dataclasses.replace(t, exit_status=1) for t in good]
    assert compare.warnings(failed, 2) == ["the command failed with Fallow and without; a comparison of failures says little"]


def test_notes_keep_to_a_terminal_and_are_lines_of_their_own_elsewhere():
    trials = [trial(1, False, 2.0), trial(2, True, 1.0, spinning_w=40.0)]
    told = "run 1: other load took 1.83 cores meanwhile, and much more is to be said of it than one line of a terminal holds"
    found = Comparison("fallow-compare", 1, "0", ["./app"], {}, "", trials, compare.metrics(trials), [told])
    terminal = list(compare_text.lines(found, Style(False, True, 80)))
    assert max(map(len, terminal)) <= 80
    piped = list(compare_text.lines(found, Style(False, True, 80, breaks=False)))
    assert [line for line in piped if line.startswith("  ! ")] == [f"  ! {told}"]


def test_measured_and_modelled_figures_share_no_column():
    trials = [trial(1, False, 2.0, metered_j=7.0), trial(2, True, 1.0, metered_j=5.0, modelled_j=40.0, spinning_w=40.0)]
    trials = compare.model_bare(trials)
    found = Comparison("fallow-compare", 1, "0", ["./app"], {}, "", trials, compare.metrics(trials), [])
    shown = list(compare_text.lines(found, Style(False, True, 160)))
    first, second = (next(i for i, line in enumerate(shown) if line.split()[:1] == [title]) for title in ("measured", "modelled"))
    measured, modelled = "\n".join(shown[first:second]), "\n".join(shown[second:])
    assert "7 J" in measured and "80.0 J" not in measured  # without Fallow: 40 W for two seconds
    assert "80.0 J" in modelled and "7 J" not in modelled and "energy-delay" in modelled


def test_energy_delay_is_energy_times_run_time():
    one = trial(1, False, 2.0, metered_j=3.0, modelled_j=5.0)
    assert (one.metered_js, one.modelled_js) == (6.0, 10.0)
    assert (trial(1, False, 2.0).metered_js, trial(1, False, 2.0).modelled_js) == (None, None)


def test_other_load_is_told_where_it_can_be_told_from_a_tick_of_the_clock():
    """/proc/stat counts in hundredths of a second."""
    assert trial(1, False, 2.0, other_cores=0.06).disturbed
    assert not trial(1, False, 2.0, other_cores=0.04).disturbed
    assert not trial(1, False, 0.1, other_cores=0.4).disturbed


def test_a_trial_has_what_was_measured(run_dir):
    """Load of others and time that the hypervisor took, as cores; CPU time of both kinds; waits from the report."""
    info = dataclasses.replace(rundir.read_run(run_dir), run_time_s=2.0, other_busy_s=0.5, stolen_s=0.3, cpu_user_s=3.0, cpu_system_s=0.2)
    rundir.write_run(run_dir, info)
    outcome = launch.Outcome(0, None, 0, 2.0, resource.getrusage(resource.RUSAGE_SELF))
    found = compare._measured(runner.Ended(outcome, info, run_dir), 7, run_dir)
    totals = analyse.load(run_dir).totals
    assert (found.number, found.directory, found.with_fallow) == (7, run_dir.name, True)
    assert (found.other_cores, found.cpu_s) == (pytest.approx(0.4), pytest.approx(3.2))
    assert (found.wait_awake_s, found.wait_asleep_s) == (totals.residency.wait_awake_s, totals.residency.wait_asleep_s)
    assert found.wake_delay_share == totals.wake_delay_share > 0


def test_a_series(fallow, fake_library, tmp_path, run_dir):
    env = {"FALLOW_LIBRARY_DIR": str(fake_library)}
    (tmp_path / "input").write_text("some input\n")
    script = f'cat; if [ -n "$FALLOW_DIR" ]; then cp {run_dir}/rank-* "$FALLOW_DIR"; fi; echo done'
    with (tmp_path / "input").open() as stdin:
        out = fallow("run", "--compare", "2", "--out", "series", "--", "sh", "-c", script, env=env, stdin=stdin)
    assert out.returncode == 0, out.stderr
    assert out.stdout.count("done\n") == 1, "the first run's output is shown, the others' is kept"
    assert "run 4 of 4" in out.stderr
    data = json.loads((tmp_path / "series/compare.json").read_text())
    assert data["schema"] == "fallow-compare"
    assert sorted(t["with_fallow"] for t in data["trials"]) == [False, False, True, True]
    assert {m["name"] for m in data["metrics"]} >= {"run time", "CPU time", "waits awake", "waits asleep"}
    assert "ratio" in fallow("report", "series").stdout
    assert json.loads(fallow("report", "series", "--json").stdout) == data
    assert "with and without: sh -c" in fallow("report", "series", "--html", "-").stdout
    logs = sorted((tmp_path / "series").glob("*/stdout.log"))
    assert [log.read_text() for log in logs] == ["some input\ndone\n"] * 3


def _of_cat(fallow, tmp_path, fake_library, **kwargs):
    """What each of two runs of `cat` read, and the comparison."""
    args = ("run", "--json", "--compare", "1", "--out", "series", "--", "cat")
    out = fallow(*args, env={"FALLOW_LIBRARY_DIR": str(fake_library)}, **kwargs)
    assert out.returncode == 0, out.stderr
    logs = sorted((tmp_path / "series").glob("*/stdout.log"))
    return [log.read_text() for log in logs], json.loads(out.stdout)


def test_each_run_reads_the_input_from_where_it_stands(fallow, fake_library, tmp_path):
    (tmp_path / "input").write_text("taken\nleft\n")
    with (tmp_path / "input").open() as stdin:
        os.lseek(stdin.fileno(), len("taken\n"), os.SEEK_SET)
        assert _of_cat(fallow, tmp_path, fake_library, stdin=stdin)[0] == ["left\n"] * 2


@pytest.mark.parametrize(("text", "told"), [(b"input\n", True), (b"", False)])
def test_input_that_no_run_is_given_is_told(fallow, fake_library, tmp_path, text, told):
    read, write = os.pipe()
    os.write(write, text)
    os.close(write)
    seen, comparison = _of_cat(fallow, tmp_path, fake_library, stdin=read)
    os.close(read)
    assert seen == ["", ""]
    assert any("over a pipe" in line for line in comparison["warnings"]) == told


def test_runs_without_fallow_are_without_that_of_a_module(fallow, fake_library, tmp_path):
    """Which all jobs load, or of a run around this one."""
    library = fake_library / "libfallow.so"
    other = tmp_path / "libother.so"
    other.symlink_to(library)
    env = {
        "FALLOW_LIBRARY_DIR": str(fake_library), "LD_PRELOAD": f"{library}:{other}", "FALLOW_DIR": str(tmp_path),
        "OMPI_MCA_orte_launch_agent": f"env LD_PRELOAD={library} FALLOW_DIR=x orted",
    }  # fmt: skip
    out = fallow("run", "--json", "--compare", "1", "--out", "series", "--", "env", env=env, stdin=-3)
    assert out.returncode == 0, out.stderr
    (log,) = (tmp_path / "series").glob("*-bare/stdout.log")
    said = log.read_text().splitlines()
    assert f"LD_PRELOAD={other}" in said and "FALLOW_OFF=1" in said
    assert not any(line.startswith("OMPI_MCA_orte_launch_agent") for line in said)
    (log,) = (tmp_path / "series").glob("*-fallow/stdout.log")
    assert f"LD_PRELOAD={library}:{other}" in log.read_text().splitlines()


def test_a_series_without_input(fallow, fake_library, tmp_path):
    seen, _ = _of_cat(fallow, tmp_path, fake_library, preexec_fn=lambda: os.close(0))
    assert seen == ["", ""]


def test_a_series_as_json(fallow, fake_library):
    out = fallow(
        "run", "--compare", "1", "--json", "-q", "--", "sh", "-c", "echo noise",
        env={"FALLOW_LIBRARY_DIR": str(fake_library)}, stdin=-3,
    )  # fmt: skip
    assert json.loads(out.stdout)["command"] == ["sh", "-c", "echo noise"]


def test_a_failing_command_stops_the_series(fallow, fake_library):
    env = {"FALLOW_LIBRARY_DIR": str(fake_library)}
    out = fallow("run", "--compare", "5", "--", "sh", "-c", "exit 3", env=env, stdin=-3)
    assert out.returncode == 3
    assert "stopped after 2 of 10 runs" in out.stdout


def test_an_interrupted_run_is_in_no_figure(fallow, fake_library, tmp_path):
    """Also where the command makes an ordinary end of it, as some launchers do."""
    fourth = 'trap "exit 0" INT; echo >> runs; if [ $(wc -l < runs) = 4 ]; then kill -INT $PPID; sleep 5 & wait; fi'
    with_ctrl_c = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.default_int_handler)}
    out = fallow(
        "run", "--compare", "3", "--out", "series", "--", "sh", "-c", fourth,
        env={"FALLOW_LIBRARY_DIR": str(fake_library)}, stdin=-3, **with_ctrl_c,
    )  # fmt: skip
    assert out.returncode == 0, out.stderr
    assert re.search("runs: (1 without and 2|2 without and 1) with Fallow", out.stdout)
    assert "stopped after 3 of 6 runs" in out.stdout and "run 4 was interrupted" in out.stdout
    data = json.loads((tmp_path / "series/compare.json").read_text())
    assert len(data["trials"]) == 4
    time = next(m for m in data["metrics"] if m["name"] == "run time")
    figures = {time[side][edge] for side in ("bare", "fallow") for edge in ("low", "high")}
    assert figures == {t["run_time_s"] for t in data["trials"][:3]}


def test_a_comparison_that_cannot_be_kept_is_shown(fallow, fake_library, tmp_path):
    out = fallow(
        "run", "--compare", "1", "--out", "series", "--", "sh", "-c", "mkdir -p series/compare.json/x",
        env={"FALLOW_LIBRARY_DIR": str(fake_library)}, stdin=-3,
    )  # fmt: skip
    assert out.returncode == 0 and "run time" in out.stdout
    assert "cannot keep the comparison" in out.stderr
    assert "more: fallow report on each run in series" in out.stdout


_OUTLIVES = """
import mmap, os, shutil, sys, time
name = f"{os.environ['FALLOW_DIR']}/rank-000000-node1-{os.getpid()}.fallow"
shutil.copy(sys.argv[1], name)
held = mmap.mmap(os.open(name, os.O_RDWR), 0)
open("held", "w").close()
end = time.monotonic() + 60
while not os.path.exists("series/compare.json") and time.monotonic() < end:
    time.sleep(0.01)
"""


def test_ranks_that_outlive_the_command_are_told_of(fallow, fake_library, tmp_path):
    RankFile(calls=[Call(0, 1000)], finalized=0, state=3).write(tmp_path)
    (rank,) = tmp_path.glob("rank-*")
    (tmp_path / "outlives.py").write_text(_OUTLIVES)
    start = f"{sys.executable} outlives.py {rank} > /dev/null 2>&1 & while [ ! -e held ]; do sleep 0.01; done"
    out = fallow(
        "run", "--compare", "1", "--out", "series", "--", "sh", "-c", f'[ -z "$FALLOW_DIR" ] || {{ {start}; }}',
        env={"FALLOW_LIBRARY_DIR": str(fake_library)}, stdin=-3,
    )  # fmt: skip
    assert out.returncode == 0, out.stderr
    assert out.stdout.count("ranks ran on after the command had ended") == 1


def test_what_meters_missed_is_told(tmp_path):
    """A sum that lacks energy is not compared, and not without a word."""
    domain = {"name": "package-0", "kind": "package", "inside": None}
    meter = {
        "name": "powercap", "measures": "", "domains": [domain], "off": {}, "lost_intervals": {"package-0": 1},
        "samples": [[0, {"package-0": 0.0}], [10**9, {"package-0": 5.0}]],
    }  # fmt: skip
    meters = {"schema": "fallow-meters", "version": 1, "additive": [["powercap", "package-0"]], "meters": [meter]}
    (tmp_path / "meters.json").write_text(json.dumps(meters))
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    info = rundir.read_run(write_run(tmp_path, [], with_fallow=False))
    found = compare._measured(runner.Ended(launch.Outcome(0, None, 0, 1.0, usage), info, tmp_path), 1, tmp_path)
    assert found.metered_j is None
    assert "an interval is missing" in compare.warnings([found], 1)[0]


@pytest.mark.parametrize("text", ["", "{}", '{"schema": "fallow-compare", "version": 2}', "[]"])
def test_a_broken_comparison_is_exit_2(fallow, tmp_path, text):
    (tmp_path / "compare.json").write_text(text)
    out = fallow("report", tmp_path)
    assert out.returncode == 2
    assert "Traceback" not in out.stderr


@pytest.mark.parametrize(
    ("place", "value"),
    [(("command",), None), (("trials", 0, "with_fallow"), None), (("metrics", 0, "name"), 3), (("metrics", 0, "bare"), {"median": 1})],
)
def test_a_comparison_with_a_value_of_the_wrong_kind_names_it(fallow, tmp_path, place, value):
    trials = [trial(1, False, 2.0), trial(2, True, 1.0)]
    whole = compare.Comparison(
        compare.SCHEMA, compare.VERSION, "0", ["a"], {}, str(tmp_path), trials, compare.metrics(trials), []
    )
    compare.write(whole)
    assert compare.read(tmp_path) == whole
    data = compare.as_dict(whole)
    inner = data
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    (tmp_path / compare.FILE).write_text(json.dumps(data))
    out = fallow("report", tmp_path)
    assert out.returncode == 2
    name = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in place).removeprefix(".")
    assert out.stderr.startswith(f"fallow: {tmp_path / compare.FILE}: {name}"), out.stderr


def test_what_others_used_is_without_the_command():
    first = runner._first_info(runner.Plan(["x"], []), "id", True)
    usage = resource.struct_rusage((3.0, 1.0, 2048, *[0] * 11, 5, 7))
    before, after = sysload.CpuTimes(100.0, 10.0, 7.0), sysload.CpuTimes(106.0, 10.5, 7.25)
    info = runner._last_info(first, launch.Outcome(0, None, 1, 2.0, usage), (before, after))
    assert info.throttled_s == 0.25
    assert (info.other_busy_s, info.stolen_s, info.cpu_user_s, info.cpu_system_s) == (2.0, 0.5, 3.0, 1.0)
    assert (info.max_rss_bytes, info.switches_voluntary, info.switches_involuntary) == (2 << 20, 5, 7)
    unknown = runner._last_info(first, launch.Outcome(0, None, 1, 2.0, usage), (before, None))
    assert (unknown.other_busy_s, unknown.stolen_s) == (None, None)
