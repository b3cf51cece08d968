"""A report as JSON."""

from __future__ import annotations

import dataclasses
import json
from importlib import resources
from typing import Any

from fallow import json_text
from fallow.model import Report

SCHEMA_FILE = "schema/report-1.schema.json"


def as_dict(report: Report) -> dict[str, Any]:
    """The report as plain lists and dictionaries."""
    return dataclasses.asdict(report)


def dumps(reports: list[Report]) -> str:
    """One report, or two as {"reports": [...]}."""
    texts = [json_text.dumps(as_dict(report)) for report in reports]
    return texts[0] if len(texts) == 1 else '{"reports": [\n' + ",\n".join(texts) + "\n]}"


def schema() -> dict[str, Any]:
    """The JSON Schema of one report."""
    text = resources.files("fallow").joinpath(SCHEMA_FILE).read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data
