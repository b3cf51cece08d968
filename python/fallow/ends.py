"""Where ranks were that did not reach the end of their program. Of a program that hangs that is what one looks for."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fallow import text
from fallow.model import OpenWait, Place, RankReport

_MOST_RANGES = 8  # of ranks at one place that are written out
_SHORTEST_RANGE = 3


@dataclass(frozen=True)
class _Where:
    """What ranks have in common that are told together."""

    how: str
    state: str  # of those that do not wait
    function: str
    place: Place


def _how(row: RankReport) -> str:
    if row.end == "aborted":
        return "called MPI_Abort; {their} record{s} end{v} there"
    if row.is_written:
        return "{are} still running"
    return "{are} still running, or {were} killed" if row.end == "running" else "did not reach MPI_Finalize"


def _where(row: RankReport) -> _Where:
    how = _how(row)
    if row.end == "aborted":
        return _Where(how, "", "", Place())
    if row.open_wait is not None:
        return _Where(how, "", row.open_wait.function, row.open_wait.place)
    if row.last_call is not None:
        return _Where(how, row.last_state, row.last_call.function, row.last_call.place)
    return _Where(how, row.last_state, "", Place())


def _ranges(labels: Sequence[str]) -> str:
    """'0, 2-5, 7' of labels in order; with a program's number before each, '1:0, 1:2-5'."""
    parts: list[str] = []
    split = [(*label.rpartition(":")[:2], int(label.rpartition(":")[2])) for label in labels]
    for _, run in itertools.groupby(enumerate(split), lambda pair: (pair[1][0], pair[1][2] - pair[0])):
        members = [f"{program}{colon}{rank}" for _, (program, colon, rank) in run]
        if len(members) < _SHORTEST_RANGE:
            parts += members
        else:
            parts.append(f"{members[0]}-{members[-1].rpartition(':')[2]}")
    shown = ", ".join(parts[:_MOST_RANGES])
    return shown + (", ..." if len(parts) > _MOST_RANGES else "")


def _called(place: Place) -> str:
    if not place.symbol:
        return ""
    return f", called from {place.symbol}" + (f" ({Path(place.source).name})" if place.source else "")


def _span(times: list[float]) -> str:
    first, last = text.seconds(min(times)), text.seconds(max(times))
    return f"{first} after the start" if first == last else f"{first} to {last} after the start"


def _told_of_waits(where: _Where, rows: list[RankReport], waits: list[OpenWait], their: str) -> str:
    peers, sizes = {wait.peer for wait in waits}, {wait.comm_size for wait in waits}
    doing = " or ".join(sorted({row.last_state.replace("_", " ") for row in rows}))
    among = f" among {text.plural(max(sizes), 'rank')}" if peers == {-1} and len(sizes) == 1 and max(sizes) > 0 else ""
    peer = f", for rank {max(peers)} of {their} communicator" if len(peers) == 1 and max(peers) >= 0 else ""
    begun = _span([wait.since_s for wait in waits])
    return f"{doing} in {where.function}{among}{_called(where.place)}, begun {begun}{peer}"


def _told(where: _Where, rows: list[RankReport]) -> str:
    """A sentence of ranks at one place."""
    one = len(rows) == 1
    words = {"are": "is", "were": "was", "their": "its", "s": "", "v": "s"} if one else {
        "are": "are", "were": "were", "their": "their", "s": "s", "v": "",
    }  # fmt: skip
    they = "it was" if one else "they were"
    who = f"rank {rows[0].label}" if one else f"{text.count(len(rows))} ranks ({_ranges([row.label for row in rows])})"
    said = f"{who} {where.how.format(**words)}"
    waits = [row.open_wait for row in rows if row.open_wait is not None]
    if where.function and waits:
        return f"{said} ({they} {_told_of_waits(where, rows, waits, words['their'])})"
    if where.state not in ("", "none"):
        said += f" ({they} {where.state.replace('_', ' ')})"
    ended = [row.last_call.ended_s for row in rows if row.last_call is not None]
    if where.function and ended:
        last = f"{where.function}{_called(where.place)}, which ended {_span(ended)}"
        return f"{said}; the last call on {words['their']} record{words['s']} is {last}"
    return said


def told(rows: Iterable[RankReport]) -> list[str]:
    """A sentence for each place at which ranks were, those that called MPI_Abort first, then where fewest were."""
    groups: dict[_Where, list[RankReport]] = {}
    for row in rows:
        if row.end != "finalized":
            groups.setdefault(_where(row), []).append(row)
    order = sorted(groups.items(), key=lambda item: (item[1][0].end != "aborted", len(item[1])))
    return [_told(*item) for item in order]
