"""The page stands alone: no address outside itself, no markup from data."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import random
import re
import subprocess
from html.parser import HTMLParser
from importlib import resources

from fallow import analyse, report_html, text
from rank_writer import lively_rank, write_run


class Page(HTMLParser):
    """Collects what a browser would fetch or run."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.references: list[str] = []
        self.handlers: list[str] = []
        self.data = ""
        self.script = ""
        self.style = ""
        self._into = ""

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.references += [v for k, v in attrs if k in ("src", "href", "action", "data", "poster", "srcset") and v]
        self.handlers += [k for k, _ in attrs if k.startswith("on")]
        if tag == "script":
            self._into = "data" if values.get("type") == "application/json" else "script"
        elif tag == "style":
            self._into = "style"
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        self._into = ""

    def handle_data(self, data):
        if self._into:
            setattr(self, self._into, getattr(self, self._into) + data)


def parse(text: str) -> Page:
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == []
    return page


def test_the_page_needs_nothing_but_itself(run_dir, fallow):
    out = fallow("report", run_dir, "--html")
    assert out.stdout.strip() == str(run_dir / "report.html")
    text = (run_dir / "report.html").read_text()
    page = parse(text)
    assert page.references == ["data:,"]
    assert page.handlers == []
    code = (page.script + page.style).replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\(|fetch\(|XMLHttpRequest|WebSocket|import\(", code)
    assert "default-src 'none'" in text
    assert "{{" not in page.style


def test_a_dash_is_standard_output(run_dir, fallow, tmp_path):
    assert fallow("synth", "cg", "--ranks", 4, "--iterations", 3, "-o", "cg.ftr").returncode == 0
    for command in (("report", run_dir), ("sim", "cg.ftr"), ("predict", "cg.ftr")):
        out = fallow(*command, "--html", "-")
        assert out.returncode == 0 and out.stdout.startswith("<!doctype html>") and out.stdout.rstrip().endswith("</html>")
        parse(out.stdout)
    assert not (tmp_path / "-").exists()


def test_its_data_is_the_report(run_dir, fallow):
    fallow("report", run_dir, "--html", "page.html")
    page = parse((run_dir.parent / "page.html").read_text())
    report = json.loads(fallow("report", run_dir, "--json").stdout)
    assert json.loads(page.data) == {"reports": [report]}


def test_hostile_names_stay_data(tmp_path, fallow):
    evil = "</script><script>alert(1)</script><!--{{JS}}"
    directory = write_run(tmp_path / "r", [lively_rank(0, 1, 5, host=b"<img src=x>")], command=["a", evil])
    fallow("report", directory, "--html")
    page = parse((directory / "report.html").read_text())
    assert json.loads(page.data)["reports"][0]["run"]["command"] == ["a", evil]
    assert "alert(1)" not in page.script
    assert page.references == ["data:,"]


def test_no_markup_is_made_from_data(run_dir, fallow):
    fallow("report", run_dir, "--html")
    script = parse((run_dir / "report.html").read_text()).script
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b", script)


def test_a_page_that_cannot_be_written_is_exit_2(run_dir, fallow):
    out = fallow("report", run_dir, "--html", "/proc/none/page.html")
    assert out.returncode == 2
    assert out.stderr.startswith("fallow: /proc/none/page.html: ")


def test_a_run_after_html_is_the_run(run_dir, fallow):
    assert fallow("report", "--html", run_dir).stdout.strip() == str(run_dir / "report.html")


def test_two_runs_stand_in_the_order_in_which_they_are_named(tmp_path, fallow):
    a, b = (write_run(tmp_path / name, [lively_rank(0, 1, 5)]) for name in "ab")
    for words in ((a, b, "--html"), ("--html", a, b), (a, "--html", b)):
        assert fallow("report", *words).stdout.strip() == str(b / "report.html")
        reports = json.loads(parse((b / "report.html").read_text()).data)["reports"]
        assert [r["run"]["directory"] for r in reports] == [str(a), str(b)]


def test_a_run_may_be_named_after_any_option(tmp_path, fallow):
    a, b = (write_run(tmp_path / name, [lively_rank(0, 1, 5)]) for name in "ab")
    assert fallow("report", a, "--html", "both.html", b).stdout == "both.html\n"
    for reports in (json.loads(parse((tmp_path / "both.html").read_text()).data), json.loads(fallow("report", a, "--json", b).stdout)):
        assert [r["run"]["directory"] for r in reports["reports"]] == [str(a), str(b)]
    for last in ("-x", ""):
        assert fallow("report", a, "--json", last).stderr.startswith(f"fallow: report does not know {last}")
    c = write_run(tmp_path / "c", [lively_rank(0, 1, 5)])
    assert json.loads(fallow("report", a, "--json", b, c).stdout)["totals"]["runs"] == 3


def test_calls_that_no_picture_shows_are_not_in_the_page(run_dir):
    report = analyse.load(run_dir)
    row = report.timeline.rows[0]
    empty, short = (dataclasses.replace(row, events=row.events[:n]) for n in (0, 1))
    rows = [empty, *[short] * (report_html.MOST_ROWS + 7)]
    many = dataclasses.replace(report, timeline=dataclasses.replace(report.timeline, rows=rows))
    (data,) = json.loads(parse(report_html.page([many])).data)["reports"]
    assert len(data["timeline"]["rows"]) == report_html.MOST_ROWS
    assert data["timeline"]["rows_left_out"] == 7
    drawn = re.search(r"const MAX_ROWS = (\d+);", report_html.asset("timeline.js"))
    assert drawn is not None and int(drawn[1]) == report_html.MOST_ROWS


def test_on_paper_bars_have_their_colours_and_tables_all_columns(run_dir, fallow):
    fallow("report", run_dir, "--html")
    style = parse((run_dir / "report.html").read_text()).style
    paper = style[style.index("@media print") :]
    assert "@media screen and (prefers-color-scheme: dark)" in style  # paper is white
    assert "print-color-adjust: exact" in paper
    assert re.search(r"\.scroll[^{}]* \{ overflow: visible; \}", paper)
    assert re.search(r"h2, h3 \{ break-after: avoid; \}", paper)  # no heading alone at the end of a sheet


def test_timelines_are_drawn_anew_where_the_dark_colours_begin_and_end():
    """On paper too: a canvas is a picture, which style sheets do not reach."""
    dark = re.search(r"@media ([^{]*color-scheme: dark\)) \{", report_html.asset("report.css"))
    heard = re.search(r'matchMedia\("([^"]*)"\)', report_html.asset("timeline.js"))
    assert dark is not None and heard is not None and heard[1] == dark[1]


def test_libraries_are_named_as_in_the_terminal(tmp_path):
    """Of programs on several, the families of all; not the name of the first rank's alone."""
    main = resources.files("fallow").joinpath("assets", "main.js").read_text()
    families = re.search(r"^const FAMILY = .*$", main, re.MULTILINE)
    library = re.search(r"^function library\(.*?^}$", main, re.MULTILINE | re.DOTALL)
    assert families and library
    runs = [
        {"mpi": "MPICH 4.0.2", "families": ["mpich", "openmpi"]},
        {"mpi": "MPICH 4.0.2", "families": ["mpich"]},
        {"mpi": "MPICH 5.0.0", "families": ["mpiabi"]},
        {"mpi": "", "families": ["openmpi"]},
    ]
    ask = f"{families[0]}\n{library[0]}\nconsole.log(JSON.stringify({json.dumps(runs)}.map(library)));"
    (tmp_path / "library.js").write_text(ask)
    done = subprocess.run(["node", tmp_path / "library.js"], capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout) == ["MPICH, Open MPI", "MPICH 4.0.2", "MPICH 5.0.0 (MPI 5 ABI)", "Open MPI"]


def test_numbers_have_the_units_of_the_terminal(tmp_path):
    """At the borders too, which rounding reaches. Seconds from 10 to 100 have a zero behind the point there only."""
    base = report_html.asset("base.js")
    helpers = base[base.index("const rounded") : base.index("const known")]
    numbers = [m * 10.0**e for m in (1, -1.5, 4.2, 9.994, 9.9949, 9.996, 9.99996) for e in range(-9, 15)]
    numbers += [0, 59.94, 59.96, 599.4, 599.6, 3594, 3599, 36e5 - 6, 36e5 - 4, 1023, 2**10 - 0.04, 2.0**20 - 1, 2.0**30 - 60000, 2.0**40]
    shown = ("seconds", "joules", "jouleSeconds")
    (tmp_path / "units.js").write_text(
        f"{helpers}\nconst all = {json.dumps(numbers)};\n"
        f"console.log(JSON.stringify([...[{', '.join(shown)}].map((f) => all.map(f)), all.filter((v) => v >= 1).map((v) => size(Math.round(v)))]));"
    )
    done = subprocess.run(["node", tmp_path / "units.js"], capture_output=True, text=True, check=True, timeout=60)
    theirs = json.loads(done.stdout)
    ours = [[f(v) for v in numbers] for f in (text.seconds, text.joules, text.joule_seconds)]
    ours.append([text.size(math.floor(v + 0.5)) for v in numbers if v >= 1])
    for one, other in zip(theirs, ours, strict=True):
        assert [x.replace("µ", "u") for x in one] == [re.sub(r"^(-?\d\d)\.0 s$", r"\1 s", x) for x in other]


def test_time_burnt_is_told_as_in_the_terminal(tmp_path):
    """As a bound where ranks had no core all the time that they were awake."""
    main = resources.files("fallow").joinpath("assets", "main.js").read_text()
    needed = main[main.index("/** Ranks waited for cores. */") : main.index("/** Ranks waited for cores, or others")]
    residency = {"computing_s": 5, "transfer_s": 1, "wait_awake_s": 4}
    totals = [
        {"residency": residency, "core_time_s": 20, "cpu_ranks_s": cpu_s, "wait_burnt_s": burnt_s}
        for cpu_s, burnt_s in ((9.5, 4), (4.5, 4), (3, 3), (0, 4), (4.5, 3.9), (9.5, 3.9))
    ]
    (tmp_path / "burnt.js").write_text(
        "const seconds = (s) => `${s} s`, percent = (share) => `${share * 100} %`;\n"
        f"{needed}\nconsole.log(JSON.stringify({json.dumps(totals)}.map(burnt)));"
    )
    done = subprocess.run(["node", tmp_path / "burnt.js"], capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout) == [
        "20 % of core time",
        "at most; 20 % of core time. Ranks had a core for 45 % of their time awake",
        "at most, of 4 s awake: ranks waited for cores, too",
        "20 % of core time",
        "at most, of 4 s awake; 19.5 % of core time. Ranks had a core for 45 % of their time awake",
        "of 4 s awake; 19.5 % of core time",
    ]


def test_numbers_are_rounded_as_in_the_terminal(tmp_path):
    """Halves too, which both take from what the number is and not from how it is written: 1.005 is below its half."""
    rng = random.Random(1)
    halves = [sign * n / 2**k for n in range(1, 400) for k in range(1, 7) for sign in (1, -1)]
    values = [0.0, 1.005, 2.675, 0.25, 6.25, 1e21, *halves, *(rng.uniform(-1, 1) * 10 ** rng.uniform(-9, 9) for _ in range(2000))]
    shown = {"percent": text.percent, "seconds": text.seconds, "joules": text.joules, "jouleSeconds": text.joule_seconds, "size": text.size}
    asked = {name: [256.0 * round(abs(v)) for v in values] if name == "size" else values for name in shown}
    base = report_html.asset("base.js")
    functions = base[base.index("const rounded") : base.index("const known")]
    calls = ", ".join(f"{json.dumps(of)}.map((v) => {name}(v))" for name, of in asked.items())
    (tmp_path / "shown.js").write_text(f"{functions}\nconsole.log(JSON.stringify([{calls}]));")
    done = subprocess.run(["node", tmp_path / "shown.js"], capture_output=True, text=True, check=True, timeout=60)

    def parts(words):
        number, _, unit = words.replace("µ", "u").partition(" ")
        return float(number), unit

    for (name, of), drawn in zip(asked.items(), json.loads(done.stdout), strict=True):
        for value, page in zip(of, drawn, strict=True):
            assert parts(shown[name](value)) == parts(page), (name, value)
    assert (text.fixed(0.25, 1), text.fixed(-0.5, 0), text.fixed(1.005, 2), text.fixed(float("inf"), 1)) == ("0.3", "-1", "1.00", "inf")


def test_all_that_scrolls_sideways_is_made_reachable():
    """By the keyboard: base.js sees to it for what `sideways` makes."""
    for script in ("base.js", "charts.js", "main.js", "sim.js", "document.js", "predict.js", "predict_plots.js", "compare.js", "sweep.js"):
        assert not re.search(r'class: "(scroll|plot)', report_html.asset(script)), script


LABELS = """
const PROBE = [];
const svg = (tag, attributes, ...children) => (PROBE.push({ tag, ...attributes, text: children.join("") }), null);
const seconds = (s) => `${s * 1e6} us`;
"""


def test_labels_of_plots_stand_on_no_other(tmp_path):
    plots = resources.files("fallow").joinpath("assets", "predict_plots.js").read_text()
    ask = """
drawMarks([[1e-5, ["pps, spps and more"]], [1.2e-5, ["b"]], [3e-4, ["adaptive"]], [6e-4, ["last"]], [9e-4, ["c"]]], logAxis(1e-6, 1e-3), 24, 200);
console.log(JSON.stringify([PROBE.filter((p) => p.tag === "text"), labelHeights([234, 234, 234], 234), labelHeights([20, 22, 200], 234)]));
"""
    (tmp_path / "labels.js").write_text(LABELS + plots + ask)
    done = subprocess.run(["node", tmp_path / "labels.js"], capture_output=True, text=True, check=True, timeout=60)
    labels, level, apart = json.loads(done.stdout)
    assert level == [208, 221, 234] and apart == [20, 33, 200]

    def stretch(label):
        width = 6.8 * len(label["text"])
        return (label["x"] - width, label["x"]) if label["text-anchor"] == "end" else (label["x"], label["x"] + width)

    for first, second in itertools.combinations(labels, 2):
        (a, b), (c, d) = stretch(first), stretch(second)
        assert first["y"] != second["y"] or b <= c or d <= a, (first, second)
    assert all(a >= 0 and b <= 640 for a, b in map(stretch, labels))
