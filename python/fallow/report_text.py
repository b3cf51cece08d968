"""A report for the terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from fallow import figures_text, text, timeline_text
from fallow.compare import DISTURBED_CORES
from fallow.figures_text import Figure, less
from fallow.model import Bin, HistogramReport, Metered, RankReport, Report, Run
from fallow.sites import SEVERAL_COMMS
from fallow.text import Style

_PART_NAMES = {
    "transfer": "MPI work", "wait_awake": "waiting awake", "wait_asleep": "waiting asleep", "io": "file access",
    "unaccounted": "start and end", "unused_cores": "unused cores", "nic": "network card", "base": "rest of the node",
    "switch_share": "switches",
}  # fmt: skip
_FAMILY_NAMES = {"openmpi": "Open MPI", "mpich": "MPICH", "mpiabi": "MPI 5 ABI"}
_MOST_LIKE = 8  # warnings that say the same of a rank or file each
_RANKS_WIDE = 94  # columns of the ranks' table with its bars
_LEAST_BAR = 4  # columns of a bar that says something
_MOSTLY_ON_CORES = 0.8  # of the time awake, with which nothing is said of the rest
_BINS_WIDE = 66  # columns of a histogram without its two bars
MAX_ROWS = 16
"""Of ranks and call sites; --json and --html have all."""


def _heading(title: str, style: Style) -> str:
    return style.paint(title, "bold")


def _mpi(run: Run) -> str:
    """The library as it calls itself, and the families where that does not say it."""
    families = [_FAMILY_NAMES.get(f, f) for f in run.families]
    if len(families) == 1 and run.mpi:
        return run.mpi + (f" ({families[0]})" if run.families == ["mpiabi"] else "")
    return ", ".join(families)


def _title(report: Report, style: Style) -> Iterator[str]:
    run = report.run
    command = shlex.join(run.command) or run.program
    yield style.paint(style.safe(command[: style.width]), "bold")
    ranks = text.plural(report.totals.ranks, "rank")
    mpi = _mpi(run)
    where = run.hosts[0] if len(run.hosts) == 1 else f"{len(run.hosts)} nodes"
    words = style.safe(f"{run.started}  {ranks} on {where}, {mpi}, wait mode {', '.join(run.modes)}")
    yield from (style.paint(x, "dim") for x in text.note(words, style, "", "  "))


def ended(report: Report) -> str:
    """How the command ended, if not well."""
    if report.run.signal is not None:
        return f", ended by signal {report.run.signal}"
    return f", exit status {report.run.exit_status}" if report.run.exit_status else ""


def headline(report: Report, style: Style) -> Iterator[str]:
    """The few numbers that matter most, a line each; on narrow terminals what is said of them goes on below."""
    return figures_text.headline(_figures(report, style), style)


def _figures(report: Report, style: Style) -> Iterator[Figure]:
    t, r = report.totals, report.totals.residency
    yield "run time", text.seconds(t.run_time_s), (f"{text.count(t.calls)} MPI calls{ended(report)}",)
    yield "in MPI", text.percent(t.mpi_share), (figures_text.share_bar(t.mpi_share, style),)
    saved = f"{text.percent(t.wait_asleep_share)} of {text.seconds(r.wait_s)} of core time spent waiting"
    yield "waits asleep", text.seconds(r.wait_asleep_s), (saved,)
    yield "waits awake", text.seconds(r.wait_awake_s), (_burnt(report),)
    if _throttled_s(report.run) > DISTURBED_CORES * report.run.run_time_s and report.run.processor_limit:
        limit = f"control groups give the command the time of {text.processors(report.run.processor_limit)}"
        yield "throttled", text.seconds(_throttled_s(report.run)), ("of core time",), (limit,)
    over = t.wake_lasting_share_worst > t.slowdown_budget > 0
    absorbed = f"of which {text.percent(t.wake_absorbed_share, 2)} made good by later waits"
    worst = f"worst rank's rest {text.percent(t.wake_lasting_share_worst, 2)}"
    short = ", which does not bound sleeps where cores are short" if over and _cores_are_short(report) else ""
    budget = f"{worst}, budget {text.percent(t.slowdown_budget, 2)}{short}"
    yield "wake-up delay", text.percent(t.wake_delay_share, 2), (absorbed,), (budget, *(["red"] if over else []))
    if t.wake_send_s > 0:
        share = text.percent(t.wake_send_s / t.core_time_s, 2)
        yield (
            "waking others",
            text.seconds(t.wake_send_s),
            (f"{share} of core time, in the calls of those whom they waited for",),
        )
    yield from _energy_figures(report)


def _wait_for_cores(report: Report) -> bool:
    return report.totals.wait_burnt_s < 0.9 * report.totals.residency.wait_awake_s


def _cores_are_short(report: Report) -> bool:
    """Whether ranks waited for cores, or others used some of theirs, which waits heed where one node has the job."""
    others_s = (report.run.other_busy_s or 0.0) if len(report.run.hosts) == 1 else 0.0
    return _wait_for_cores(report) or others_s + _throttled_s(report.run) > DISTURBED_CORES * report.run.run_time_s


def _throttled_s(run: Run) -> float:
    return run.throttled_s or 0.0


def _burnt(report: Report) -> str:
    """How much of the waits' time awake can have been on a core."""
    t, r = report.totals, report.totals.residency
    if _wait_for_cores(report):
        return f"at most {text.seconds(t.wait_burnt_s)} of it on a core: ranks waited for cores, too"
    shown, awake = text.seconds(t.wait_burnt_s), text.seconds(r.wait_awake_s)
    burnt = "core time burnt in waits" if shown == awake else f"{shown} of core time burnt in waits"
    awake_s = r.computing_s + r.transfer_s + r.wait_awake_s
    if 0 < t.cpu_ranks_s < _MOSTLY_ON_CORES * awake_s:
        had = text.percent(t.cpu_ranks_s / awake_s)
        return f"{burnt}, at most: ranks had a core for {had} of their time awake"
    return burnt


