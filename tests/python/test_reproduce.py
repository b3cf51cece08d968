"""`fallow reproduce`: every published value stands in the report, beside ours where a trace is there."""

from __future__ import annotations

import json
import time
import tomllib
from pathlib import Path

import pytest

import fallow.reproduce
from fallow import cli
from fallow.reproduce import dickov2015, record
from fallow.reproduce.document import Bars, Document, Section, Strips, drawn, markdown
from fallow.reproduce.measure import Reading, Saving, TraceResults, best_threshold, measure_kernel
from test_html import parse

DATA = Path(fallow.reproduce.__file__).parent


@pytest.fixture
def traces(fallow, tmp_path):
    """Made-up programs under the names of recorded ones: regular gaps, so that all predictors find something."""
    directory = tmp_path / "traces"
    directory.mkdir()
    for name, program, ranks, size in (
        ("bt", "stencil3d", 16, "2KB"), ("mg", "cg", 32, "2KB"), ("mg", "cg", 16, "2KB"), ("cg", "cg", 16, "16KB"), ("ft", "alltoall", 8, "16KB"),
    ):  # fmt: skip
        made = fallow("synth", program, "--ranks", ranks, "--iterations", 150 if name in ("bt", "mg") else 30, "--bytes", size,
                      "--compute", "500us", "--jitter", "1%", "-o", directory / f"{name}-{ranks}.ftr")  # fmt: skip
        assert made.returncode == 0, made.stderr
    return directory


@pytest.mark.long
def test_the_report_has_all_tables_and_figures(fallow, traces, tmp_path):
    done = fallow("reproduce", "dickov2015", "--traces", traces, "-o", "report")
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "report.json").read_text())
    titles = [s["title"] for s in found["sections"]]
    for wanted in ("Table 5.1", "Table 5.3", "Table 5.4", "Figures 5.8 and 5.9", "Figures 5.10 and 5.11", "Figures 5.12 and 5.13",
                   "Figure 5.14", "Figures 5.20 and 5.21", "Figures 4.27", "Figures 4.37", "Figures 4.39", "Figures 4.47", "Table 4.5"):  # fmt: skip
        assert any(t.startswith(wanted) for t in titles), wanted
    published = tomllib.loads((DATA / "dickov2015.toml").read_text())
    idle = found["sections"][0]["rows"]
    assert len(idle) == sum(len(rows) for rows in published["idle_intervals"].values())
    text = (tmp_path / "report.md").read_text()
    for row in published["idle_intervals"]["nas_bt"]:
        assert f"| NAS BT | {row[0]} | {row[1]} / " in text
    bt = next(r for r in idle if r[:2] == ["NAS BT", "16"])
    # 150 iterations of 14 calls: 149 or 150 long gaps of half a millisecond in each rank
    assert bt[6].endswith(("/ 149", "/ 150")) and float(bt[7].split("/")[1]) > 95
    assert "-" in next(r for r in idle if r[0] == "WRF")[2]
    for s in found["sections"]:
        assert s["rows"] and (s["differences"] or s["title"].startswith("Beyond")), s["title"]
        assert all(len(row) == len(s["header"]) for row in s["rows"]), s["title"]
    spps = next(s for s in found["sections"] if "5.20" in s["title"])
    assert "21.0 %" in spps["differences"][0]
    (drawn,) = next(s for s in found["sections"] if "4.37" in s["title"])["strips"]
    assert [row[0] for row in drawn["rows"]] == [f"{kind} {i}" for i in range(8) for kind in ("process", "link")]
    assert all(spans for _, _, spans in drawn["rows"]) and "process 0 " in text and "link 7 " in text
    assert "of 200" not in text  # the traces are not those of the list
    assert text.count("how it was recorded is not known") == 6  # three of table 5.1, figure 5.14, two kernels
    page = parse((tmp_path / "report.html").read_text())
    assert "svg.strips { min-width: 700px; }" in page.style and 'class: "strips"' in page.script  # on narrow screens they scroll
    assert page.references == ["data:,"] and json.loads(page.data) == found


