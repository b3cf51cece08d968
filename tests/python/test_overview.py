"""What many runs did and saved together: sums, programs, what is left out, and the page."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys

import pytest

from drawn_page import draw as draw_page
from fallow import analyse, overview, overview_html, overview_text
from fallow.errors import UserError
from fallow.text import Style
from rank_writer import Call, RankFile, lively_rank, write_run
from test_sampling import FakeMeter, sampled

S = 10**9


def made(folder, name, program, day, seed=1, **info):
    """A run of two ranks."""
    ranks = [dataclasses.replace(lively_rank(r, 2, 200, seed=seed), program=program) for r in range(2)]
    return write_run(folder / name, ranks, started=f"2026-{day}T08:00:00+0000", **info)


@pytest.fixture
def several(tmp_path):
    """A directory with three runs of two programs, and with what is none."""
    runs = tmp_path / "runs"
    made(runs, "a", b"/apps/lmp", "03-02")
    made(runs, "b", b"/apps/pw.x", "03-01", 2, signal=9, exit_status=None)
    made(runs, "c", b"/old/lmp", "03-04", 3, exit_status=3)
    (runs / "notes").mkdir()
    (runs / "notes" / "rank of things.txt").write_text("none of Fallow's")
    (runs / "a.txt").write_text("no directory")
    return runs


def read(*paths):
    return overview.read(list(paths), None, lambda _: None)


def test_the_sums_are_those_of_the_runs(several, fallow):
    done = fallow("report", several, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["schema"], found["version"]) == ("fallow-runs", 1)
    by_name = {name: analyse.load(several / name) for name in "abc"}
    assert [run["directory"] for run in found["runs"]] == [str(several / name) for name in "bac"]  # as they were started
    assert [(run["exit_status"], run["signal"]) for run in found["runs"]] == [(None, 9), (0, None), (3, None)]
    for of, names in ((found["totals"], "abc"), *((p["sums"], {"lmp": "ac", "pw.x": "b"}[p["program"]]) for p in found["programs"])):
        reports = [by_name[name] for name in names]
        assert of["runs"] == len(reports)
        for key in ("run_time_s", "core_time_s", "wait_burnt_s"):
            assert of[key] == pytest.approx(sum(getattr(r.totals, key) for r in reports))
        for key, value in of["residency"].items():
            assert value == pytest.approx(sum(getattr(r.totals.residency, key) for r in reports))
        waited = sum(r.totals.residency.wait_s for r in reports)
        assert of["wait_asleep_share"] == pytest.approx(of["residency"]["wait_asleep_s"] / waited)
        assert of["mpi_share"] == pytest.approx(sum(r.totals.residency.mpi_s for r in reports) / of["core_time_s"])
        assert of["modelled"]["energy_j"] == pytest.approx(sum(r.energy.modelled.energy_j for r in reports))
        assert of["modelled"]["energy_spinning_j"] == pytest.approx(sum(r.energy.modelled.energy_spinning_j for r in reports))
    core_time = [p["sums"]["core_time_s"] for p in found["programs"]]
    assert core_time == sorted(core_time, reverse=True)
    [platform] = found["platforms"]
    assert platform["runs"] == 3 and platform["assumptions"] == by_name["a"].energy.modelled.assumptions


def test_runs_may_be_named_and_count_once(several, fallow):
    runs = [several / name for name in "abc"]
    named = fallow("report", *runs, several / "a", several / "." / "b", "--json")
    assert json.loads(named.stdout)["totals"] == json.loads(fallow("report", several, "--json").stdout)["totals"]
    both = fallow("report", several, several / "a", "--json")  # a directory and a run
    assert json.loads(both.stdout)["totals"]["runs"] == 3
    pair = json.loads(fallow("report", *runs[:2], "--json").stdout)
    assert len(pair["reports"]) == 2


def test_what_cannot_be_read_is_left_out_and_told(several, fallow):
    (several / "c" / "run.json").write_text("{")
    for file in (several / "c").glob("rank*"):
        file.write_bytes(b"FALLOWRK" + bytes(100))
    (several / "compared").mkdir()
    (several / "compared" / "compare.json").write_text("{}")
    done = fallow("report", several)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2 runs of 2 programs, 2026-03-01 to 2026-03-02\n")
    left_out = [line.strip(" !") for line in done.stdout.splitlines() if line.startswith("  ! ")]
    assert [line.partition(": ")[2].partition(": ")[0] for line in left_out] == [str(several / "c"), f"{several}/compared"]
    assert f"is a comparison, which has a report of its own: fallow report {several}/compared" in left_out[1]
    for run in ("a", "b"):
        (several / run / "run.json").unlink()
        for file in (several / run).glob("rank*"):
            file.write_bytes(b"FALLOWRK" + bytes(100))
    nothing = fallow("report", several, "--json")
    assert nothing.returncode == 2 and nothing.stdout == ""
    assert nothing.stderr.startswith("fallow: none of 4 runs can be reported:\n") and "Traceback" not in nothing.stderr


def test_a_run_whose_name_is_no_text_is_left_out(several, fallow):
    (several / "a").rename(several / "a\udcff")
    for form in ((), ("--json",), ("--html", "-")):
        done = fallow("report", several, *form)
        assert done.returncode == 0 and not done.stderr and "not UTF-8" in done.stdout, done.stderr


def test_a_run_that_may_not_be_read_is_left_out(several):
    """Of another user's, say; the others' are reported."""
    (several / "a").chmod(0)
    command = [sys.executable, "-m", "fallow", "report", several]
    if os.geteuid() == 0:  # which may read it
        command = ["setpriv", "--inh-caps=-all", "--bounding-set=-all", *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    (several / "a").chmod(0o755)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    assert done.stdout.startswith("2 runs of 2 programs") and f"left out: {several}/a: Permission denied" in done.stdout


def test_a_directory_without_runs_is_none(several, fallow):
    done = fallow("report", several / "notes")
    assert done.returncode == 2 and "notes: nothing to report" not in done.stdout
    unfinished = several / "unfinished"
    made(unfinished, "02-fallow", b"/apps/lmp", "03-05")
    done = fallow("report", unfinished)
    assert done.returncode == 2 and "a comparison that still runs, or was killed" in done.stderr


def test_what_ran_without_the_command_counts(tmp_path, fallow):
    """Its record has no run.json, so neither the command nor how it ended is known."""
    run = made(tmp_path / "runs", "job-7", b"/apps/lmp", "03-01")
    (run / "run.json").unlink()
    [only] = read(*overview.runs_in(tmp_path / "runs")).runs
    assert (only.program, only.command, only.exit_status, only.signal, only.ranks) == ("lmp", [], None, None, 2)
    assert fallow("report", tmp_path / "runs").stdout.startswith("1 run of 1 program, 20")


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["mpirun", "-n", "2", "python3", "-u", "/home/me/solver.py", "-n", "4"], "solver.py"),
        (["srun", "python", "-m", "mpi4py", "solver.py"], "mpi4py"),
        (["mpirun", "/venv/bin/python3.11", "-c", "import solver"], "python3.11"),
        (["./job.sh"], "python3.11"),
        (["mpirun", "python3"], "python3.11"),
    ],
)
def test_what_an_interpreter_runs_is_the_program(tmp_path, command, name):
    run = made(tmp_path, "r", b"/usr/bin/python3.11", "03-01", command=command)
    assert [p.program for p in read(run).programs] == [name]


def test_meters_of_different_kinds_are_not_added_up(several):
    """Nor what was metered to what was modelled."""
    told = sampled(FakeMeter())
    for name in "ab":
        (several / name / "meters.json").write_text(json.dumps(told))
    alike = [analyse.load(several / name).energy.metered.energy_j for name in "ab"]
    [both] = read(*overview.runs_in(several)).totals.metered
    assert (both.runs, both.energy_j) == (2, pytest.approx(sum(alike)))
    parts = [overview.Metered("node", 1, 5.0), both, overview.Metered("node", 2, 7.0)]
    sums = read(several / "a").totals
    summed = overview._added([dataclasses.replace(sums, metered=[part]) for part in parts]).metered
    assert [(m.kinds, m.runs) for m in summed] == [("node", 3), (both.kinds, 2)]
    assert [m.energy_j for m in summed] == [12.0, pytest.approx(sum(alike))]
    lines = list(overview_text.lines(read(*overview.runs_in(several)), Style(False, True, 200)))
    [metered] = [line for line in lines if line.startswith("  energy metered")]
    assert metered.endswith(f"{both.kinds}, of 2 of the 3 runs")
    header = next(line for line in lines if line.startswith("  record"))
    assert header.split().index("metered") + 1 == header.split().index("modelled")


@pytest.mark.parametrize("width", [40, 80, 160])
def test_lines_fit(several, width):
    for line in overview_text.lines(read(*overview.runs_in(several)), Style(False, True, width)):
        assert len(line) <= width, line


def test_runs_without_time_or_model_have_no_shares(tmp_path):
    run = write_run(tmp_path / "r", [RankFile(calls=[Call(0, 0)])], run_time_s=0.0)
    lines = list(overview_text.lines(read(run), Style(False, False, 100)))
    assert any(line.split()[:2] == ["in", "MPI"] for line in lines)


def test_the_page_shows_days_programs_and_runs(several, tmp_path, fallow):
    assert fallow("report", several, "--html").stdout.strip() == str(several / "report.html")
    what = read(*overview.runs_in(several))
    found, data = draw_page(overview_html.page(what), ("base.js", "overview.js"), tmp_path)
    assert data["overview"] == json.loads(json.dumps(overview.as_dict(what)))
    [days] = found["drawn"][:1]
    assert days["label"] == "Core time in each state, a column each from 2026-03-01 to 2026-03-04"
    assert [t for t in days["texts"] if t.startswith("2026")] == [f"2026-03-0{day}" for day in (1, 2, 3, 4)]
    assert found["rows"] == [2, 3]  # of programs and of runs
    assert all(word in found["text"] for word in ("3 runs", "signal 9", "status 3", "pw.x", "What the model takes for granted"))
    moods = {text[:14]: mood for mood, text in found["numbers"]}
    assert moods["rested in wait"] == "card number good"


def test_long_spans_are_drawn_by_month(several, tmp_path):
    made(several, "d", b"/apps/lmp", "07-31")
    found, _ = draw_page(overview_html.page(read(*overview.runs_in(several))), ("base.js", "overview.js"), tmp_path)
    assert [t for t in found["drawn"][0]["texts"] if t.startswith("2026")] == [f"2026-0{month}" for month in (3, 4, 5, 6, 7)]


def test_a_page_of_several_directories_needs_a_name(several, tmp_path, fallow):
    runs = [several / name for name in "abc"]
    refused = fallow("report", *runs, "--html")
    assert refused.returncode == 2 and "name the page's file" in refused.stderr
    assert fallow("report", *runs, "--html", "all.html").returncode == 0 and (tmp_path / "all.html").is_file()


def test_none_of_none(tmp_path):
    with pytest.raises(UserError, match="none of 1 run can be reported"):
        read(tmp_path / "nowhere")
