"""A comparison as one page that needs nothing but itself."""

from __future__ import annotations

import shlex

from fallow import compare, compare_text, report_html
from fallow.compare import Comparison

_SCRIPTS = ("base.js", "compare.js")


def page(comparison: Comparison) -> str:
    """The whole page."""
    data = {"comparison": compare.as_dict(comparison), "notes": compare_text.notes(comparison)}
    return report_html.assemble(f"Fallow, with and without: {shlex.join(comparison.command)}", _SCRIPTS, data)
