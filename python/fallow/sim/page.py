"""A study as one page that needs nothing but itself."""

from __future__ import annotations

import html
import json
from typing import Any

from fallow import report_html
from fallow.sim import text, timeline
from fallow.sim.model import Study

_SCRIPTS = ("base.js", "timeline.js", "sim.js")


def assemble(title: str, data: dict[str, Any], scripts: tuple[str, ...]) -> str:
    """A page of the house's style around `data`."""
    embedded = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for character, code in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        embedded = embedded.replace(character, code)
    parts = {
        "TITLE": html.escape(title),
        "CSS": report_html.asset("report.css"),
        "JS": "\n".join(report_html.asset(name) for name in scripts),
        "DATA": embedded,
    }
    return report_html.fill(parts)


def page(study: Study) -> str:
    """The whole page."""
    data = text.as_dict(study)
    for row, outcome in zip(data["simulations"], study.outcomes, strict=True):
        ends_ns = [r.end_s * 1e9 for r in outcome.ranks]
        row["timeline"] = timeline.as_dict(outcome.timeline, ends_ns) if outcome.timeline else None
    return assemble(f"Fallow: {study.program.name} on {study.machine['name']}", data, _SCRIPTS)
