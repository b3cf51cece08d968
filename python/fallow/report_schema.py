"""Makes the JSON Schema of a report and its documentation from the model: python -m fallow.report_schema DIR."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from fallow import model, schema_tools
from fallow.report_fields import meaning

_INTRODUCTION = (
    "# The report as JSON",
    "",
    "`fallow report RUN --json` prints one object of this form; with two runs, an object `reports` that is a list",
    "of two. The JSON Schema is installed as `fallow/schema/report-1.schema.json`. Names carry their unit: `_s`",
    "seconds, `_ns` nanoseconds, `_j` joules, `_js` joule-seconds, `_w` watts; a `share` is a fraction of one.",
    "This page is made from the program by `python -m fallow.report_schema`.",
)


def build() -> dict[str, Any]:
    """The schema."""
    constants = {"schema": model.SCHEMA, "version": model.VERSION}
    return schema_tools.build(model.Report, "Fallow report", meaning, constants)


def markdown() -> str:
    """The documentation page."""
    return schema_tools.markdown(model.Report, _INTRODUCTION, meaning)


def dumps() -> str:
    """The schema as it is shipped."""
    return json.dumps(build(), indent=1) + "\n"


def main(root: Path) -> None:
    """Writes both into a checkout."""
    (root / "python/fallow/schema/report-1.schema.json").write_text(dumps(), encoding="utf-8")
    (root / "docs/reference/report-schema.md").write_text(markdown(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
