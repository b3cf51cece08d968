"""JSON files of ours that may be cut, damaged or of another make: read whole, or refused with what is wrong where."""

from __future__ import annotations

import dataclasses
import json
import math
import types
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from fallow import files
from fallow.errors import UserError

T = TypeVar("T")

_NAMES = {float: "a number", int: "an integer", bool: "true or false", str: "a text"}


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no JSON number")


def read(path: Path) -> dict[str, Any]:
    """The object that the file holds; UserError where it cannot be read or is none."""
    try:
        data = json.loads(files.text(path, 1 << 30), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not JSON: {error}") from None
    if not isinstance(data, dict):
        raise UserError(f"{path}: not a JSON object")
    return data


def build(kind: type[T], data: dict[str, Any], where: str = "") -> T:
    """A dataclass made of an object, whose values are checked against the types of the fields.

    Fields may be plain values, dataclasses, lists, dictionaries and `X | None` of these; keys without a field are left
    out. Raises ValueError with the place of what does not fit.
    """
    hints = get_type_hints(kind)
    found = {}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]  # of dataclasses alone
        here = f"{where}.{field.name}" if where else field.name
        if field.name in data:
            found[field.name] = _value(hints[field.name], data[field.name], here)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ValueError(f"{here} is missing")
    return kind(**found)


def _refuse(where: str, value: object, wanted: str) -> ValueError:
    shown = repr(value)
    return ValueError(f"{where} is {shown if len(shown) <= 40 else shown[:37] + '...'}, not {wanted}")


def _plain(kind: type, value: object, where: str) -> object:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value) if abs(value) < 1 << 1000 else math.inf
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _refuse(where, value, _NAMES[kind])
    if isinstance(value, float) and not math.isfinite(value):
        raise _refuse(where, value, _NAMES[kind])
    return value


def _value(kind: Any, value: object, where: str) -> object:  # noqa: ANN401 - types as get_type_hints tells them
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        (other,) = (a for a in arguments if a is not types.NoneType)
        return None if value is None else _value(other, value, where)
    if origin is list:
        if not isinstance(value, list):
            raise _refuse(where, value, "a list")
        return [_value(arguments[0], v, f"{where}[{i}]") for i, v in enumerate(value)]
    if origin is not dict and not dataclasses.is_dataclass(kind):
        return _plain(kind, value, where)
    if not isinstance(value, dict):
        raise _refuse(where, value, "an object")
    if origin is dict:
        return {key: _value(arguments[1], v, f"{where}.{key}") for key, v in value.items()}
    return build(kind, value, where)
