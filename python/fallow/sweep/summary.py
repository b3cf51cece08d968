"""What a study shows, by policy: for the terminal, and as one page that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from fallow import report_html
from fallow.sim.model import COMPONENT_NAMES
from fallow.text import Style, percent, table

_SCRIPTS = ("base.js", "sweep.js")
_WORDS = ("program", "platform", "policy")
_PREFIXES = ("synth_", "machine_", "option_")

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Policy:
    """All points of a policy and a way in which cores wait, against always-on: shares of its run time and energy."""

    name: str
    points: int
    slowdown: float
    """Median."""
    slowdown_worst: float
    saved_edge_links: float | None
    """Median; None where edge links draw nothing."""
    saved_total: float | None
    """Median, of all that is modelled."""


def policy_of(row: Row) -> str:
    """Its policy's name, and how cores wait under it where the study says."""
    cores = row.get("option_core")
    return f"{row['policy']}, cores {cores}" if cores else str(row["policy"])


def _middle(rows: Sequence[Row], key: str) -> float | None:
    values = [row[key] for row in rows if row.get(key) is not None]
    return median(values) if values else None


def by_policy(rows: Sequence[Row]) -> list[Policy]:
    """In the order in which the study names them; always-on is what they are compared with."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row.get("slowdown") is not None and policy_of(row) != "always-on":
            found.setdefault(policy_of(row), []).append(row)
    return [
        Policy(
            name,
            len(of),
            median(row["slowdown"] for row in of),
            max(row["slowdown"] for row in of),
            _middle(of, "saved_edge_links"),
            _middle(of, "saved_total"),
        )
        for name, of in found.items()
    ]


def lines(rows: Sequence[Row], style: Style) -> Iterator[str]:
    """A table of medians."""

    def share(value: float | None) -> str:
        return "-" if value is None else percent(value)

    header = ["policy", "points", "saved, edge links", "saved, all", "slowdown", "worst"]
    body = [
        [
            p.name, str(p.points), share(p.saved_edge_links), share(p.saved_total),
            percent(p.slowdown, 3), percent(p.slowdown_worst, 3),
        ]
        for p in by_policy(rows)
    ]  # fmt: skip
    if body:
        yield "  modelled, medians of each policy's points against always-on:"
    yield from (f"  {line}" for line in table(header, body, style))


def _varying(rows: Sequence[Row]) -> list[str]:
    """What tells the points apart: columns of the study's words with more than one value."""
    names = dict.fromkeys(key for row in rows for key in row if key in _WORDS or key.startswith(_PREFIXES))
    return [key for key in names if key == "policy" or len({row.get(key) for row in rows}) > 1]


def _with_ranks(row: Row) -> Row:
    """Recorded programs have their ranks from the trace, where made-up ones have them from the study."""
    return row if row.get("ranks") is None else {**row, "synth_ranks": row["ranks"]}


def page(name: str, rows: Sequence[Row], results: str) -> str:
    """The whole page."""
    rows = [_with_ranks(row) for row in rows]
    components = {"total": "all", **COMPONENT_NAMES}
    data = {
        "name": name,
        "results": results,
        "rows": [{**row, "policy_name": policy_of(row)} for row in rows],
        "policies": [asdict(policy) for policy in by_policy(rows)],
        "varying": _varying(rows),
        "components": {key: title for key, title in components.items() if any(f"saved_{key}" in row for row in rows)},
    }
    return report_html.assemble(f"Fallow: {name}", _SCRIPTS, data)