def _energy_figures(report: Report) -> Iterator[Figure]:
    metered, modelled = report.energy.metered, report.energy.modelled
    if metered is None:
        yield "energy metered", "-", ("no meter was read here (fallow doctor says what would be needed)",)
    elif metered.energy_j is None or metered.energy_delay_js is None:
        yield "energy metered", "-", (_no_sum(metered),)
    else:
        names = ", ".join(d.domain for d in metered.domains if d.counted)
        delay = f"energy-delay {text.joule_seconds(metered.energy_delay_js)}"
        of = f"{names}: {metered.coverage}" if metered.coverage else names
        yield "energy metered", text.joules(metered.energy_j), (delay,), (of,)
    if modelled is None:
        yield "energy modelled", "-", ("no platform model",)
    else:
        node = less(modelled.energy_j, modelled.energy_spinning_j)
        more = f"{node} than spinning, cores alone {less(modelled.cores_j, modelled.cores_spinning_j)}"
        delay = f"energy-delay {text.joule_seconds(modelled.energy_delay_js)}"
        yield "energy modelled", text.joules(modelled.energy_j), (more,), (delay,)


def _no_sum(metered: Metered) -> str:
    """Why the meters' domains have no sum."""
    lost = [d.domain for d in metered.domains if d.counted and d.lost]
    if lost:
        return f"{', '.join(lost)} could not be read all the time, so there is no sum"
    return f"{text.plural(len(metered.domains), 'domain')} read, none that adds up"


