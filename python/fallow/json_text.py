"""JSON that people can read and that is soon written: a row of numbers and names, or a list of numbers, is a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

_NUMBERS = frozenset((int, float, bool, type(None)))
_PLAIN = _NUMBERS | {str}
_line = json.JSONEncoder(allow_nan=False).encode  # by C, which does not indent


def _is_line(value: Any, *, row: bool) -> bool:  # noqa: ANN401
    if not value or not isinstance(value, dict | list | tuple):
        return True
    if isinstance(value, dict):
        return row and _PLAIN.issuperset(map(type, value.values()))
    return (_PLAIN if row else _NUMBERS).issuperset(map(type, value))


def _parts(value: Any, indent: str, *, row: bool) -> Iterator[str]:  # noqa: ANN401
    """`row`: it is one of a list."""
    if _is_line(value, row=row):
        yield _line(value)
        return
    deeper = indent + " "
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    before = opening + "\n"
    for item in value:
        yield before + deeper
        before = ",\n"
        if isinstance(value, dict):
            yield _line(str(item)) + ": "
            yield from _parts(value[item], deeper, row=False)
        else:
            yield from _parts(item, deeper, row=True)
    yield f"\n{indent}{closing}"


def dumps(data: Any) -> str:  # noqa: ANN401
    """`data`, of dictionaries, lists and what they hold, as JSON. ValueError: a number is none that JSON has."""
    return "".join(_parts(data, "", row=False))
