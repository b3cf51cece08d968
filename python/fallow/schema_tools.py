"""JSON Schema and documentation of a tree of dataclasses, made from the classes themselves."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}

Meaning = Callable[[str, str], str]
"""What a field means, by class and name; KeyError where nobody wrote it down."""


def classes(root: type) -> list[type]:
    """The classes under `root`, itself first, in the order in which a reader meets them."""
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

    visit(root)
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


def _object(kind: type, meaning: Meaning) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    properties = {
        name: _schema_of(hint) | {"description": meaning(kind.__name__, name)} for name, hint in hints.items()
    }
    return {"type": "object", "description": kind.__doc__, "properties": properties, "required": list(hints)}


def build(root: type, title: str, meaning: Meaning, constants: dict[str, object]) -> dict[str, Any]:
    """The schema. `constants`: what fields of `root` always are. Unknown fields are allowed, for later ones."""
    main, *others = classes(root)
    body = _object(main, meaning)
    for name, value in constants.items():
        body["properties"][name]["const"] = value
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **body,
        "$defs": {kind.__name__: _object(kind, meaning) for kind in others},
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


def markdown(root: type, introduction: Sequence[str], meaning: Meaning) -> str:
    """The documentation page: the lines of the introduction, then a table for each class."""
    out = list(introduction)
    for kind in classes(root):
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