def _energy(report: Report, style: Style) -> Iterator[str]:
    """Tables of both kinds, and what the model takes for granted."""
    metered, modelled = report.energy.metered, report.energy.modelled
    if metered is not None:
        yield _heading("Energy, metered", style)
        header = ["meter", "energy", "mean power", "in the sum"]
        rows = [
            [
                f"{d.meter} {d.domain}",
                text.joules(d.energy_j),
                f"{text.fixed(d.mean_w, 1)} W",
                f"lost: {d.lost}" if d.lost else "yes" if d.counted else "no",
            ]
            for d in metered.domains
        ]
        yield from (f"  {line}" for line in text.table(header, rows, style, apart=True))
        yield from (style.paint(f"  {m}", "dim") for m in metered.measures)
    if modelled is not None:
        yield _heading(f"Energy, modelled on {style.safe(modelled.platform)}", style)

        whole = modelled.energy_j or 1.0

        def watts(energy_j: float) -> str:
            return f"{text.fixed(energy_j / (report.totals.run_time_s or 1.0), 1)} W"

        rows = [
            [_PART_NAMES.get(name, name), text.joules(value), watts(value), text.percent(value / whole)]
            for name, value in modelled.parts.items()
            if value
        ]
        yield from (f"  {line}" for line in text.table(["part", "energy", "mean power", "share"], rows, style))
        yield from figures_text.assumptions(modelled.assumptions, style)


def warnings(report: Report, style: Style) -> Iterator[str]:
    """What makes the report incomplete or doubtful."""
    h = report.health

    told = []
    if h.ranks_read < h.ranks_expected:
        told.append(f"{h.ranks_expected - h.ranks_read} of {h.ranks_expected} ranks left no readable record")
    for of, found in (("files could not be read", h.unreadable), ("places where ranks ended early", h.early)):
        told += [line if isinstance(line, str) else f"{line.file}: {line.reason}" for line in found[:_MOST_LIKE]]
        if len(found) > _MOST_LIKE:
            told.append(f"{len(found) - _MOST_LIKE} more {of}; --json has all")
    if h.threads_dropped:
        what = text.plural(h.threads_dropped, "thread")
        told.append(f"not recorded: {what}, beyond 64 of a rank, without room on disk, or without access to it by then")
    for message in [*told, *h.notes]:
        for line in text.note(style.safe(message), style, "  ! "):
            yield style.paint(line, "yellow")


_RANK_COLUMNS = ("compute", "MPI work", "awake", "asleep", "I/O", "delay")


def _rank_shares(row: RankReport) -> list[str]:
    r, total = row.residency, row.core_time_s or 1.0
    parts = (r.computing_s, r.transfer_s, r.wait_awake_s, r.wait_asleep_s, r.io_s)
    return [*(text.percent(part / total) for part in parts), text.percent(row.wake_lasting_share, 2)]


def _ranks(report: Report, style: Style) -> Iterator[str]:
    rows = report.ranks
    if len(rows) > MAX_ROWS:
        rows = sorted(rows, key=lambda row: -row.residency.wait_s)[:MAX_ROWS]
    if style.breaks and style.width < _RANKS_WIDE:
        yield _heading("Ranks", style) + style.paint("   delay: not made good", "dim")
        header = ["rank", *_RANK_COLUMNS, "end"]
        yield from (f"  {x}" for x in text.table(header, [[r.label, *_rank_shares(r), r.end] for r in rows], style))
    else:
        what = f"   {figures_text.states(style)}; delay: not made good"
        yield _heading("Ranks", style) + style.paint(what, "dim")
        width = max(16, style.width - 78)
        columns = "".join(f" {name:>8}" for name in _RANK_COLUMNS)
        yield style.paint(f"  {'rank':>6}  {'':<{width}} {columns}  end", "dim")
        for row in rows:
            shares = "".join(f" {share:>8}" for share in _rank_shares(row))
            yield f"  {row.label:>6}  {figures_text.stack(row.residency, width, style)} {shares}  {row.end}"
    if len(report.ranks) > MAX_ROWS:
        yield style.paint(f"  the {MAX_ROWS} that waited longest of {text.count(len(report.ranks))}", "dim")


