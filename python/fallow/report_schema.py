"""Makes the JSON Schema of a report and its documentation from the model: python -m fallow.report_schema DIR."""

from __future__ import annotations

import dataclasses
import json
import sys
import types
import typing
from pathlib import Path
from typing import Any

from fallow import model
from fallow.report_fields import meaning

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}


def _classes() -> list[type]:
    """The model's classes, in the order in which a reader meets them."""
    order: list[type] = []

    def visit(kind: Any) -> None:  # noqa: ANN401 - any type expression
        if dataclasses.is_dataclass(kind) and isinstance(kind, type):
            if kind in order:
                return
            order.append(kind)
            for hint in typing.get_type_hints(kind).values():
                visit(hint)
        for inner in typing.get_args(kind):
            visit(inner)

    visit(model.Report)
    return order


def _schema_of(hint: Any) -> dict[str, Any]:  # noqa: ANN401 - any type expression
    if isinstance(hint, types.UnionType):
        return {"anyOf": [_schema_of(inner) for inner in typing.get_args(hint)]}
    if hint is type(None):
        return {"type": "null"}
    origin = typing.get_origin(hint)
    if origin is list:
        return {"type": "array", "items": _schema_of(typing.get_args(hint)[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema_of(typing.get_args(hint)[1])}
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    return {"$ref": f"#/$defs/{hint.__name__}"}


def _object(kind: type) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    properties = {
        name: _schema_of(hint) | {"description": meaning(kind.__name__, name)} for name, hint in hints.items()
    }
    return {"type": "object", "description": kind.__doc__, "properties": properties, "required": list(hints)}


def build() -> dict[str, Any]:
    """The schema. Unknown fields are allowed, so that a new field does not break readers."""
    main, *others = _classes()
    body = _object(main)
    body["properties"]["schema"]["const"] = model.SCHEMA
    body["properties"]["version"]["const"] = model.VERSION
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Fallow report",
        **body,
        "$defs": {kind.__name__: _object(kind) for kind in others},
    }


def _type_name(hint: Any) -> str:  # noqa: ANN401 - any type expression
    if isinstance(hint, types.UnionType):
        return " or ".join(_type_name(inner) for inner in typing.get_args(hint))
    if hint is type(None):
        return "null"
    origin = typing.get_origin(hint)
    if origin is list:
        return f"list of {_type_name(typing.get_args(hint)[0])}"
    if origin is dict:
        return f"map to {_type_name(typing.get_args(hint)[1])}"
    return _PLAIN.get(hint) or f"[{hint.__name__}](#{hint.__name__.lower()})"


def markdown() -> str:
    """The documentation page."""
    out = [
        "# The report as JSON",
        "",
        "`fallow report RUN --json` prints one object of this form; with two runs, an object `reports` that is a list",
        "of two. The JSON Schema is installed as `fallow/schema/report-1.schema.json`. Names carry their unit: `_s`",
        "seconds, `_ns` nanoseconds, `_j` joules, `_js` joule-seconds, `_w` watts; a `share` is a fraction of one.",
        "This page is made from the program by `python -m fallow.report_schema`.",
    ]
    for kind in _classes():
        out += [
            "",
            f"## {kind.__name__}",
            "",
            kind.__doc__ or "",
            "",
            "| field | type | meaning |",
            "| --- | --- | --- |",
        ]
        for name, hint in typing.get_type_hints(kind).items():
            out.append(f"| `{name}` | {_type_name(hint)} | {meaning(kind.__name__, name)} |")
    return "\n".join(out) + "\n"


def dumps() -> str:
    """The schema as it is shipped."""
    return json.dumps(build(), indent=1) + "\n"


def main(root: Path) -> None:
    """Writes both into a checkout."""
    (root / "python/fallow/schema/report-1.schema.json").write_text(dumps(), encoding="utf-8")
    (root / "docs/reference/report-schema.md").write_text(markdown(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
