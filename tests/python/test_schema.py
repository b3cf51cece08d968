"""The report's JSON against its schema, and the schema against the model."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import jsonschema
import pytest

from fallow import report_json, report_schema
from rank_writer import lively_rank, write_run

ROOT = Path(__file__).resolve().parents[2]


def test_a_report_is_valid(run_dir, fallow):
    jsonschema.validate(json.loads(fallow("report", run_dir, "--json").stdout), report_json.schema())


def test_reports_of_two_runs_are_valid(run_dir, fallow):
    data = json.loads(fallow("report", run_dir, run_dir, "--json").stdout)
    assert len(data["reports"]) == 2
    for report in data["reports"]:
        jsonschema.validate(report, report_json.schema())


def test_an_empty_rank_is_valid(tmp_path, fallow):
    rank = lively_rank(0, 1, 0)
    out = fallow("report", write_run(tmp_path / "r", [rank], exit_status=None, signal=11), "--json").stdout
    jsonschema.validate(json.loads(out), report_json.schema())


def test_what_is_not_a_report_is_refused(run_dir, fallow):
    good = json.loads(fallow("report", run_dir, "--json").stdout)
    for damage in (
        lambda d: d.pop("totals"),
        lambda d: d["totals"].update(calls="many"),
        lambda d: d.update(version=2),
        lambda d: d["ranks"][0].pop("residency"),
        lambda d: d["timeline"]["rows"][0]["events"].append(["x"]),
    ):
        bad = copy.deepcopy(good)
        damage(bad)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, report_json.schema())


def test_the_schema_and_its_page_are_what_the_model_makes():
    assert report_json.schema() == report_schema.build()
    assert (ROOT / "docs/reference/report-schema.md").read_text() == report_schema.markdown()