def test_few_calls_are_drawn_up_to_the_end_of_the_run_and_no_further(fallow, tmp_path):
    made = fallow("synth", "alltoall", "--ranks", 16, "--iterations", 30, "--compute", "500us", "-o", tmp_path / "ft-16.ftr")
    assert made.returncode == 0, made.stderr
    drawn = measure_kernel("ft", "gromacs", tmp_path / "ft-16.ftr", 1, 1).drawn
    last = max(end for calls in drawn.calls for _, end in calls)
    assert drawn.from_us == 0 and drawn.to_us == pytest.approx(last, rel=0.03)  # what calls last is more when links rest


def test_the_report_names_its_traces_and_says_how_they_were_recorded_where_that_is_known(fallow, tmp_path):
    assert fallow("synth", "cg", "--ranks", 16, "--iterations", 10, "-o", tmp_path / "cg-16.ftr").returncode == 0
    kernel = measure_kernel("cg", "alya", tmp_path / "cg-16.ftr", 1, 1)
    programs, published = {p.name: p for p in record.programs()}, record.data("dickov2015.toml")

    def report(recorded):
        results = dickov2015.Results(published, programs, kernels=[kernel], recorded=frozenset(recorded))
        return dickov2015.document(results)

    assert report([]).intro[0].startswith("Traces of open programs (CG (for Alya's CG kernel) 16), replayed on")
    assert "recorded with the CPU-time clock" in report([("cg", 16)]).intro[0]
    (drawn,) = next(s for s in report([]).sections if "4.37" in s.title).strips
    assert not any("all its lanes" in state for state in drawn.states)  # at half size two of four are on


def _bt(ranks, capped, uncapped, oracle):
    def reading(saved):
        return Reading(20.0, dict.fromkeys((0.01, 0.05, 0.10), Saving(saved, 0, 0, 0)), {})

    gaps = ((1, 1e-6), (1, 1e-4), (1, 1.0))
    found = TraceResults("bt", ranks, 100, 1.0, gaps, 0.1, reading(capped), reading(uncapped), hit_rate=0.3)
    found.others = {"oracle": Saving(oracle, 0, 0, 0)}
    return found


def test_what_the_cap_on_patterns_costs_is_said_of_those_it_costs_something():
    published = record.data("dickov2015.toml")
    programs = {p.name: p for p in record.programs()}
    freed, held = _bt(16, 0.1, 0.4, 0.5), _bt(100, 0.26, 0.03, 0.5)

    def said(*traces):
        results = dickov2015.Results(published, programs, list(traces))
        sections = (dickov2015.thresholds(results), dickov2015.displacement(results, 0.01, "Figures", 33.5))
        return [" ".join(s.differences) for s in sections]

    thresholds, saving = said(freed, held)
    assert "NAS BT 16: the steps of a sweep are alike" in thresholds and "not so with NAS BT 100." in thresholds
    assert "Both do not hold here" in saving and "more is saved for NAS BT 16; less for NAS BT 100." in saving
    thresholds, saving = said(held)
    assert "the steps of a sweep" not in thresholds
    assert "Both do not hold here" not in saving and "more is saved for none; less for NAS BT 100." in saving


def test_the_best_threshold_saves_most_at_little_more_slowdown():
    def saving(saved, slowdown):
        return Saving(saved, slowdown, 0, 0)

    assert best_threshold({20.0: saving(0.5, 0.02), 50.0: saving(0.3, 0.005), 90.0: saving(0.3, 0.001)}) == 50.0
    assert best_threshold({20.0: saving(0.5, 0.02), 50.0: saving(0.3, 0.011)}) == 20.0


@pytest.mark.parametrize("of", ["dickov2015", "bench"])
def test_recipes_are_whole(of):
    found = record.programs(of)
    assert len({p.name for p in found}) == len(found) >= 8
    for program in found:
        assert program.why and program.ranks and all(0 < program.steps_share(n) <= 1 for n in program.ranks)
        assert program.trace(Path("t"), 8) == Path(f"t/{program.name}-8.ftr")
        for ranks in program.ranks:
            line = program.command_line(ranks, Path("/bin"))
            assert line and not any("{" in word for word in line)


