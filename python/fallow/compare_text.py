"""A comparison for the terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from fallow import stats, text
from fallow.compare import Comparison, Metric
from fallow.text import Style, fixed


def _value(value: float, unit: str) -> str:
    if unit == "J":
        return text.joules(value)
    if unit == "J s":
        return text.joule_seconds(value)
    return text.seconds(value)


def _range(low: str, high: str) -> str:
    """Two figures, with the unit once where they share it."""
    low_number, _, low_unit = low.partition(" ")
    _, _, high_unit = high.partition(" ")
    return f"{low_number if low_unit == high_unit else low} .. {high}"


def _spread(s: stats.Spread | None, unit: str) -> tuple[str, str]:
    if s is None:
        return "-", ""
    return _value(s.median, unit), _range(_value(s.low, unit), _value(s.high, unit))


def _ratio(metric: Metric) -> tuple[str, str]:
    r = metric.ratio
    return ("", "") if r is None else (fixed(r.median, 3), f"{fixed(r.low, 3)} .. {fixed(r.high, 3)}")


def notes(c: Comparison) -> list[str]:
    """How its figures were come by."""
    told = []
    methods = {m.ratio.method for m in c.metrics if m.ratio is not None}
    if methods:
        how = {
            "bootstrap 95 %": "95 % interval by bootstrap of the medians",
            "min..max": "smallest to largest that these runs allow; more runs give an interval",
        }
        told.append("spread of a ratio: " + "; ".join(how[m] for m in sorted(methods)))
    told.append("waits are known of runs with Fallow only; CPU time is the command's with all its ranks")
    told += [f"metered: {coverage}" for coverage in sorted({t.metered_coverage for t in c.trials} - {""})]
    if any(t.spinning_w is not None for t in c.trials):
        told.append("modelled without Fallow: the power of the runs with it, had every wait been awake, times run time")
        told.append("what the model assumes: in the report of each run with Fallow")
    return told


def lines(c: Comparison, style: Style) -> Iterator[str]:
    """The table, its warnings, and where more is."""
    times = [side for m in c.metrics if m.name == "run time" for side in (m.bare, m.fallow)] or [None, None]
    pairs = [side.n if side is not None else 0 for side in times]  # without a run that was interrupted
    yield style.paint(style.safe(shlex.join(c.command)), "bold")
    yield style.paint(f"runs: {pairs[0]} without and {pairs[1]} with Fallow, alternating; medians and ranges", "dim")
    yield ""
    header = ["without", "range", "with Fallow", "range", "ratio", "its spread"]
    rows = [[m.name, *_spread(m.bare, m.unit), *_spread(m.fallow, m.unit), *_ratio(m)] for m in c.metrics]
    yield from text.measured_and_modelled(header, rows, style)
    for words in notes(c):
        yield from (style.paint(line, "dim") for line in text.note(words, style, "  "))
    for warning in c.warnings:
        yield from (style.paint(line, "yellow") for line in text.note(style.safe(warning), style, "  ! "))
