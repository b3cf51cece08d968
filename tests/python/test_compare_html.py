"""The page of a comparison."""

from __future__ import annotations

import json

import pytest

from drawn_page import draw as draw_page
from fallow import compare, compare_html
from fallow.compare import Comparison, Trial

TIMES = "\u00d7"


def trial(number: int, with_fallow: bool, run_time: float, **more) -> Trial:
    fixed = {"directory": f"{number:02}", "cpu_s": 2 * run_time, "exit_status": 0, "signal": None, "other_cores": 0.0}
    waits = {"wait_awake_s": 0.1, "wait_asleep_s": 0.9, "spinning_w": 50.0} if with_fallow else {}
    return Trial(number=number, with_fallow=with_fallow, run_time_s=run_time, modelled_j=50 * run_time, **(fixed | waits | more))


def comparison(trials: list[Trial], counted: int, warnings: list[str]) -> Comparison:
    found = compare.metrics(trials[:counted])
    return Comparison(compare.SCHEMA, compare.VERSION, "0", ["mpirun", "./</script>"], {"mode": "auto"}, "series", trials, found, warnings)


@pytest.fixture
def draw(tmp_path):
    def drawn(what: Comparison):
        found, data = draw_page(compare_html.page(what), ("base.js", "compare.js"), tmp_path)
        assert data["comparison"] == compare.as_dict(what)
        return found

    return drawn


def test_each_run_is_a_point_and_each_ratio_a_line(draw):
    runs = [trial(1, False, 2.0), trial(2, True, 1.51), trial(3, True, 1.4), trial(4, False, 2.2)]
    found = draw(comparison(runs, 4, ["run 3: other load took 0.50 cores meanwhile"]))
    ratios, *of_runs = found["drawn"]
    shown = [m for m in compare.metrics(runs) if m.ratio is not None]
    assert [m.name for m in shown] == ["run time", "CPU time", "energy, modelled", "energy-delay, modelled"]
    assert len(ratios["circles"]) == len(shown)
    for m in shown:
        assert f"{m.ratio.median:.3f}   ({m.ratio.low:.3f} to {m.ratio.high:.3f})" in ratios["texts"]
    assert [picture["label"] for picture in of_runs] == ["run time of each run", "CPU time of each run", "energy, modelled of each run"]
    for picture in of_runs:
        heights = [float(c["cy"]) for c in picture["circles"]]
        assert heights[2] > heights[1] > heights[0] > heights[3]  # downwards: 1.4, 1.51, 2.0, 2.2 s
        assert [c["fill"] for c in picture["circles"]] == ["var(--card)", "var(--asleep)", "var(--asleep)", "var(--card)"]
        assert all(14 <= y <= 190 for y in heights)
    assert "other load took 0.50 cores" in found["text"] and "mpirun ./</script>" in found["text"]
    assert found["rows"] == [4, 2, 4]  # of what is measured, of what is modelled, and of every run
    moods = {text.partition(TIMES)[0]: mood for mood, text in found["numbers"]}
    assert moods["run time"] == moods["CPU time"] == "card number good"
    assert any(text.startswith("waits asleep90.0 %") for _, text in found["numbers"])


def test_a_slower_program_is_no_good_and_an_equal_one_neither(draw):
    found = draw(comparison([trial(1, False, 1.0, cpu_s=1.0), trial(2, True, 1.2, cpu_s=1.0)], 2, []))
    moods = {text.partition(TIMES)[0]: mood.strip() for mood, text in found["numbers"]}
    assert moods["run time"] == "card number bad" and moods["CPU time"] == "card number"


def test_a_run_that_was_interrupted_is_in_the_table_only(draw):
    runs = [trial(1, False, 2.0), trial(2, True, 1.5), trial(3, True, 0.1, exit_status=None, signal=2)]
    found = draw(comparison(runs, 2, []))
    assert all(len(picture["circles"]) == 2 for picture in found["drawn"][1:])
    assert found["rows"][-1] == 3 and "signal 2, not counted" in found["text"]


def test_nothing_to_compare_with_is_said(draw):
    for runs, counted in (([trial(1, True, 1.0)], 1), ([trial(1, False, 1.0, signal=2)], 0)):
        found = draw(comparison(runs, counted, ["there is nothing to compare with"]))
        assert "There is nothing to compare with." in found["text"]


def test_the_command_writes_it_beside_the_runs(fallow, tmp_path):
    what = comparison([trial(1, False, 2.0), trial(2, True, 1.5)], 2, [])
    (tmp_path / "series").mkdir()
    (tmp_path / "series" / compare.FILE).write_text(json.dumps(compare.as_dict(what)))
    out = fallow("report", "series", "--html")
    assert (out.returncode, out.stdout, out.stderr) == (0, "series/report.html\n", "")
    assert (tmp_path / "series/report.html").read_text() == compare_html.page(what)
    assert fallow("report", "series", "--html", "-").stdout == compare_html.page(what)
