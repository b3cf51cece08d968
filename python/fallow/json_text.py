"""JSON that people can read and that is soon written: what holds nothing but numbers and names stands on one line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

_PLAIN = frozenset((str, int, float, bool, type(None)))
_line = json.JSONEncoder().encode  # by C, which does not indent


def _is_flat(value: Any) -> bool:  # noqa: ANN401
    if isinstance(value, dict):
        return _PLAIN.issuperset(map(type, value.values()))
    return not isinstance(value, list | tuple) or _PLAIN.issuperset(map(type, value))


def _parts(value: Any, indent: str, *, inside: bool) -> Iterator[str]:  # noqa: ANN401
    """`inside`: it is one of a list."""
    if not value or not isinstance(value, dict | list | tuple) or (inside and _is_flat(value)):
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
            yield from _parts(value[item], deeper, inside=False)
        else:
            yield from _parts(item, deeper, inside=True)
    yield f"\n{indent}{closing}"


def dumps(data: Any) -> str:  # noqa: ANN401
    """`data`, of dictionaries, lists and what they hold, as JSON."""
    return "".join(_parts(data, "", inside=False))
