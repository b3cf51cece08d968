"""Makes the JSON Schema of a study and its documentation from the model: python -m fallow.predict_schema DIR."""

from __future__ import annotations

import json
import sys
from importlib import resources
from pathlib import Path
from typing import Any

from fallow import predict_model, schema_tools

SCHEMA_FILE = "schema/predict-1.schema.json"

_INTRODUCTION = (
    "# A study of predictors as JSON",
    "",
    "`fallow predict TRACE --json` prints one object of this form. The JSON Schema is installed as",
    "`fallow/schema/predict-1.schema.json`. Names carry their unit: `_s` seconds, `_ns` nanoseconds; a `share` is a",
    "fraction of one. This page is made from the program by `python -m fallow.predict_schema`.",
)

_FIELDS = {
    "PredictReport.schema": 'always "fallow-predict"',
    "PredictReport.version": "1; a change that breaks readers raises it, a new field does not",
    "trace": "what was studied",
    "react_down_s": "time from full power to rest",
    "react_up_s": "time from rest to full power",
    "PredictReport.gaps": "gaps of all ranks studied",
    "PredictReport.ways": "the predictors asked for, each with each lead and threshold",
    "sweep": "pps over many thresholds, where none was given; the best by rest is among the ways",
    "cost_calls": "calls that the costs were measured on; 0: not measured",
    "PredictReport.nodes": "null: no node has several of the ranks, or the trace has no common clock",
    "timeline": "null: not asked for",
    "notes": "what to know before believing the figures",
    "paths": "files of the trace",
    "program": "as recorded; may be empty",
    "TraceReport.ranks": "ranks of the program",
    "ranks_studied": "ranks that were evaluated: those asked for that have events",
    "hosts": "nodes that the ranks ran on, as far as it was recorded",
    "clock": '"wall": gaps as they were; "cpu": gaps by the CPU time computed in them',
    "TraceReport.calls": "of the ranks studied",
    "run_time_s": "mean over the ranks studied, first call to last",
    "papers": "shorter than 20 us, up to 200 us, longer",
    "bins": "eight a decade from 100 ns on; empty ones at both ends are left out",
    "low_s": "shortest of the bin",
    "high_s": "the bin's gaps are shorter; null: no limit",
    "GapBin.count": "gaps",
    "time_s": "in these gaps",
    "count_share": "of all gaps",
    "time_share": "of the time in all gaps",
    "SweepPoint.threshold_s": "grouping threshold",
    "lead": "share of a predicted gap by which to wake earlier; null where there is no fixed one",
    "calls_predicted_share": "calls that were foreseen",
    "rest_share": "time at rest, of the run time",
    "rest_of_oracle_share": "time at rest, of what knowing every gap would give; above 1 where delays have bought more",
    "delay_share": "delay that late wake-ups caused, of the run time",
    "delay_worst_share": "highest that the delay so far ever was, of the time since the process began, on any rank",
    "delay_worst_s": "longest that one call was delayed",
    "RankWay.rank": "rank in MPI_COMM_WORLD",
    "calls": "MPI calls",
    "RankWay.threshold_s": "as tuned last; null where there is none",
    "name": "how the way is called in this study",
    "predictor": "one of oracle, last, pps, spps, adaptive",
    "WayReport.options": "every option that the predictor heeds, times in ns",
    "WayReport.threshold_s": "as given; null where the predictor has none or tunes it",
    "thresholds_s": "thresholds at the end, least, median and greatest over ranks; empty where there are none",
    "WayReport.gaps": "gaps that a rest fits into: longer than both transitions",
    "gaps_predicted_share": "of these, gaps that had a length predicted",
    "idle_s": "time in these gaps",
    "idle_predicted_share": "of this time, in gaps that had a length predicted",
    "rests": "times that the link was put to rest",
    "mispredictions": "rests that outlasted their gap",
    "rest_s": "time at rest, transitions left out",
    "delay_s": "delay that late wake-ups caused, sum over ranks",
    "searches": "pattern searches run",
    "restarts": "times that a predictor began anew: threshold tuned again, tables full",
    "memory_bytes": "memory of one rank's predictor",
    "cost_ns": "time per call in this predictor, measured side by side with the others; null: not measured",
    "WayReport.ranks": "the same by rank",
    "NodesReport.nodes": "ranks that share a link",
    "NodesReport.ways": "one for each way of the study",
    "NodeWay.rest_of_oracle_share": "time at rest, of what knowing every gap of all its ranks would give",
    "NodeWay.rest_share": "time at rest, of the run time, mean over nodes",
    "NodeWay.delay_share": "delay of all ranks, of the run time of all ranks",
    "delay_worst_rank_share": "delay of the rank that had most, of the run time",
    "PredictTimeline.rank": "whose calls these are",
    "start_ns": "beginning of the first gap on the trace's clock",
    "gap_ns": "time between the end of the call before, or start_ns, and the call",
    "call_ns": "length of the call",
    "PredictTimeline.operation": "index into operations",
    "operations": "names of MPI operations",
    "rows": "one for each way",
    "rest_ns": "rest that begins with the end of the call, 0: none",
    "expected_ns": "gap expected after the call, 0: none",
    "silence_ns": "silence after the call, at whose end a rest begins that lasts until the next call, 0: none",
}
"""By "Class.field", or by "field" where it means the same everywhere."""


def _meaning(kind: str, field: str) -> str:
    return _FIELDS.get(f"{kind}.{field}") or _FIELDS[field]


def build() -> dict[str, Any]:
    """The schema."""
    constants = {"schema": predict_model.SCHEMA, "version": predict_model.VERSION}
    return schema_tools.build(predict_model.PredictReport, "Fallow study of predictors", _meaning, constants)


def shipped() -> dict[str, Any]:
    """The schema as it is installed."""
    data: dict[str, Any] = json.loads(resources.files("fallow").joinpath(SCHEMA_FILE).read_text(encoding="utf-8"))
    return data


def markdown() -> str:
    """The documentation page."""
    return schema_tools.markdown(predict_model.PredictReport, _INTRODUCTION, _meaning)


def main(root: Path) -> None:
    """Writes both into a checkout."""
    text = json.dumps(build(), indent=1) + "\n"
    (root / "python/fallow" / SCHEMA_FILE).write_text(text, encoding="utf-8")
    (root / "docs/reference/predict-schema.md").write_text(markdown(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
