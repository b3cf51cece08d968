"""Runs on a node with NVIDIA cards, which a library of the tests' own makes up."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from drawn_page import draw
from fallow import analyse, pair_text, report_html, sampling
from fallow.text import Style
from rank_writer import lively_rank, write_run

_SOURCE = Path(__file__).resolve().parents[2] / "src/power/fake_nvml.c"
_CARD = "gpu0 GPU-0a1b2c3d"
_USED_J = 500
_SCRIPTS = ("base.js", "charts.js", "timeline.js", "main.js")


@pytest.fixture
def card(tmp_path):
    """Its directory; the library is in usr/lib."""
    library = tmp_path / "usr/lib/libnvidia-ml.so.1"
    library.parent.mkdir(parents=True)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, _SOURCE, "-ldl"], check=True)
    place = tmp_path / "sys/fake-nvml/card0"
    place.mkdir(parents=True)
    for name, value in (("energy", "1000000"), ("uuid", "GPU-0a1b2c3d-0000-0000-0000-000000000000"), ("name", "NVIDIA Example")):
        (place / name).write_text(f"{value}\n")
    return place


def _env(card, library, **more):
    return {"LD_LIBRARY_PATH": str(card.parents[2] / "usr/lib"), "FALLOW_LIBRARY_DIR": str(library), **more}


def _program(card, ranks):
    """A command that lets the card use energy, and leaves the records of ranks where it runs under Fallow."""
    used = f"e=$(cat {card}/energy); sleep 0.2; echo $((e + {_USED_J}000)) > {card}/energy; sleep 0.2"
    return ["sh", "-c", f'{used}; [ -z "$FALLOW_DIR" ] || cp {ranks}/rank-* "$FALLOW_DIR"']


def test_a_run_has_the_cards_energy_and_says_of_what_it_is(fallow, fake_library, card, run_dir, tmp_path):
    out = fallow("run", "--out", "r", "--", *_program(card, run_dir), env=_env(card, fake_library))
    assert out.returncode == 0, out.stderr
    report = json.loads(fallow("report", "r", "--json").stdout)
    metered = report["energy"]["metered"]
    (domain,) = [d for d in metered["domains"] if d["meter"] == "nvml"]
    assert (domain["domain"], domain["kind"], domain["counted"]) == (_CARD, "accelerator", True)
    assert 0.5 * _USED_J < domain["energy_j"] <= _USED_J
    (measures,) = [m for m in metered["measures"] if m.startswith("nvml: ")]
    assert "1 x NVIDIA Example" in measures
    assert "CUDA_VISIBLE_DEVICES" in measures
    assert "modelled" in metered["coverage"]
    shown = fallow("report", "r").stdout
    assert metered["coverage"].split(";")[0] in shown
    assert metered["coverage"] in fallow("report", "r", "--html", "-").stdout
    assert (tmp_path / "sys/fake-nvml/uses").read_text() == "0\n", "what was begun was ended"


def test_a_comparison_says_of_what_its_energy_is(fallow, fake_library, card, run_dir):
    args = ("run", "--compare", "1", "--out", "series", "--", *_program(card, run_dir))
    out = fallow(*args, env=_env(card, fake_library))
    assert out.returncode == 0, out.stderr
    trials = json.loads((card.parents[2] / "series/compare.json").read_text())["trials"]
    assert all(t["metered_j"] > 0.5 * _USED_J and "modelled" in t["metered_coverage"] for t in trials)
    for shown in (out.stdout, fallow("report", "series", "--html", "-").stdout):
        assert f"metered: {trials[0]['metered_coverage']}" in shown


def test_cards_are_additive(card, tmp_path):
    found = sampling.find(str(tmp_path))
    assert found is not None, "built without meters: run `make build`"
    assert found.additive == [("nvml", _CARD)]


def test_the_doctor_lists_cards_and_what_they_lack(fallow, card):
    findings = {f["name"]: f for f in json.loads(fallow("doctor", "--json", env=_env(card, "")).stdout)["findings"]}
    assert findings["nvml"]["state"] == "ok"
    assert _CARD in findings["nvml"]["found"]
    (card.parent / "init").write_text("error 9\n")
    findings = {f["name"]: f for f in json.loads(fallow("doctor", "--json", env=_env(card, "")).stdout)["findings"]}
    assert findings["nvml"]["state"] == "note"
    assert "driver is not loaded" in findings["nvml"]["found"]
    assert "load their driver" in findings["nvml"]["remedy"]


_ASKS = """
import pathlib, sys
from fallow import doctor, sampling
print(*(f.found for f in doctor.meters(pathlib.Path(sys.argv[1]), patience_s=0.2) if f.name == "meters"))
print(sampling.SamplingThread(lambda: sampling.find(sys.argv[1]), patience_s=0.2).start(print))
"""


def test_a_driver_that_hangs_holds_nobody_up(card, tmp_path):
    (card.parent / "init").write_text("hang\n")
    out = subprocess.run([sys.executable, "-c", _ASKS, tmp_path], check=False, capture_output=True, text=True, timeout=60)
    why = "no answer in 200 ms: a driver hangs"
    assert (out.stdout.splitlines(), out.stderr, out.returncode) == ([why, f"meters are not read: {why}", "None"], "", 0)


def _with_meters(directory, domains):
    run = write_run(directory, [lively_rank(0, 1, 5)], run_time_s=1.0)
    names = [name for name, _ in domains]
    meter = {
        "name": "made-up", "measures": "", "off": {}, "lost_intervals": {},
        "domains": [{"name": name, "kind": kind, "inside": None} for name, kind in domains],
        "samples": [[0, dict.fromkeys(names, 0.0)], [10**9, dict.fromkeys(names, 5.0)]],
    }  # fmt: skip
    meters = {"schema": "fallow-meters", "version": 1, "additive": [["made-up", name] for name in names], "meters": [meter]}
    (run / "meters.json").write_text(json.dumps(meters))
    return analyse.load(run)


def test_energy_of_cards_has_no_ratio_to_that_of_a_node(tmp_path):
    node = _with_meters(tmp_path / "node", [("package-0", "package")])
    cards = _with_meters(tmp_path / "cards", [("gpu0", "accelerator")])
    both = _with_meters(tmp_path / "both", [("package-0", "package"), ("gpu0", "accelerator")])
    more = _with_meters(tmp_path / "more", [("gpu0", "accelerator"), ("gpu1", "accelerator")])
    coverage = [r.energy.metered.coverage for r in (node, cards, both, more) if r.energy.metered]
    assert [c.split(" ")[:2] for c in coverage] == [[""], ["accelerators", "alone;"], ["accelerators", "are"], ["accelerators", "alone;"]]

    def row(first, second):
        lines = list(pair_text.lines(first, second, Style(colour=False, unicode=False, width=200)))
        (energy,) = [line.split() for line in lines if line.split()[:2] == ["energy,", "metered"]]
        return energy[2:], [line for line in lines if "metered:" in line or "metered," in line]

    assert row(cards, more)[0] == ["5", "J", "10.0", "J", "2.000"]
    assert row(node, node) == (["5", "J", "5", "J", "1.000"], [])
    figures, told = row(node, cards)
    assert figures == ["5", "J", "5", "J"]
    assert "of package in A and of accelerator in B, so there is no ratio" in told[0]
    assert "metered, B: accelerators alone" in told[1]


def test_the_page_says_of_what_metered_energy_is(tmp_path):
    node = _with_meters(tmp_path / "node", [("package-0", "package")])
    cards = _with_meters(tmp_path / "cards", [("gpu0", "accelerator")])

    def drawn(*reports):
        shown, _ = draw(report_html.page(list(reports)), _SCRIPTS, tmp_path)
        (energy,) = [number for _, number in shown["numbers"] if number.startswith("energy metered")]
        return energy, shown["text"]

    assert drawn(node)[0] == "energy metered5 Jenergy-delay 5 J s"
    energy, said = drawn(cards)
    assert energy.startswith("energy metered5 Jenergy-delay 5 J s; accelerators alone; modelled energy")
    assert said.count("accelerators alone") == 2, "beside the figure and above the table"
    assert drawn(cards, cards)[0].endswith("A5 JB5 J\N{MULTIPLICATION SIGN} 1")
    assert drawn(node, cards)[0].endswith("A5 JB5 J")
