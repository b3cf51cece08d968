"""What terminal reports of one run and of many have in common: headlines, bars of states, what the model assumes."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from fallow import text
from fallow.model import Residency
from fallow.text import Style

LABELS = 31
"""Columns of a headline before what is said of its figure."""

Figure = tuple[str, str, *tuple[tuple[str, ...], ...]]
"""What it is called, its value, and what is said of it: each with its colours."""


def headline(figures: Iterable[Figure], style: Style) -> Iterator[str]:
    """The few numbers that matter most, a line each; on narrow terminals what is said of them goes on below."""
    for label, value, *more in figures:
        first = f"  {label:<15}{style.paint(f'{value:>12}', 'bold')}"
        joined = "; ".join(words for words, *_ in more)
        if not style.breaks or LABELS + len(joined) <= style.width:
            yield f"{first}  {'; '.join(style.paint(*part) for part in more)}".rstrip()
            continue
        yield first
        for words, *colour in more:
            yield from (style.paint(x, *colour) for x in text.paragraph(words, style, "      ", "      "))


def share_bar(share: float, style: Style) -> str:
    """A share of one, to stand beside its figure in a headline."""
    return style.bar(share, min(24, max(4, style.width - LABELS)) if style.breaks else 24).rstrip()


def less(energy_j: float, spinning_j: float) -> str:
    """How much less energy than without sleep, or more: delays cost the whole node."""
    share = 1 - energy_j / spinning_j if spinning_j > 0 else 0.0
    return f"{text.percent(share)} less" if share > -0.0005 else f"{text.percent(-share)} more"


def states(style: Style) -> str:
    """What the marks of a stack stand for."""
    marks = "█ computing  ▓ MPI work  ▒ waiting awake  · asleep  ~ I/O"
    return marks if style.unicode else "# computing  = MPI work  + waiting awake  . asleep  ~ I/O"


def stack(r: Residency, width: int, style: Style) -> str:
    """Computing, MPI work, awake, asleep and I/O as one bar."""
    marks = "█▓▒·~" if style.unicode else "#=+.~"
    colours = ("blue", "cyan", "red", "green", "yellow")
    parts = (r.computing_s, r.transfer_s, r.wait_awake_s, r.wait_asleep_s, r.io_s)
    total = r.total_s or 1.0
    out, at, done = "", 0, 0.0
    for mark, colour, part in zip(marks, colours, parts, strict=True):
        done += part
        end = round(done / total * width)
        out += style.paint(mark * (end - at), colour)
        at = end
    return out + " " * (width - at)


def assumptions(lines: Iterable[str], style: Style) -> Iterator[str]:
    """What the model takes for granted."""
    for assumption in lines:
        wrapped = textwrap.wrap(style.safe(assumption), style.width - 4)
        yield from (style.paint(f"  {'- ' if i == 0 else '  '}{x}", "dim") for i, x in enumerate(wrapped))
