"""Two runs side by side, for the terminal."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fallow import report_text, text
from fallow.model import Report
from fallow.text import Style


@dataclass(frozen=True)
class Row:
    """One quantity of both runs."""

    label: str
    of: Callable[[Report], float | None]
    show: Callable[[float], str]
    alike: Callable[[Report], object] = lambda _: None
    """Where this differs, the figures are of different things and have no ratio."""


def _metered(report: Report) -> float | None:
    return report.energy.metered.energy_j if report.energy.metered else None


def _kinds(report: Report) -> list[str]:
    """What the metered energy is of."""
    metered = report.energy.metered
    return sorted({d.kind for d in metered.domains if d.counted}) if metered else []


def _modelled(report: Report) -> float | None:
    return report.energy.modelled.energy_j if report.energy.modelled else None


def _delay_metered(report: Report) -> float | None:
    return report.energy.metered.energy_delay_js if report.energy.metered else None


def _delay_modelled(report: Report) -> float | None:
    return report.energy.modelled.energy_delay_js if report.energy.modelled else None


ROWS = (
    Row("run time", lambda r: r.totals.run_time_s, text.seconds),
    Row("ranks", lambda r: r.totals.ranks, text.count),
    Row("MPI calls", lambda r: r.totals.calls, text.count),
    Row("in MPI", lambda r: r.totals.mpi_share, text.percent),
    Row("core time", lambda r: r.totals.core_time_s, text.seconds),
    Row("CPU time of ranks", lambda r: r.totals.cpu_ranks_s, text.seconds),
    Row("computing", lambda r: r.totals.residency.computing_s, text.seconds),
    Row("MPI work", lambda r: r.totals.residency.transfer_s, text.seconds),
    Row("waits awake", lambda r: r.totals.residency.wait_awake_s, text.seconds),
    Row("waits asleep", lambda r: r.totals.residency.wait_asleep_s, text.seconds),
    Row("wake-up delay", lambda r: r.totals.wake_delay_share, lambda v: text.percent(v, 2)),
    Row("of it made good", lambda r: r.totals.wake_absorbed_share, lambda v: text.percent(v, 2)),
    Row("energy, metered", _metered, text.joules, _kinds),
    Row("energy-delay, metered", _delay_metered, text.joule_seconds, _kinds),
    Row("energy, modelled", _modelled, text.joules),
    Row("energy-delay, modelled", _delay_modelled, text.joule_seconds),
)


def _cells(row: Row, first: Report, second: Report) -> list[str] | None:
    a, b = row.of(first), row.of(second)
    if a is None and b is None:
        return None
    ratio = f"{b / a:.3f}" if a and b is not None and row.alike(first) == row.alike(second) else ""
    return [row.label, "-" if a is None else row.show(a), "-" if b is None else row.show(b), ratio]


def _about_meters(first: Report, second: Report) -> Iterator[str]:
    """What to know of the metered energy of both."""
    metered = [report.energy.metered for report in (first, second)]
    if all(m is not None and m.energy_j is not None for m in metered) and _kinds(first) != _kinds(second):
        of = [", ".join(_kinds(report)) for report in (first, second)]
        yield f"metered: of {of[0]} in A and of {of[1]} in B, so there is no ratio"
    for name, m in zip("AB", metered, strict=True):
        if m is not None and m.coverage:
            yield f"metered, {name}: {m.coverage}"


def lines(first: Report, second: Report, style: Style) -> Iterator[str]:
    """The table and which run is which."""
    for name, report in (("A", first), ("B", second)):
        command = shlex.join(report.run.command) or report.run.program
        yield style.paint(style.safe(f"{name}: {command}"), "bold")
        modes, how = ", ".join(report.run.modes), report_text.ended(report)
        yield style.paint(style.safe(f"   {report.run.directory}, {report.run.started}, wait mode {modes}{how}"), "dim")
    yield ""
    rows = [cells for row in ROWS if (cells := _cells(row, first, second)) is not None]
    yield from text.measured_and_modelled(["A", "B", "B / A"], rows, style)
    for words in _about_meters(first, second):
        yield from (style.paint(style.safe(line), "dim") for line in text.note(words, style, "  "))
