"""A study of predictors as one page that needs nothing but itself."""

from __future__ import annotations

import dataclasses
from pathlib import PurePath

from fallow import report_html
from fallow.predict_model import PredictReport

_SCRIPTS = ("base.js", "charts.js", "timeline.js", "predict_plots.js", "predict_timeline.js", "predict.js")


def page(report: PredictReport) -> str:
    """The whole page."""
    name = report.trace.program or report.trace.paths[0]
    return report_html.assemble(f"Fallow: predictors on {PurePath(name).name}", _SCRIPTS, dataclasses.asdict(report))
