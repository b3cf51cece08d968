"""A report as data: sections with text, tables and bars, written as Markdown or as a page."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from fallow import report_html

_COLUMNS = 100
_SIGNS = ".#=~_"


@dataclass(frozen=True)
class Bars:
    """Groups of bars: one value a series in each group, None where there is none."""

    unit: str
    series: tuple[str, ...]
    groups: tuple[tuple[str, tuple[float | None, ...]], ...]


@dataclass(frozen=True)
class Strips:
    """Rows of states over time: each a label, the state between its spans, and its spans (from, to, state), in us."""

    caption: str
    states: tuple[str, ...]
    from_us: float
    to_us: float
    rows: tuple[tuple[str, int, tuple[tuple[float, float, int], ...]], ...]


@dataclass
class Section:
    """One table or figure."""

    title: str
    text: list[str] = field(default_factory=list)
    header: tuple[str, ...] = ()
    rows: list[tuple[str, ...]] = field(default_factory=list)
    bars: Bars | None = None
    differences: list[str] = field(default_factory=list)
    strips: list[Strips] = field(default_factory=list)


@dataclass
class Document:
    """The whole report."""

    title: str
    intro: list[str]
    sections: list[Section]
    notes: list[str]


def markdown(document: Document) -> str:
    """As Markdown."""
    out = [f"# {document.title}", "", *_paragraphs(document.intro)]
    for s in document.sections:
        out += [f"## {s.title}", "", *_paragraphs(s.text)]
        for strips in s.strips:
            out += [strips.caption, "", "```", *drawn(strips), "```", ""]
        if s.rows:
            out += ["| " + " | ".join(s.header) + " |", "|" + " --- |" * len(s.header)]
            out += ["| " + " | ".join(row) + " |" for row in s.rows]
            out.append("")
        if s.differences:
            out += ["Where they differ, and why:", "", *(f"- {d}" for d in s.differences), ""]
    if document.notes:
        out += ["## Notes", "", *(f"- {n}" for n in document.notes), ""]
    return "\n".join(out)


def drawn(strips: Strips) -> list[str]:
    """As lines of text: each character stands for the state that lasts longest in its share of the time."""
    each = (strips.to_us - strips.from_us) / _COLUMNS
    wide = max((len(label) for label, _, _ in strips.rows), default=0)
    lines = ["  ".join(f"{_SIGNS[i]} {name}" for i, name in enumerate(strips.states))]
    for label, between, spans in strips.rows:
        shares = [[0.0] * len(strips.states) for _ in range(_COLUMNS)]
        for begin, end, state in spans:
            first = max(0, math.floor((begin - strips.from_us) / each))
            for column in range(first, min(_COLUMNS, math.ceil((end - strips.from_us) / each))):
                left = strips.from_us + column * each
                shares[column][state] += max(0.0, min(end, left + each) - max(begin, left))
        for share in shares:
            share[between] += each - sum(share)
        lines.append(f"{label.rjust(wide)} " + "".join(_SIGNS[max(range(len(c)), key=c.__getitem__)] for c in shares))
    lines.append(f"{' ' * wide} {strips.from_us / 1000:.3f} ms to {strips.to_us / 1000:.3f} ms")
    return lines


def _paragraphs(lines: list[str]) -> list[str]:
    return [part for line in lines for part in (line, "")]


def as_dict(document: Document) -> dict[str, Any]:
    """For the page and for programs."""
    return asdict(document)


def page(document: Document) -> str:
    """As one page that needs nothing but itself."""
    return report_html.assemble(document.title, ("base.js", "document.js"), as_dict(document))
