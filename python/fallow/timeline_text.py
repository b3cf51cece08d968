"""The timeline as characters: one line a thread, one column a slice of time."""

from __future__ import annotations

from collections.abc import Iterator

from fallow import text
from fallow.model import Timeline, TimelineRow
from fallow.text import Style

MAX_ROWS = 16
_STATES = ("computing", "transfer", "awake", "asleep", "io")
_COLOURS = ("blue", "cyan", "red", "green", "yellow")
_MARKS = ("█", "▓", "▒", "·", "~")
_ASCII = ("#", "=", "+", ".", "~")

Piece = tuple[int, int, int]
"""Start, end, index into _STATES."""


def pieces(row: TimelineRow, kinds: list[str]) -> Iterator[Piece]:
    """What a thread did, from its first shown call to its last. A wait is drawn first awake, then asleep."""
    at = row.events[0][0] if row.events else 0
    for enter, duration, function, awake_us, asleep_us, _peer, _size in row.events:
        leave = enter + duration
        if enter > at:
            yield at, enter, 0
        if kinds[function] == "io":
            yield enter, leave, 4
        else:
            awake_end = min(leave, enter + awake_us * 1000)
            asleep_end = min(leave, awake_end + asleep_us * 1000)
            yield enter, awake_end, 2
            yield awake_end, asleep_end, 3
            yield asleep_end, leave, 1
        at = leave


def _columns(row: TimelineRow, kinds: list[str], begin: int, end: int, width: int) -> list[int | None]:
    """The state that fills most of each column; None where nothing is known."""
    step = max(1.0, (end - begin) / width)
    filled = [[0.0] * len(_STATES) for _ in range(width)]
    for start, stop, state in pieces(row, kinds):
        low, high = max(start, begin), min(stop, end)
        if low >= high:
            continue
        first, last = int((low - begin) / step), min(width - 1, int((high - begin) / step))
        for column in range(first, last + 1):
            left, right = begin + column * step, begin + (column + 1) * step
            filled[column][state] += max(0.0, min(high, right) - max(low, left))
    return [max(range(len(c)), key=c.__getitem__) if any(c) else None for c in filled]


def window(timeline: Timeline) -> tuple[int, int, bool]:
    """The stretch of time that is drawn, and whether all threads have a part in it; they may share none."""
    rows = [row for row in timeline.rows if row.events]
    if not rows:
        return 0, 0, False
    starts = [row.events[0][0] for row in rows]
    ends = [row.events[-1][0] + row.events[-1][1] for row in rows]
    begin, end = max(starts), max(ends)
    return (begin, end, True) if begin < min(ends) else (min(starts), end, False)


def lines(timeline: Timeline, style: Style) -> Iterator[str]:
    """The picture."""
    begin, end, shared = window(timeline)
    length = text.seconds((end - begin) * 1e-9)
    what = f"   the last {length}, from where every rank's record reaches" if shared else f"   all {length} recorded"
    yield style.paint("Timeline", "bold") + style.paint(what, "dim")
    marks = _MARKS if style.unicode else _ASCII
    width = style.width - 12
    for row in timeline.rows[:MAX_ROWS]:
        out = ""
        for state in _columns(row, timeline.kinds, begin, end, width):
            out += " " if state is None else style.paint(marks[state], _COLOURS[state])
        yield f"  {row.label:>6}  {out}"
    if len(timeline.rows) > MAX_ROWS:
        yield style.paint(f"  the first {MAX_ROWS} of {text.count(len(timeline.rows))}", "dim")
