"""Plain-text output: numbers with units, tables, bars; colours only on a terminal that wants them."""

from __future__ import annotations

import math
import os
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TextIO

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
_NARROWEST = 40  # columns; a narrower terminal breaks lines by itself
_INDENT = 2  # columns before a table
_GAP = 2  # columns between its columns
_EXACT = Context(prec=400, rounding=ROUND_HALF_UP)  # digits before the point of any number, and some after it
_THREE = Context(prec=3, rounding=ROUND_HALF_UP)
_EIGHTHS = " ▏▎▍▌▋▊▉█"


@dataclass(frozen=True)
class Style:
    """How to write to one stream."""

    colour: bool
    unicode: bool
    width: int
    breaks: bool = True  # long notes and wide tables; not in files and pipes, where they are searched

    @classmethod
    def of(cls, stream: TextIO) -> Style:
        """The style that suits a stream: NO_COLOR, TERM=dumb and pipes get none."""
        tty = stream.isatty()
        wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        encoding = (getattr(stream, "encoding", None) or "").lower()
        width = shutil.get_terminal_size((100, 24)).columns if tty else 112
        return cls(tty and wanted, "utf" in encoding, max(_NARROWEST, min(width, 160)), tty)

    def paint(self, text: str, *names: str) -> str:
        """The text in the given colours."""
        if not self.colour or not names:
            return text
        return f"\x1b[{';'.join(_CODES[n] for n in names)}m{text}\x1b[0m"

    def bar(self, share: float, width: int) -> str:
        """A bar that fills `share` of `width` columns."""
        share = min(max(share, 0.0), 1.0)
        if not self.unicode:
            return ("#" * round(share * width)).ljust(width, ".")
        eighths = round(share * width * 8)
        full, rest = divmod(eighths, 8)
        return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(width)

    def safe(self, text: str) -> str:
        """The text as far as the stream can show it; control characters never."""
        clean = "".join(c if c.isprintable() else "?" for c in text)
        return clean if self.unicode else clean.encode("ascii", "replace").decode()


def fixed(value: float, digits: int) -> str:
    """So many digits after the point. Halves go away from zero, here and below, as in pages."""
    if not math.isfinite(value):
        return f"{value:.{digits}f}"
    return f"{Decimal(value).quantize(Decimal(1).scaleb(-digits), context=_EXACT):f}"


def _digits(value: float) -> str:
    """Three significant digits of a number up to 1000, which rounding may reach."""
    return f"{_rounded(value):g}"


def _rounded(value: float) -> float:
    return float(_THREE.create_decimal_from_float(value))


def seconds(value: float) -> str:
    """A duration in the unit that suits it as it is written: 1 ms, not 1000 us."""
    size = abs(value)
    if size == 0:
        return "0 s"
    for scale, unit in ((1e9, "ns"), (1e6, "us"), (1e3, "ms")):
        if _rounded(size * scale) < 1000:
            return f"{_digits(value * scale)} {unit}"
    if size < 99.95:
        return f"{_digits(value)} s" if size < 9.995 else f"{fixed(value, 1)} s"
    if size < 3597:  # 59.95 min
        return f"{fixed(value, 0)} s" if size < 599.5 else f"{fixed(value / 60, 1)} min"
    return f"{fixed(value / 3600, 2)} h"


def percent(share: float, digits: int = 1) -> str:
    """A share of one as a percentage; what rounds to nothing has no sign."""
    shown = fixed(share * 100, digits)
    return f"{shown if shown.strip('-0.') else shown.removeprefix('-')} %"


