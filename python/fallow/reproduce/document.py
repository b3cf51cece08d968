"""A report as data: sections with text, tables and bars, written as Markdown or as a page."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from fallow.sim.page import assemble


@dataclass(frozen=True)
class Bars:
    """Groups of bars: one value a series in each group, None where there is none."""

    unit: str
    series: tuple[str, ...]
    groups: tuple[tuple[str, tuple[float | None, ...]], ...]


@dataclass
class Section:
    """One table or figure."""

    title: str
    text: list[str] = field(default_factory=list)
    header: tuple[str, ...] = ()
    rows: list[tuple[str, ...]] = field(default_factory=list)
    bars: Bars | None = None
    differences: list[str] = field(default_factory=list)


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
        if s.rows:
            out += ["| " + " | ".join(s.header) + " |", "|" + " --- |" * len(s.header)]
            out += ["| " + " | ".join(row) + " |" for row in s.rows]
            out.append("")
        if s.differences:
            out += ["Where they differ, and why:", "", *(f"- {d}" for d in s.differences), ""]
    if document.notes:
        out += ["## Notes", "", *(f"- {n}" for n in document.notes), ""]
    return "\n".join(out)


def _paragraphs(lines: list[str]) -> list[str]:
    return [part for line in lines for part in (line, "")]


def as_dict(document: Document) -> dict[str, Any]:
    """For the page and for programs."""
    return asdict(document)


def page(document: Document) -> str:
    """As one page that needs nothing but itself."""
    return assemble(document.title, as_dict(document), ("base.js", "document.js"))
