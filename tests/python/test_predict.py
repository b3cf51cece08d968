"""`fallow predict`: its figures, forms and refusals, on traces whose pattern is known."""

from __future__ import annotations

import json
import re
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import predict_traces as traces
import trace_samples as samples
from drawn_page import draw
from fallow import cli, predict_html, predict_schema, predict_study
from fallow.errors import UserError
from fallow.traces.model import CPU_TIME, Event, FileSource, Info, MemorySource, write_source
from test_html import parse

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("predict") / "solver.ftr"
    write_source(traces.solver(), path)
    return path


def study(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert cli.main(["predict", "--json", *map(str, arguments)]) == 0
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    jsonschema.validate(report, predict_schema.shipped())
    return report


def by_name(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {way["name"]: way for way in report["ways"]}


def test_help_gives_defaults_as_users_type_them(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["predict", "--help"])
    told = re.findall(r"\[([^\s\]]+)\]", capsys.readouterr().out)
    assert {"17us", "1.7s", "2ms", "1M"} <= set(told)
    assert not [word for word in told if re.search(r"e[+-]", word)]


def test_figures_of_a_known_program(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = study(capsys, trace)
    ways = by_name(report)
    assert set(ways) == {"oracle", "last", "pps", "spps", "adaptive"}
    calls = 4 * (60 * 10 + 2)
    assert report["trace"]["calls"] == calls
    assert report["trace"]["hosts"] == 2
    assert all(way["calls"] == calls for way in ways.values())
    oracle = ways["oracle"]
    assert oracle["rest_of_oracle_share"] == 1
    assert oracle["delay_s"] == 0
    assert oracle["gaps"] == 4 * (60 * 4 + 1)
    for name in ("pps", "adaptive"):
        assert ways[name]["calls_predicted_share"] > 0.85
        assert 0.8 < ways[name]["rest_of_oracle_share"] < 1
    assert ways["adaptive"]["delay_worst_share"] <= 0.01
    for way in ways.values():
        assert way["cost_ns"] > 0
        assert len(way["ranks"]) == 4
        mean = sum(rank["calls_predicted_share"] for rank in way["ranks"]) / 4
        assert way["calls_predicted_share"] == pytest.approx(mean)


def test_gaps_in_the_papers_bins(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gaps = study(capsys, trace, "--predictor", "oracle")["gaps"]
    short, middle, long = gaps["papers"]
    assert [b["count"] for b in (short, middle, long)] == [4 * 60 * 6, 4, 4 * 60 * 4]
    assert short["time_s"] == pytest.approx(4 * 60 * 3 * 5e-6)
    assert middle["time_s"] == pytest.approx(4 * 50e-6)
    assert sum(b["count"] for b in gaps["bins"]) == 4 * (60 * 10 + 1)
    assert sum(b["time_share"] for b in gaps["bins"]) == pytest.approx(1)
    assert gaps["bins"][0]["count"] > 0
    assert gaps["bins"][-1]["count"] > 0


def test_pps_is_tried_with_many_thresholds_and_shown_with_the_best(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = study(capsys, trace, "--predictor", "pps", "--lead", "1%,5%")
    assert len(report["sweep"]) == 2 * 41
    for way in report["ways"]:
        same = [p for p in report["sweep"] if p["lead"] == way["lead"]]
        assert way["rest_share"] == pytest.approx(max(p["rest_share"] for p in same))
        assert way["threshold_s"] in [p["threshold_s"] for p in same]
    assert min(p["rest_share"] for p in report["sweep"]) == 0  # a threshold above every gap


def test_thresholds_are_tried_as_far_as_they_go(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tried = study(capsys, trace, "--predictor", "pps", "--react", "1s", "--no-cost")["sweep"]
    assert [p["threshold_s"] for p in tried][0::len(tried) - 1] == [2, 3600]


def test_thresholds_and_leads_that_are_given(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = study(capsys, trace, "--predictor", "pps,adaptive", "--threshold", "20us,500us", "--lead", "1%,10%", "--no-cost")
    assert [w["name"] for w in report["ways"]] == [
        "pps 20 us lead 1%", "pps 500 us lead 1%", "pps 20 us lead 10%", "pps 500 us lead 10%", "adaptive",
    ]  # fmt: skip
    assert report["sweep"] == []
    assert report["cost_calls"] == 0
    one, _, ten, _, adaptive = report["ways"]
    assert one["rest_s"] > ten["rest_s"]
    assert adaptive["cost_ns"] is None
    assert adaptive["lead"] is None


def test_options_reach_the_predictors(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = by_name(study(capsys, trace, "--predictor", "spps,adaptive", "--no-cost"))
    told = by_name(study(capsys, trace, "--predictor", "spps,adaptive", "--no-cost", "--sample-gaps", "20", "--skip-gaps", "0",
                         "--budget", "0%", "--no-restarts", "--memory", "64k"))  # fmt: skip
    assert plain["adaptive"]["rests"] > 0
    assert told["adaptive"]["rests"] == 0
    assert told["adaptive"]["options"]["budget"] == 0
    assert told["adaptive"]["options"]["memory"] == 65536
    assert told["adaptive"]["memory_bytes"] < plain["adaptive"]["memory_bytes"]
    assert told["spps"]["calls_predicted_share"] > plain["spps"]["calls_predicted_share"]
    assert told["spps"]["options"]["restarts"] == 0


def test_slower_links_rest_less(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fast = study(capsys, trace, "--predictor", "oracle", "--react", "10us")
    slow = study(capsys, trace, "--predictor", "oracle", "--react", "10us,90us")
    gaps = fast["ways"][0]["gaps"] - 4  # the last gap, 50 us, is too short for a rest now
    assert slow["ways"][0]["gaps"] == gaps
    assert fast["ways"][0]["rest_s"] - slow["ways"][0]["rest_s"] == pytest.approx(gaps * 80e-6 + 4 * 30e-6)


def test_that_nothing_can_rest_is_said(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Shares of no time are 0, of the oracle too."""
    assert study(capsys, trace, "--react", "1s,2s")["notes"] == ["no gap is longer than 3 s, to rest and back: nothing can rest"]
    assert not study(capsys, trace)["notes"]


def test_a_lead_as_long_as_the_gap_is_refused(trace, capsys):
    assert cli.main(["predict", str(trace), "--predictor", "pps", "--lead", "5%,100%"]) == 2
    assert "below 100 %" in capsys.readouterr().err


def test_ranks_of_a_node_share_its_link(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    by_host = study(capsys, trace, "--predictor", "oracle,adaptive", "--no-cost")
    assert by_host["nodes"]["nodes"] == [[0, 1], [2, 3]]
    together = study(capsys, trace, "--predictor", "oracle,adaptive", "--no-cost", "--ranks-per-node", "4")
    assert together["nodes"]["nodes"] == [[0, 1, 2, 3]]
    for report in (by_host, together):
        oracle, adaptive = report["nodes"]["ways"]
        assert oracle["rest_of_oracle_share"] == pytest.approx(1, rel=1e-3)  # after a rank has ended nothing is predicted of it
        assert oracle["delay_share"] == 0
        assert 0.5 < adaptive["rest_of_oracle_share"] < 1
    assert together["nodes"]["ways"][0]["rest_share"] < by_host["nodes"]["ways"][0]["rest_share"]
    assert study(capsys, trace, "--predictor", "oracle", "--no-nodes")["nodes"] is None
    assert cli.main(["predict", str(trace), "--no-nodes", "--ranks-per-node", "2"]) == 2
    assert "leave one out" in capsys.readouterr().err


def test_a_timeline_from_after_the_end_is_said_to_be_empty(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = study(capsys, trace, "--predictor", "oracle", "--timeline-from", "1000s")
    assert "the timeline is empty: rank 0 makes no call from 16.7 min on" in report["notes"]


def test_only_some_ranks(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = study(capsys, trace, "--predictor", "oracle", "--ranks", "1,3")
    assert report["trace"]["ranks_studied"] == [1, 3]
    assert [r["rank"] for r in report["ways"][0]["ranks"]] == [1, 3]
    assert report["nodes"] is None


def test_computation_by_cpu_clock_is_seen_as_on_cores_of_its_own(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slow = tmp_path / "slow.ftr"
    write_source(traces.by_cpu_clock(traces.solver()), slow)
    report, plain = study(capsys, slow, "--predictor", "oracle,pps"), study(capsys, trace, "--predictor", "oracle,pps")
    assert report["trace"]["clock"] == "cpu"
    assert [b["count"] for b in report["gaps"]["papers"]] == [b["count"] for b in plain["gaps"]["papers"]]
    assert by_name(report)["pps"]["calls_predicted_share"] == by_name(plain)["pps"]["calls_predicted_share"]
    assert report["trace"]["run_time_s"] < plain["trace"]["run_time_s"]  # without its waits
    assert report["nodes"] is None
    assert any("no common clock" in note for note in report["notes"])
    assert any(note.endswith("record one without --clock cpu") for note in report["notes"])  # there is no other name for it


def test_threads_compute_at_the_same_time_by_the_cpu_clock(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two threads of 2 ms a turn, recorded on one core: on cores of its own the rank computes for 2 ms a turn, not for 4."""
    source = MemorySource(Info(size=1, clock="cpu"))
    for i in range(101):
        at, computed = i * 2_000_000, 2_000_000 if i > 0 else 0
        source.lists[0].append(Event(op=1, flags=CPU_TIME, thread=(i + 1) % 2, enter_ns=at, exit_ns=at + 1_000, compute_ns=computed))
    write_source(source, tmp_path / "threads.ftr")
    report = study(capsys, tmp_path / "threads.ftr", "--predictor", "oracle")
    assert report["ways"][0]["gaps"] == 50
    assert report["ways"][0]["idle_s"] == pytest.approx(50 * 2e-3)


def test_calls_of_threads_that_overlap_make_no_gaps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = samples.plain(ranks=1, steps=0)
    for i in range(50):
        at = i * 1_000_000
        source.lists[0] += [Event(op=1, enter_ns=at, exit_ns=at + 300_000), Event(op=2, thread=1, enter_ns=at + 100_000, exit_ns=at + 200_000)]
    path = tmp_path / "threads.ftr"
    write_source(source, path)
    report = study(capsys, path, "--predictor", "oracle")
    assert [b["count"] for b in report["gaps"]["papers"]] == [50, 0, 49]
    assert report["ways"][0]["idle_s"] == pytest.approx(49 * 700e-6)


def test_the_timeline_is_of_the_first_rank_with_events(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = traces.solver()
    events = [[], *(list(whole.events(r)) for r in range(1, whole.info.size))]
    write_source(MemorySource(whole.info, events), tmp_path / "t.ftr")
    for chosen, rank in (([], 1), (["--ranks", "2-3"], 2)):
        report = study(capsys, tmp_path / "t.ftr", "--predictor", "oracle", *chosen, "--timeline-calls", "10")
        assert (report["timeline"]["rank"], len(report["timeline"]["gap_ns"])) == (rank, 10)


def test_the_timeline_is_what_happened(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = study(capsys, trace, "--predictor", "oracle,adaptive", "--timeline-rank", "2", "--timeline-from", "30ms", "--timeline-calls", "100")
    line = report["timeline"]
    assert line["rank"] == 2
    assert line["start_ns"] >= 30_000_000
    assert len(line["gap_ns"]) == len(line["call_ns"]) == len(line["operation"]) == 100
    assert set(line["operations"]) == {"MPI_Irecv", "MPI_Isend", "MPI_Waitall", "MPI_Allreduce"}
    oracle, adaptive = line["rows"]
    for i in range(99):
        gap = line["gap_ns"][i + 1]
        assert oracle["expected_ns"][i] == gap
        assert oracle["rest_ns"][i] == (gap - 10_000 if gap > 20_000 else 0)
    assert sum(rest > 0 for rest in adaptive["rest_ns"]) > 30


def _low_ns(rest: int, gap: int) -> int:
    return max(0, min(rest, gap) - 10_000) if rest > 0 else 0


def test_the_timeline_has_the_rests_after_a_silence(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = study(capsys, trace, "--predictor", "adaptive", "--ranks", "1", "--timeline-calls", "1000000")
    line, way = report["timeline"], by_name(report)["adaptive"]
    (row,) = line["rows"]
    at_once = after = 0
    for rest, silence, gap in zip(row["rest_ns"], row["silence_ns"], line["gap_ns"][1:], strict=False):
        at_once += _low_ns(rest, gap)
        after += _low_ns(gap, gap - silence) if 0 < silence < gap else 0
    assert after > 0
    assert (at_once + after) * 1e-9 == pytest.approx(way["rest_s"])


def test_text_says_the_same(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["predict", str(trace), "--predictor", "oracle,adaptive"]) == 0
    text = capsys.readouterr().out
    assert "4 ranks, 2 408 calls" in text
    assert re.search(r"^ *oracle +- +100\.0 +100\.0 +100\.0 +100\.0 +0\.000 +0\.000 +0 +-$", text, re.M)
    assert "> 200 us" in text
    assert "joined: 2 links of up to 2 ranks" in text


def test_the_page_stands_alone(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "study.html"
    assert cli.main(["predict", str(trace), "--html", str(out)]) == 0
    assert capsys.readouterr().out.strip() == str(out)
    page = parse(out.read_text())
    assert page.references == ["data:,"]
    assert page.handlers == []
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b", page.script)
    assert not re.search(r"https?:|url\(|fetch\(|import\(", (page.script + page.style).replace("http://www.w3.org/2000/svg", ""))
    data = json.loads(page.data)
    jsonschema.validate(data, predict_schema.shipped())
    assert data["timeline"]["rank"] == 0
    assert len(list(tmp_path.iterdir())) == 1


def test_curves_of_leads_differ_by_more_than_colour(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "study.html"
    assert cli.main(["predict", str(trace), "--lead", "1%,5%,10%", "--html", str(out)]) == 0
    found, data = draw(out.read_text(), predict_html._SCRIPTS, tmp_path)
    (picture,) = (p for p in found["drawn"] if p["label"] == "Rest by threshold")
    marks = [p["d"] for p in picture["paths"] if p.get("class") != "curve"]
    points = len(data["sweep"]) // 3
    assert points > 2 and len(picture["circles"]) == points and len(marks) == 2 * points
    shapes = {re.sub(r"^M\S+ \S+?(?=[a-z])", "", d) for d in marks}  # without where they stand
    assert len(shapes) == 2
    assert "pps, lead 10 %" in found["text"]


def test_axes_have_round_steps():
    script = files("fallow").joinpath("assets/predict_plots.js").read_text()
    asked = "for (const m of [0, 0.004, 0.03, 0.3, 0.92, 1]) { const a = shareAxis(m); console.log(a.step, Math.round(a.end * 1e6) / 1e6); }"
    done = subprocess.run(["node", "-e", script + asked], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split("\n")[:-1] == ["0.001 0.001", "0.001 0.004", "0.01 0.03", "0.1 0.3", "0.2 1", "0.2 1"]


def test_leads_below_a_percent_read_apart():
    script = files("fallow").joinpath("assets/predict_plots.js").read_text()
    asked = "console.log([0, 0.001, 0.005, 0.01, 0.05, 0.125].map(leadText).join())"
    done = subprocess.run(["node", "-e", script + asked], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "0 %,0.1 %,0.5 %,1 %,5 %,12.5 %\n"


def test_traces_of_other_tools_are_read(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "solver.prv"
    assert cli.main(["trace", "convert", str(trace), "-o", str(other)]) == 0
    report, plain = study(capsys, other, "--predictor", "oracle"), study(capsys, trace, "--predictor", "oracle")
    assert [b["count"] for b in report["gaps"]["papers"]] == [b["count"] for b in plain["gaps"]["papers"]]
    assert report["trace"]["paths"] == [str(other)]


@pytest.mark.parametrize(("ending", "said"), [("dim", 1), ("tit", 1), ("prv", 0)])
def test_that_calls_have_no_length_is_said(trace: Path, tmp_path: Path, ending: str, said: int, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / f"solver.{ending}"
    assert cli.main(["trace", "convert", str(trace), "-o", str(other)]) == 0
    report = study(capsys, other, "--predictor", "oracle", "--no-cost")
    assert sum(note.startswith("calls last no time in this trace") for note in report["notes"]) == said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.ftr"], "missing.ftr: No such file"),
        (["missing.c"], "missing.c: No such file or directory"),
        ([__file__], "its name does not tell the format, as these do: fallow (.ftr)"),
        (["{dir}"], "no trace in this directory"),
        (["{trace}", "--predictor", "pps,magic"], "there is no predictor 'magic'; there are oracle"),
        (["{trace}", "--ranks", "9"], "rank 9 is not in this trace of 4 ranks"),
        (["{trace}", "--timeline-rank", "4", "--json"], "rank 4 is not in this trace"),
        (["{trace}", "--timeline-rank", "0"], "are of timelines: add --html FILE or --json\n"),
        (["{trace}", "--timeline-from", "0"], "are of timelines"),
        (["{trace}", "--timeline-calls", "9"], "are of timelines"),
        (["{trace}", "--repeats", "1"], "--repeats: 1 is not from 2 to 1000\n"),
        (["{trace}", "--sample-gaps", "3"], "--sample-gaps: 3 is not from 4 to"),  # one bin holds everything
        (["{trace}", "--max-grams", "1"], "--max-grams: 1 is not from 16 to 16777216\n"),
        (["{trace}", "--max-sites", "1e12"], "--max-sites: 1000000000000 is not from 16 to 16777216\n"),
        (["{trace}", "--repeats", "2.5"], "--repeats: 2.5 is not a whole number\n"),
        (["{trace}", "--alpha", "nan"], "--alpha: nan is not from 0 to"),
        (["{trace}", "--react", "7200s"], "--react: 2.00 h is not from 0 s to 1.00 h\n"),
        (["{trace}", "--predictor", "pps", "--threshold", "7200s"], "--threshold: 2.00 h is not from 0 s to 1.00 h\n"),
        (["{trace}", "--demanded-decay", "100%"], "--demanded-decay: 100% is not from 1% to 99.99%\n"),
        (["{trace}", "--memory", "1"], "--memory: 1 B is not from 4.0 KiB to 1.0 GiB\n"),
        (["{trace}", "--html", "/nowhere/x.html"], "/nowhere/x.html: No such file or directory"),
        (["{empty}"], "there are no events"),
        (["{trace}", "--histogram-from", "10us", "--histogram-to", "10us"], "--histogram-from must be less than"),
        (["{trace}", "--histogram-from", "30s"], "--histogram-from must be less than"),
        (["{trace}", "--demanded-share", "1%", "--demanded-least", "10%"], "--demanded-share must not be less than"),
        (["{trace}", "--alpha", "0"], "--alpha times --bin-gaps must be at least 10, the number of bins"),
        (["{trace}", "--bin-gaps", "0"], "--alpha times --bin-gaps must be at least 10, the number of bins"),
        (["{trace}", "--sample-gaps", "100000"], "--alpha times --bin-gaps must be at least 316, the number of bins"),
        (["{trace}", "--predictor", "adaptive", "--threshold", "20us"], "--threshold would do nothing: it is for pps; add"),
        (["{trace}", "--predictor", "adaptive", "--lead", "1%"], "--lead would do nothing: it is for pps or spps or last"),
        (["{trace}", "--predictor", "pps", "--budget", "1%"], "--budget would do nothing: it is for adaptive; add"),
    ],
)
def test_errors_are_one_line_and_status_2(
    trace: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    directory = tmp_path / "d"
    directory.mkdir()
    empty = tmp_path / "empty.ftr"
    write_source(samples.plain(ranks=2, steps=0), empty)
    filled = [a.replace("{trace}", str(trace)).replace("{dir}", str(directory)).replace("{empty}", str(empty)) for a in arguments]
    assert cli.main(["predict", *filled]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [["--threshold", "20"], ["--threshold", "-1us"], ["--lead", "200%"], ["--react", "1us,2us,3us"], ["--ranks", "3-1"], ["--ranks", "3-"], ["--threads", "-1"],
     ["--budget", "x"], ["--memory", "1T"], ["--ranks-per-node", "0"], ["--json", "--html", "x"], ["--timeline-calls", "0"]],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(trace: Path, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["predict", str(trace), *arguments])
    assert stopped.value.code == 2


def test_damage_is_named_with_its_offset(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = bytearray(trace.read_bytes())
    data[len(data) // 2] ^= 0xFF
    broken = tmp_path / "broken.ftr"
    broken.write_bytes(data)
    assert cli.main(["predict", str(broken)]) == 2
    assert "at offset" in capsys.readouterr().err


def test_the_schema_and_its_page_are_what_the_model_makes() -> None:
    assert predict_schema.shipped() == predict_schema.build()
    assert (ROOT / "docs/reference/predict-schema.md").read_text() == predict_schema.markdown()


def test_ranks_of_which_nobody_says_where_they_ran_share_no_link(fallow):
    fallow("synth", "cg", "--ranks", 4, "--iterations", 5, "-o", "cg.ftr")
    assert "4 ranks, " in fallow("trace", "info", "cg.ftr").stdout  # and no hosts
    alone = json.loads(fallow("predict", "cg.ftr", "--predictor", "oracle", "--no-cost", "--json").stdout)
    assert (alone["nodes"], alone["trace"]["hosts"]) == (None, 0)
    assert any("does not say where they ran; --ranks-per-node" in note for note in alone["notes"])
    paired = json.loads(fallow("predict", "cg.ftr", "--predictor", "oracle", "--no-cost", "--ranks-per-node", 2, "--json").stdout)
    assert not any("joined as if" in note for note in paired["notes"])
    some = fallow("predict", "cg.ftr", "--predictor", "oracle", "--no-cost", "--ranks-per-node", 4, "--ranks", "0,1", "--json").stdout
    assert any("joined as if the ranks that are not studied did not use them" in note for note in json.loads(some)["notes"])
    fallow("trace", "cut", "cg.ftr", "--ranks", "0,1", "-o", "some.ftr")
    cut = fallow("predict", "some.ftr", "--predictor", "oracle", "--no-cost", "--ranks-per-node", 4, "--json").stdout
    assert any("joined as if the ranks that are not studied did not use them" in note for note in json.loads(cut)["notes"])
    assert paired["nodes"]["nodes"] == [[0, 1], [2, 3]] and not any("where they ran" in note for note in paired["notes"])


def test_shares_of_joined_links_are_of_all_nodes() -> None:
    """Rest is of the links' time, delay of that of all ranks; the worst rank's is of its own node's."""
    one = {"run_ns": 100, "low_ns": 30, "oracle_low_ns": 60, "rests": 3, "delay_ns": 12, "delay_worst_rank_ns": 8}
    other = {"run_ns": 300, "low_ns": 50, "oracle_low_ns": 100, "rests": 4, "delay_ns": 6, "delay_worst_rank_ns": 6}
    results = [{"ranks": [0, 1], "ways": [one]}, {"ranks": [2, 3, 4], "ways": [other]}]
    (way,) = predict_study._nodes_report([[0, 1], [2, 3, 4]], ["last"], results).ways
    assert (way.rest_s, way.rests) == (pytest.approx(80e-9), 7)
    assert (way.rest_share, way.rest_of_oracle_share) == (80 / 400, 80 / 160)
    assert (way.delay_share, way.delay_worst_rank_share) == (18 / (2 * 100 + 3 * 300), 0.08)


def test_a_timeline_begins_with_a_call_and_no_gap() -> None:
    raw = {"enter_ns": [500, 700], "exit_ns": [600, 750], "op": [1, 1], "ways": [([0, 0], [0, 0], [0, 0])]}
    drawn = predict_study._timeline(3, raw, ["last"])
    assert (drawn.start_ns, drawn.gap_ns, drawn.call_ns, drawn.operation) == (500, [0, 100], [100, 50], [0, 0])


def test_options_that_do_not_go_together_are_refused_by_the_library_too(tmp_path):
    write_source(samples.plain(2, 2), tmp_path / "x.ftr")
    source = FileSource([tmp_path / "x.ftr"])
    wish = predict_study.Wish(
        predictors=["spps"], options={"histogram_from": 5e6, "histogram_to": 5e6}, thresholds_ns=[], leads=[0.05], ranks=[], ranks_per_node=0,
        costs=False, timeline=False, timeline_rank=None, timeline_from_ns=0, timeline_calls=1, threads=1,
    )  # fmt: skip
    with pytest.raises(UserError, match="histogram_from must be less than histogram_to"):
        predict_study.study([str(tmp_path / "x.ftr")], source.info, source.ranks, wish)
