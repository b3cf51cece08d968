"""Which MPI functions Fallow treats, and how: from the lists that are written when the wrappers are made."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fallow import native
from fallow.errors import UserError, reason

FAMILIES = ("openmpi", "mpich", "mpiabi")


@dataclass(frozen=True)
class Function:
    """One function of an MPI and its treatment."""

    name: str
    kind: str
    blocks: bool
    treatment: str
    why: str


def _read(path: Path) -> list[Function]:
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        return [Function(r["name"], r["kind"], bool(r["blocks"]), r["treatment"], r["why"]) for r in rows]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: {reason(error)}") from None


def load(family: str | None) -> dict[str, list[Function]]:
    """The lists by family; UserError where there is none."""
    wanted = FAMILIES if family is None else (family,)
    found = {f: path for f in wanted if (path := native.library(f"coverage-{f}.json")) is not None}
    if not found:
        what = family or "any MPI"
        raise UserError(f"no coverage list of {what} is installed; was its runtime built?")
    return {f: _read(path) for f, path in found.items()}


def treatments(functions: list[Function]) -> dict[str, int]:
    """How many functions get each treatment, most first."""
    counts: dict[str, int] = {}
    for function in functions:
        counts[function.treatment] = counts.get(function.treatment, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def by_kind(functions: list[Function]) -> Iterator[tuple[str, list[Function]]]:
    """Functions grouped by kind; those that may block come first."""
    kinds: dict[str, list[Function]] = {}
    for function in functions:
        kinds.setdefault(function.kind, []).append(function)
    order = sorted(kinds, key=lambda kind: (-sum(f.blocks for f in kinds[kind]) / len(kinds[kind]), kind))
    for kind in order:
        yield kind, sorted(kinds[kind], key=lambda f: f.name)