def _functions(report: Report, style: Style) -> Iterator[str]:
    yield _heading("MPI functions", style)
    header = ["function", "calls", "time", "waits awake", "waits asleep", "data", "wake delay"]
    rows = [
        [
            style.safe(f.function),
            text.count(f.calls),
            text.seconds(f.time_s),
            text.seconds(f.wait_awake_s),
            text.seconds(f.wait_asleep_s),
            text.size(f.size_bytes),
            text.seconds(f.wake_delay_s),
        ]
        for f in report.functions[:MAX_ROWS]
    ]
    yield from (f"  {line}" for line in text.table(header, rows, style))
    if len(report.functions) > MAX_ROWS:
        yield style.paint(f"  and {len(report.functions) - MAX_ROWS} more", "dim")


def _sites(report: Report, style: Style) -> Iterator[str]:
    yield _heading("Call sites", style)
    header = ["called from", "function", "comm/size", "calls", "time", "awake", "asleep", "longest wait"]
    rows = []
    for s in report.sites[:MAX_ROWS]:
        place = f"{s.symbol} ({Path(s.source).name})" if s.source else s.symbol
        rows.append(
            [
                style.safe(place),
                style.safe(s.function),
                "several" if s.comm == SEVERAL_COMMS else f"{s.comm}/{s.comm_size}" if s.comm_size else "-",
                text.count(s.calls),
                text.seconds(s.time_s),
                text.seconds(s.wait_awake_s),
                text.seconds(s.wait_asleep_s),
                text.seconds(s.wait_max_s),
            ]
        )
    yield from (f"  {line}" for line in text.table(header, rows, style, left=2))
    more = len(report.sites) - len(rows) + report.sites_left_out
    if more > 0:
        yield style.paint(f"  and {more} more", "dim")


def bin_label(b: Bin) -> str:
    """A bin as people write it."""
    if b.high_s is None:
        return f"> {text.seconds(b.low_s)}"
    return f"< {text.seconds(b.high_s)}" if b.low_s == 0 else f"{text.seconds(b.low_s)} - {text.seconds(b.high_s)}"


def _bin_cells(b: Bin) -> list[str]:
    shares = text.percent(b.count_share), text.percent(b.time_share)
    return [bin_label(b), text.count(b.count), shares[0], text.seconds(b.time_s), shares[1]]


def _histogram(title: str, h: HistogramReport, style: Style, none: str = "") -> Iterator[str]:
    yield _heading(title, style)
    wide = min(20, (style.width - _BINS_WIDE) // 2) if style.breaks else 20
    if wide < _LEAST_BAR:
        header = ["", "count", "share", "time", "share"]
        yield from (f"  {x}" for x in text.table(header, [_bin_cells(b) for b in h.papers], style))
    else:
        yield style.paint(f"  {'':<18} {'count':>12} {'share':>8}  {'':<{wide}} {'time':>10} {'share':>8}", "dim")
        for b in h.papers:
            label, count, count_share, time, time_share = _bin_cells(b)
            yield (
                f"  {label:<18} {count:>12} {count_share:>8}  {style.bar(b.count_share, wide)} {time:>10}"
                f" {time_share:>8}  {style.bar(b.time_share, wide)}"
            ).rstrip()
    if none:
        yield from (style.paint(x, "dim") for x in text.note(f"{text.count(h.none_count)} {none}", style, "  "))


def lines(report: Report, style: Style) -> Iterator[str]:
    """The whole report."""
    yield from _title(report, style)
    yield ""
    yield from headline(report, style)
    problems = list(warnings(report, style))
    if problems:
        yield ""
        yield from problems
    for section in (
        _ranks(report, style),
        _functions(report, style),
        _sites(report, style),
        _histogram("Gaps between calls", report.gaps, style),
        _histogram("Waits", report.waits, style, "of the first are blocking calls that did not wait at all"),
        timeline_text.lines(report.timeline, style),
        _energy(report, style),
    ):
        yield ""
        yield from section
