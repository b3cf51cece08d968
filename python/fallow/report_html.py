"""A report, or two side by side, as one page that needs nothing but itself."""

from __future__ import annotations

import html
import json
import shlex
from collections.abc import Sequence
from importlib import resources
from typing import Any

from fallow import report_json
from fallow.model import Report

_SCRIPTS = ("base.js", "charts.js", "timeline.js", "main.js")
MOST_ROWS = 4000
"""Of a timeline: what assets/timeline.js draws."""


def asset(name: str) -> str:
    """A file of the pages' style and scripts."""
    return resources.files("fallow").joinpath("assets", name).read_text(encoding="utf-8")


def _embed(data: object) -> str:
    """JSON that cannot end the script element that it stands in."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def assemble(title: str, scripts: Sequence[str], data: object) -> str:
    """A page that needs nothing but itself: the scripts among the assets, in order, and what they draw."""
    parts = {
        "TITLE": html.escape(title),
        "CSS": asset("report.css"),
        "JS": "\n".join(asset(name) for name in scripts),
        "DATA": _embed(data),
    }
    return fill(parts)


def fill(parts: dict[str, str]) -> str:
    """The template with its places filled; what comes in is not searched for places again."""
    template = asset("report.html")
    out = []
    for piece in template.split("{{"):
        name, closed, rest = piece.partition("}}")
        out.append(parts[name] + rest if closed and name in parts else piece)
    return "".join(out)


def _drawn(report: Report) -> dict[str, Any]:
    """The report without the calls that no picture shows, which would be most of a page of 10,000 ranks."""
    data = report_json.as_dict(report)
    rows = [row for row in data["timeline"]["rows"] if row["events"]]
    if len(rows) > MOST_ROWS:
        data["timeline"] |= {"rows": rows[:MOST_ROWS], "rows_left_out": len(rows) - MOST_ROWS}
    return data


def page(reports: list[Report]) -> str:
    """The whole page."""
    first = reports[0].run
    title = "Fallow: " + (shlex.join(first.command) or first.program)
    return assemble(title, _SCRIPTS, {"reports": [_drawn(report) for report in reports]})
