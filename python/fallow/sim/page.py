"""A study as one page that needs nothing but itself."""

from __future__ import annotations

from fallow import report_html
from fallow.sim import text, timeline
from fallow.sim.model import Study

_SCRIPTS = ("base.js", "timeline.js", "sim.js")


def page(study: Study) -> str:
    """The whole page."""
    data = text.as_dict(study)
    for row, outcome in zip(data["simulations"], study.outcomes, strict=True):
        ends_ns = [r.end_s * 1e9 for r in outcome.ranks]
        row["timeline"] = timeline.as_dict(outcome.timeline, ends_ns) if outcome.timeline else None
    return report_html.assemble(f"Fallow: {study.program.name} on {study.machine['name']}", _SCRIPTS, data)
