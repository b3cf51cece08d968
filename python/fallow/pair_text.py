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


def _metered(report: Report) -> float | None:
    return report.energy.metered.energy_j if report.energy.metered else None


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
    Row("energy, metered", _metered, text.joules),
    Row("energy-delay, metered", _delay_metered, text.joule_seconds),
    Row("energy, modelled", _modelled, text.joules),
    Row("energy-delay, modelled", _delay_modelled, text.joule_seconds),
)


def _cells(row: Row, first: Report, second: Report) -> list[str] | None:
    a, b = row.of(first), row.of(second)
    if a is None and b is None:
        return None
    ratio = f"{b / a:.3f}" if a and b is not None else ""
    return [row.label, "-" if a is None else row.show(a), "-" if b is None else row.show(b), ratio]


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