def test_a_program_with_fewer_ranks():
    bt = next(p for p in record.programs() if p.name == "bt")
    assert bt.at_most(36).ranks == (9, 16, 36) and bt.at_most(1).ranks == ()
    assert bt.steps_share(16) == 0.2 and bt.values[16]["points"] == 162


def test_what_cannot_be_recorded_says_why(fallow, tmp_path):
    done = fallow("reproduce", "dickov2015", "--record", "--programs", tmp_path, env={"PATH": "/nowhere"})
    why = f"traces: nothing could be recorded: NAS BT is left out: {tmp_path} has no bt ("
    assert done.returncode == 2 and done.stderr.startswith(f"fallow: {why}") and "--record" not in done.stderr
    assert f"NAS BT is left out: {tmp_path} has no bt" in done.stdout
    assert "LAMMPS is left out: lmp is not installed" in done.stdout and list(tmp_path.iterdir()) == []
    done = fallow("reproduce", "dickov2015", "--record", "--programs", "/nosuch")
    message = "fallow: /nosuch: no such directory; --programs names that of the built examples\n"
    assert (done.returncode, done.stderr) == (2, message)


def test_too_few_ranks_to_record_anything_are_told(fallow, tmp_path):
    done = fallow("reproduce", "dickov2015", "--record", "--programs", tmp_path, "--most-ranks", "4")
    assert (done.returncode, done.stderr) == (2, "fallow: --most-ranks 4: no program is recorded with so few; 8 is the least\n")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def started(monkeypatch, tmp_path):
    """What recording starts, without an MPI: it leaves what a run would leave."""
    found = []

    def run(command, place, environment, look):
        look()
        found.append((list(command), environment))
        if "fallow" in command:
            Path(command[command.index("--trace") + 1]).write_bytes(b"trace")
        return 0, ""

    monkeypatch.setattr(record, "run_watched", run)
    monkeypatch.setattr(record, "ranks_of", lambda trace: int(trace.stem.rpartition("-")[2]))
    monkeypatch.setattr(record.shutil, "which", lambda name: f"/usr/bin/{name}")
    (tmp_path / "bin").mkdir()
    for name in ("bt", "sp", "mg", "cg", "ft", "lu"):
        (tmp_path / "bin" / name).touch()
    return found


def test_recording_runs_the_program_under_fallow(tmp_path, started):
    chosen = [p.at_most(16) for p in record.programs()]
    lines = list(record.record(chosen, tmp_path / "traces", tmp_path / "bin", "mpirun -n {ranks}"))
    assert any(line.startswith(f"NAS BT with 9 ranks: {tmp_path}/traces/bt-9.ftr") for line in lines)
    command = next(c for c, _ in started if "fallow" in c and f"{tmp_path}/bin/mg" in c)
    assert command[command.index("--") + 1 :] == ["mpirun", "-n", "8", f"{tmp_path}/bin/mg", "-n", "512", "-i", "20"]
    assert command[command.index("--clock") + 1] == "cpu"
    assert not any("128 ranks" in line for line in lines)
    assert command[command.index("--mode") + 1] == "sleep" and all(e["OMP_NUM_THREADS"] == "1" for _, e in started)
    started.clear()
    assert list(record.record(chosen, tmp_path / "traces", tmp_path / "bin", "mpirun -n {ranks}")) == []
    assert not started  # what is there is not recorded again
    assert len(list(record.record(chosen[:1], tmp_path / "traces", tmp_path / "bin", "mpirun -n {ranks}", again=True))) == 2


@pytest.mark.parametrize(
    ("launcher", "message"),
    [
        ("mpirun -n {n}", "--launcher needs {ranks} where the number of ranks stands, as in 'mpirun -n {ranks}'"),
        ("mpirun -n 4", "--launcher needs {ranks} where the number of ranks stands, as in 'mpirun -n {ranks}'"),
        ("mpirun -n '{ranks}", "--launcher mpirun -n '{ranks}: No closing quotation"),
    ],
)
def test_launchers_that_cannot_be_meant(fallow, tmp_path, launcher, message):
    done = fallow("reproduce", "dickov2015", "--record", "--programs", tmp_path, "--launcher", launcher)
    assert (done.returncode, done.stderr) == (2, f"fallow: {message}\n")


