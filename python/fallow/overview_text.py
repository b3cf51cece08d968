"""What many runs did and saved, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fallow import figures_text, text
from fallow.figures_text import Figure
from fallow.overview import Metered, OneRun, Overview, Sums
from fallow.text import Style

MOST_ROWS = 24
"""Of programs and runs; --json and --html have all."""
_MOST_LIKE = 8  # warnings of runs that could not be read


def _day(started: str) -> str:
    return started.partition("T")[0]


def _title(o: Overview, style: Style) -> Iterator[str]:
    first, last = _day(o.runs[0].started), _day(o.runs[-1].started)
    when = first if first == last else f"{first} to {last}"
    what = f"{text.plural(len(o.runs), 'run')} of {text.plural(len(o.programs), 'program')}"
    yield from (style.paint(line, "bold") for line in text.note(style.safe(f"{what}, {when}"), style, "", "  "))


def _of_runs(runs: int, o: Overview) -> str:
    return "" if runs == o.totals.runs else f", of {text.count(runs)} of the {text.plural(o.totals.runs, 'run')}"


def _figures(o: Overview, style: Style) -> Iterator[Figure]:
    t = o.totals
    yield "core time", text.seconds(t.core_time_s), (f"run times together {text.seconds(t.run_time_s)}",)
    yield "in MPI", text.percent(t.mpi_share), (figures_text.share_bar(t.mpi_share, style),)
    saved = f"{text.percent(t.wait_asleep_share)} of {text.seconds(t.residency.wait_s)} of core time spent waiting"
    yield "waits asleep", text.seconds(t.residency.wait_asleep_s), (saved,)
    burnt = f"of it at most {text.seconds(t.wait_burnt_s)} on a core"
    yield "waits awake", text.seconds(t.residency.wait_awake_s), (burnt,)
    if not t.metered:
        yield "energy metered", "-", ("no meter was read in these runs",)
    for m in t.metered:
        yield "energy metered", text.joules(m.energy_j), (f"{m.kinds}{_of_runs(m.runs, o)}",)
    if t.modelled is None:
        yield "energy modelled", "-", ("no platform model",)
    else:
        model = t.modelled
        less = f"{figures_text.less(model.energy_j, model.energy_spinning_j)} than spinning"
        saved_j = model.energy_spinning_j - model.energy_j
        more = f"{text.joules(abs(saved_j))} {'saved' if saved_j >= 0 else 'lost'}{_of_runs(model.runs, o)}"
        yield "energy modelled", text.joules(model.energy_j), (less,), (more,)


def _warnings(o: Overview, style: Style) -> Iterator[str]:
    told = [f"left out: {n.directory}: {n.reason}" for n in o.not_read[:_MOST_LIKE]]
    if len(o.not_read) > _MOST_LIKE:
        told.append(f"left out: {len(o.not_read) - _MOST_LIKE} more; --json has all")
    for message in [*told, *o.notes]:
        yield from (style.paint(line, "yellow") for line in text.note(style.safe(message), style, "  ! "))


def _metered(metered: list[Metered], o: Overview) -> str:
    """With the kinds of the meters where the runs had several."""
    if len(o.totals.metered) < 2:
        return text.joules(metered[0].energy_j) if metered else "-"
    return "; ".join(f"{text.joules(m.energy_j)} {m.kinds}" for m in metered) or "-"


def _header(o: Overview) -> list[str]:
    metered = ["metered"] if o.totals.metered else []
    return ["core time", "in MPI", "awake", "asleep", "of waits", *metered, "modelled", "than spinning"]


def _cells(s: Sums, o: Overview) -> list[str]:
    model = s.modelled
    return [
        text.seconds(s.core_time_s),
        text.percent(s.mpi_share),
        text.seconds(s.residency.wait_awake_s),
        text.seconds(s.residency.wait_asleep_s),
        text.percent(s.wait_asleep_share),
        *([_metered(s.metered, o)] if o.totals.metered else []),
        text.joules(model.energy_j) if model else "-",
        figures_text.less(model.energy_j, model.energy_spinning_j) if model else "-",
    ]


def ended(run: OneRun) -> str:
    """How its command ended, if not well; of a rank without a record that, too."""
    if run.signal is not None:
        return f"signal {run.signal}"
    if run.exit_status:
        return f"status {run.exit_status}"
    missing = run.ranks_expected - run.ranks
    return f"{missing} of {run.ranks_expected} ranks lack" if missing > 0 else ""


def _programs(o: Overview, style: Style) -> Iterator[str]:
    yield style.paint("Programs", "bold")
    shown = o.programs[:MOST_ROWS]
    rows = [[style.safe(p.program), text.count(p.sums.runs), *_cells(p.sums, o)] for p in shown]
    yield from (f"  {line}" for line in text.table(["program", "runs", *_header(o)], rows, style, apart=True))
    yield ""
    yield from (style.paint(line, "dim") for line in text.note(figures_text.states(style), style, "  ", "  "))
    wide = min(max(len(p.program) for p in shown), style.width // 3)
    for p in shown:
        bar = figures_text.stack(p.sums.residency, style.width - wide - 4, style)
        yield f"  {style.safe(p.program)[:wide]:<{wide}}  {bar}".rstrip()
    if len(o.programs) > MOST_ROWS:
        yield style.paint(f"  and {text.count(len(o.programs) - MOST_ROWS)} more", "dim")


def _runs(o: Overview, style: Style) -> Iterator[str]:
    yield style.paint("Runs", "bold")
    rows = [
        [
            style.safe(Path(r.directory).name),
            style.safe(r.program),
            r.started.replace("T", " ")[:16],
            text.count(r.ranks),
            text.seconds(r.sums.run_time_s),
            *_cells(r.sums, o),
            text.percent(r.wake_lasting_share_worst, 2),
            ended(r),
        ]
        for r in o.runs[-MOST_ROWS:]
    ]
    header = ["record", "program", "started", "ranks", "run time", *_header(o), "delay", "ended"]
    yield from (f"  {line}" for line in text.table(header, rows, style, left=2, apart=True))
    told = ["delay: by sleeps, not made good by later waits, of the rank that has most of it"]
    if len(o.runs) > MOST_ROWS:
        told.append(f"these are the last {MOST_ROWS} of {text.count(len(o.runs))}; --json and --html have all")
    for words in told:
        yield from (style.paint(line, "dim") for line in text.note(words, style, "  ", "  "))


def _models(o: Overview, style: Style) -> Iterator[str]:
    for p in o.platforms:
        yield ""
        on = f"Energy, modelled on {style.safe(p.platform)} ({text.plural(p.runs, 'run')})"
        yield from (style.paint(line, "bold") for line in text.note(on, style, "", "  "))
        yield from figures_text.assumptions(p.assumptions, style)


def lines(o: Overview, style: Style) -> Iterator[str]:
    """The whole overview."""
    yield from _title(o, style)
    yield ""
    yield from figures_text.headline(_figures(o, style), style)
    if problems := list(_warnings(o, style)):
        yield ""
        yield from problems
    for section in (_programs(o, style), _runs(o, style)):
        yield ""
        yield from section
    yield from _models(o, style)