def size(value: float) -> str:
    """A number of bytes."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"):
        if abs(value) < (1023.5 if unit == "B" else 1023.95) or unit == "EiB":
            return f"{fixed(value, 0 if unit == 'B' else 1)} {unit}"
        value /= 1024
    raise AssertionError


def plural(number: int, what: str) -> str:
    """'1 rank', '4 ranks'."""
    return f"{count(number)} {what}" + ("" if number == 1 else "s")


def processors(number: float) -> str:
    """'1 processor', '1.5 processors'."""
    return f"{number:.3g} processor" + ("" if number == 1 else "s")


def count(value: float) -> str:
    """A number of things, thousands set apart."""
    return f"{value:,.0f}".replace(",", " ")


def _three_digits(value: float, unit: str) -> str:
    """Three significant digits in `unit`, or in thousandths or millionths of it."""
    size = abs(value)
    for scale, prefix in ((1e6, "u"), (1e3, "m")):
        if size > 0 and _rounded(size * scale) < 1000:
            return f"{_digits(value * scale)} {prefix}{unit}"
    return f"{_digits(value)} {unit}" if size < 9.995 else f"{fixed(value, 1)} {unit}"


def joules(value: float) -> str:
    """An energy."""
    if abs(value) >= 3_599_995:  # 3600.00 kJ
        return f"{fixed(value / 3.6e6, 2)} kWh"
    return f"{fixed(value / 1000, 2)} kJ" if abs(value) >= 9999.95 else _three_digits(value, "J")


def joule_seconds(value: float) -> str:
    """An energy times a delay."""
    for scale, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 0.99995 * scale:  # 1000.0 of the unit below
            return f"{fixed(value / scale, 2 if abs(value) < 9.995 * scale else 1)} {prefix}J s"
    return _three_digits(value, "J s")


def _alike(cells: Sequence[str], width: int) -> bool:
    """Whether cells that differ begin with the same characters, as far as these are shown."""
    return len({cell[:width] if len(cell) > width + 1 else cell for cell in cells}) < len(set(cells))


def _shortened(cell: str, width: int, mark: str) -> str:
    """The cell's beginning, and of a place in a program without symbols ("liblmp.so.0+0x1a2b") where that is."""
    if len(cell) <= width:
        return cell
    name, plus, offset = cell.rpartition("+0x")
    tail = plus + offset if name and len(plus + offset) < width // 2 else ""
    return cell[: width - 1 - len(tail)] + mark + tail


def _parts(widths: Sequence[int], left: int, room: int) -> list[list[int]]:
    """Columns that stand side by side in `room`: the first `left` again and again, with as many others as fit."""
    head = list(range(left))
    parts = [list(head)]
    for column in range(left, len(widths)):
        taken = sum(widths[c] + _GAP for c in parts[-1]) + widths[column]
        if taken > room and len(parts[-1]) > left:
            parts.append(list(head))
        parts[-1].append(column)
    return parts


def table(
    header: Sequence[str], rows: Sequence[Sequence[str]], style: Style, left: int = 1, *, apart: bool = False
) -> list[str]:
    """Lines of a table that is to be indented by two columns: the first `left` columns flush left, the others flush
    right; the first is shortened, with `apart` only as far as its cells can still be told apart. What is still too
    wide for a terminal goes on below, with the first `left` columns again."""
    if not rows:
        return []
    columns = list(zip(header, *rows, strict=True))
    widths = [max(len(cell) for cell in column) for column in columns]
    room = style.width - _INDENT
    spare = room - (sum(widths) + _GAP * (len(widths) - 1))
    if spare < 0:
        full, widths[0] = widths[0], min(widths[0], max(16, widths[0] + spare))
        while apart and widths[0] < full and _alike(columns[0], widths[0] - 1):
            widths[0] += 1

    def line(cells: Sequence[str], part: Sequence[int]) -> str:
        out = []
        for i in part:
            cell, width = cells[i], widths[i]
            shown = _shortened(cell, width, "…" if style.unicode else "~")
            out.append(shown.ljust(width) if i < left else shown.rjust(width))
        return (" " * _GAP).join(out).rstrip()

    lines: list[str] = []
    for part in _parts(widths, left, room) if style.breaks else [range(len(widths))]:
        lines += [style.paint(line(header, part), "dim"), *(line(row, part) for row in rows)]
    return lines


def measured_and_modelled(header: Sequence[str], rows: Sequence[Sequence[str]], style: Style) -> Iterator[str]:
    """Lines of two tables, indented, so that no column has both: of what was measured, and of the rows whose first
    cell ends in ", modelled"."""
    end = ", modelled"
    measured = [row for row in rows if not row[0].endswith(end)]
    modelled = [[row[0].removesuffix(end), *row[1:]] for row in rows if row[0].endswith(end)]
    for title, part in (("measured", measured), ("modelled", modelled)):
        if part is modelled and measured and modelled:
            yield ""
        yield from (f"{' ' * _INDENT}{line}" for line in table([title, *header], part, style))


def paragraph(words: str, style: Style, first: str = "", then: str = "") -> list[str]:
    """The words in lines that fit, the first one after `first`, the others after `then`."""
    return textwrap.wrap(
        words, style.width, initial_indent=first, subsequent_indent=then, break_on_hyphens=False, break_long_words=False
    )


def note(words: str, style: Style, first: str, then: str = "    ") -> list[str]:
    """A message as a paragraph on a terminal, elsewhere as one line."""
    return paragraph(words, style, first, then) if style.breaks else [first + words]
