"""A report as JSON."""

from __future__ import annotations

import dataclasses
import json
from importlib import resources
from typing import Any

from fallow.model import Report

SCHEMA_FILE = "schema/report-1.schema.json"


def as_dict(report: Report) -> dict[str, Any]:
    """The report as plain lists and dictionaries."""
    return dataclasses.asdict(report)


def dumps(reports: list[Report]) -> str:
    """One report, or two as {"reports": [...]}."""
    data = [as_dict(report) for report in reports]
    return json.dumps(data[0] if len(data) == 1 else {"reports": data}, indent=1, allow_nan=False)


def schema() -> dict[str, Any]:
    """The JSON Schema of one report."""
    text = resources.files("fallow").joinpath(SCHEMA_FILE).read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data