@pytest.mark.parametrize("name", [".", "/"])
def test_an_output_that_is_no_name(fallow, name):
    done = fallow("reproduce", "dickov2015", "-o", name)
    assert done.returncode == 2 and done.stderr.endswith("names no file; -o takes what names begin with, such as dickov2015\n")


def test_words_of_a_launcher_are_a_shells(tmp_path):
    words = record.launch_words("'/opt/my mpi/mpirun' -n {ranks} --map-by '{x}'", 16)
    assert words == ["/opt/my mpi/mpirun", "-n", "16", "--map-by", "{x}"]
    bt = next(p for p in record.programs() if p.name == "bt")
    assert bt.command_line(16, tmp_path / "my programs")[0] == f"{tmp_path}/my programs/bt"


def test_what_a_trace_was_recorded_with_is_known_of_ours_only(tmp_path, started):
    traces = tmp_path / "traces"
    bt = next(p for p in record.programs() if p.name == "bt").at_most(16)
    list(record.record([bt], traces, tmp_path / "bin", "mpirun -n {ranks}"))
    assert record.recorded(bt, traces, 9) and record.recorded(bt, traces, 16)
    (traces / "bt-16.ftr").write_bytes(b"another, of the user's own")
    assert record.recorded(bt, traces, 9) and not record.recorded(bt, traces, 16)
    results = dickov2015.Results({}, {"bt": bt}, recorded=frozenset({("bt", 9)}))
    assert "40 of 200" in results.why("bt", 9) and "is not known" in results.why("bt", 16)
    (traces / "recorded.json").unlink()
    assert not record.recorded(bt, traces, 9)


def test_runs_of_the_same_values_share_their_input(tmp_path, started):
    gromacs = [p for p in record.programs("bench") if p.name == "gromacs"]
    lines = list(record.record(gromacs, tmp_path / "traces", None, "mpirun -n {ranks}"))
    assert len(lines) == 2 and all("left out" not in line for line in lines)
    assert [env["box"] for command, env in started if command[0] == "bash"] == ["3.7", "5.0"]
    started.clear()
    melt = [p for p in record.programs() if p.name == "lammps"]
    assert len(list(record.record(melt, tmp_path / "traces", None, "mpirun -n {ranks}"))) == 3
    assert sum(command[0] == "bash" for command, _ in started) == 1


def test_an_input_that_cannot_be_made(tmp_path, started, monkeypatch):
    monkeypatch.setattr(record, "run_watched", lambda *_: (1, "one\nFatal error:\nno such box\n-----\n"))
    melt = [p.at_most(8) for p in record.programs() if p.name == "lammps"]
    lines = list(record.record(melt, tmp_path / "traces", None, "mpirun -n {ranks}"))
    assert lines == ["LAMMPS with 8 ranks is left out: its input cannot be made: Fatal error: no such box"]


ROOT = """\
--------------------------------------------------------------------------
mpirun has detected an attempt to run as root.

Running as root is *strongly* discouraged as any mistake or bug can
result in catastrophic damage.

We reiterate our advice against running as root - please do so at your
own risk.
--------------------------------------------------------------------------
fallow: no rank left a trace in /tmp/trace-9.ftr.parts
"""


def test_a_launcher_that_starts_nothing_is_asked_once(tmp_path, started, monkeypatch):
    calls = []
    monkeypatch.setattr(record, "run_watched", lambda command, *_: (calls.append(list(command)), (1, ROOT))[1])
    chosen = [p.at_most(16) for p in record.programs() if not p.prepare]
    lines = list(record.record(chosen, tmp_path / "traces", tmp_path / "bin", "mpirun -n {ranks}"))
    said = "mpirun has detected an attempt to run as root."
    assert lines == [
        f"NAS BT with 9 ranks is left out: it ended with 1: {said}",
        f"what else there is is left out: mpirun starts no program here: {said}",
    ]
    assert len(calls) == 2 and calls[1] == ["mpirun", "-n", "1", "true"]


