"""What many runs did and saved, as one page that needs nothing but itself."""

from __future__ import annotations

from fallow import overview, report_html
from fallow.overview import Overview

_SCRIPTS = ("base.js", "overview.js")


def page(o: Overview) -> str:
    """The whole page."""
    return report_html.assemble(f"Fallow: {len(o.runs)} runs", _SCRIPTS, {"overview": overview.as_dict(o)})