def test_a_program_that_fails_does_not_end_the_recording(tmp_path, started, monkeypatch):
    def run(command, *_):
        return (0, "") if command[-1] == "true" else (1, "step 1\nno memory left\nfallow: no rank left a trace in x\n")

    monkeypatch.setattr(record, "run_watched", run)
    chosen = [p.at_most(16) for p in record.programs() if not p.prepare]
    lines = list(record.record(chosen, tmp_path / "traces", tmp_path / "bin", "mpirun -n {ranks}"))
    assert len(lines) == sum(len(p.ranks) for p in chosen)
    assert all(line.endswith("is left out: it ended with 1: no memory left") for line in lines)


def test_a_trace_of_other_ranks_is_not_kept(tmp_path, started, monkeypatch):
    monkeypatch.setattr(record, "ranks_of", lambda _: 1)
    bt = next(p for p in record.programs() if p.name == "bt").at_most(9)
    (line,) = record.record([bt], tmp_path / "traces", tmp_path / "bin", "mpirun.mpich -n {ranks}")
    assert line.startswith("NAS BT with 9 ranks is left out: its trace is of 1 rank: is the launcher that of the MPI")
    assert not list((tmp_path / "traces").glob("*.ftr"))


def test_a_trace_whose_name_says_other_ranks(fallow, tmp_path):
    (tmp_path / "traces").mkdir()
    assert fallow("synth", "cg", "--ranks", 4, "--iterations", 2, "-o", tmp_path / "traces" / "bt-9.ftr").returncode == 0
    done = fallow("reproduce", "dickov2015", "--traces", "traces")
    message = "fallow: traces/bt-9.ftr: is of 4 ranks, its name says 9; move it away or rename it\n"
    assert (done.returncode, done.stderr) == (2, message)


@pytest.mark.parametrize("name", ["mg", "cg"])  # of chapter 5, of chapter 4
def test_a_trace_without_anything_in_it(fallow, tmp_path, name):
    (tmp_path / "none.tit").write_text("".join(f"{rank} init\n{rank} finalize\n" for rank in range(16)))
    fallow("trace", "convert", tmp_path / "none.tit", "-o", tmp_path / f"{name}-16.ftr")
    done = fallow("reproduce", "dickov2015", "--traces", tmp_path, "-o", tmp_path / "report")
    assert done.returncode == 2
    assert f"{name}-16.ftr: its replay takes no time" in done.stderr and "Traceback" not in done.stderr


def test_a_run_that_takes_too_long_is_ended(tmp_path, monkeypatch):
    looks = []
    assert record.run_watched(["sh", "-c", "echo said; exit 3"], tmp_path, {"PATH": "/bin:/usr/bin"}, lambda: looks.append(1)) == (3, "said\n")
    assert looks
    monkeypatch.setattr(record, "_LIMIT_S", 0)
    assert record.run_watched(["sleep", "60"], tmp_path, {"PATH": "/bin:/usr/bin"}, lambda: None) == (None, "")


def test_a_run_that_takes_too_long_is_asked_to_end_and_killed_if_it_does_not(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "_LIMIT_S", 2)
    monkeypatch.setattr(record, "_LOOK_EVERY_S", 0.1)
    asked = ["sh", "-c", "trap 'echo asked; exit' TERM; while :; do sleep 0.1; done"]
    assert record.run_watched(asked, tmp_path, {"PATH": "/bin:/usr/bin"}, lambda: None) == (None, "asked\n")
    monkeypatch.setattr(record, "_END_S", 0.2)
    began = time.monotonic()
    assert record.run_watched(["sh", "-c", "trap '' TERM; exec sleep 40"], tmp_path, {"PATH": "/bin:/usr/bin"}, lambda: None) == (None, "")
    assert time.monotonic() - began < 35


def test_what_a_failed_run_left_is_no_trace(tmp_path, started, monkeypatch):
    """Nor is there one where a run that ended well left none."""
    bt = next(p for p in record.programs() if p.name == "bt").at_most(9)
    for status, leaves in ((1, True), (0, False)):
        def run(command, *_, status=status, leaves=leaves):
            if "fallow" in command and leaves:
                Path(command[command.index("--trace") + 1]).write_bytes(b"trace")
            return (status if "fallow" in command else 0), "Error: one\nof these\nerror: it broke\nat line 3\nbye\n"

        monkeypatch.setattr(record, "run_watched", run)
        lines = list(record.record([bt], tmp_path / "traces", tmp_path / "bin", "mpirun -n {ranks}"))
        assert lines == [f"NAS BT with 9 ranks is left out: it ended with {status}: error: it broke at line 3"]
        assert not (tmp_path / "traces").exists()


def test_what_is_asked_for_is_recorded_simulated_and_noted(tmp_path, monkeypatch, capsys):
    """Without what is long: of CG one trace of 16 ranks is there, nothing else can be recorded."""
    asked = []

    def recording(chosen, directory, where, launcher):
        asked.append((max(n for p in chosen for n in p.ranks), directory, where, launcher))
        yield from ("A is left out: no a", "B is left out: no b")

    def kernel(program, kind, path, per_node, threads):
        asked.append((program, kind, path.name, per_node, threads))

    monkeypatch.setattr(record, "record", recording)
    monkeypatch.setattr(record, "ranks_of", lambda trace: int(trace.stem.rpartition("-")[2]))
    monkeypatch.setattr(dickov2015, "measure_kernel", kernel)
    monkeypatch.setattr(dickov2015, "document", lambda results: Document("T", [], [], results.notes))
    command = ["reproduce", "dickov2015", "--record", "--traces", str(tmp_path), "--programs", str(tmp_path), "--most-ranks", "16",
               "--launcher", "run {ranks}", "--threads", "3", "-o", str(tmp_path / "report")]  # fmt: skip
    assert cli.main(command) == 2
    assert capsys.readouterr().err == f"fallow: {tmp_path}: nothing could be recorded: A is left out: no a (1 more stand above)\n"
    (tmp_path / "cg-16.ftr").touch()
    assert cli.main(command) == 0
    assert asked[0] == asked[1] == (16, tmp_path, tmp_path, "run {ranks}")
    assert asked[2:] == [("cg", "alya", "cg-16.ftr", n, 3) for n in (1, 6)]
    notes = json.loads((tmp_path / "report.json").read_text())["notes"]
    assert notes[-2:] == ["A is left out: no a.", "B is left out: no b."] and "NAS BT: not recorded with 9, 16, 36, 64, 100 ranks." in notes
    assert not any("CG" in note and " 16" in note for note in notes)
    asked.clear()
    assert cli.main([*command[:-1], str(tmp_path / "nowhere" / "report")]) == 2 and not asked  # before anything long


def test_states_over_time_as_text():
    strips = Strips("c", ("off", "on"), 1000.0, 2000.0, (("a", 0, ((0.0, 1100.0, 1), (1495.0, 1500.0, 1), (1900.0, 9000.0, 1))), ("bb", 1, ())))
    assert drawn(strips) == [
        ". off  # on",
        " a " + "#" * 10 + "." * 39 + "." + "." * 40 + "#" * 10,
        "bb " + "#" * 100,
        "   1.000 ms to 2.000 ms",
    ]
    assert "```\n. off" in markdown(Document("T", [], [Section("s", strips=[strips])], []))


def test_markdown():
    section = Section("Table 1", ["Text."], ("a", "b"), [("x", "1")], Bars("%", ("s",), (("x", (1.0,)),)), ["because"])
    text = markdown(Document("Title", ["Intro."], [section], ["note"]))
    assert "| a | b |\n| --- | --- |\n| x | 1 |" in text and "- because" in text and "- note" in text


def test_published_values_are_those_of_the_publication():
    """Sums that hold in the publication's tables, but for rounding and one row of Alya that is off by 0.4."""
    for rows in dickov2015.record.data("dickov2015.toml")["idle_intervals"].values():
        for row in rows:
            whole = row[1] + row[4] + row[7]
            for number, share in ((row[1], row[2]), (row[4], row[5]), (row[7], row[8])):
                assert number / whole * 100 == pytest.approx(share, abs=0.5)
            assert row[3] + row[6] + row[9] == pytest.approx(100, abs=0.25)
