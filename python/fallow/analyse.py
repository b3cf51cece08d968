"""From a run directory to a report."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from fallow import ends, energy, histogram, lasting, linkage, polling, ranks, rundir, sites, timeline
from fallow.errors import UserError
from fallow.model import (
    SCHEMA,
    VERSION,
    Health,
    HistogramReport,
    LastCall,
    OpenWait,
    Place,
    RankReport,
    Report,
    Residency,
    Run,
    SiteReport,
    Totals,
    UnreadableFile,
)
from fallow.stats import share

if TYPE_CHECKING:
    from fallow import _native

_MISSING_SHOWN = 8


def _sum_residency(parts: Iterable[_native.ThreadDict]) -> Residency:
    threads = list(parts)
    return Residency(
        computing_s=sum(t["computing_s"] for t in threads),
        transfer_s=sum(t["transfer_s"] for t in threads),
        wait_awake_s=sum(t["wait_awake_s"] for t in threads),
        wait_asleep_s=sum(t["wait_asleep_s"] for t in threads),
        io_s=sum(t["io_s"] for t in threads),
    )


_Names = dict[tuple[str, int], Place]
"""By module and offset."""


def _open_wait(rank: _native.RankDict, start_ns: int, names: _Names) -> OpenWait | None:
    """The one that was seen to last longest."""
    waits = [wait for thread in rank["threads"] if (wait := thread["open"]) is not None]
    if not waits:
        return None
    wait = max(waits, key=lambda w: w["seen_ns"] - w["since_ns"])
    since_s, seen_s = ((wait[key] - start_ns) * 1e-9 for key in ("since_ns", "seen_ns"))
    where = names.get(sites.place(rank, wait), Place())
    return OpenWait(rank["ops"][wait["op"]][0], wait["peer"], since_s, seen_s, wait["comm_size"], where)


def _last_call(rank: _native.RankDict, start_ns: int, names: _Names) -> LastCall | None:
    """The latest of all threads, of a rank whose record has no end."""
    calls = [call for thread in rank["threads"] if (call := thread["last"]) is not None]
    if rank["end"] == "finalized" or not calls:
        return None
    call = max(calls, key=lambda c: c["ended_ns"])
    where = names.get(sites.place(rank, call), Place())
    return LastCall(rank["ops"][call["op"]][0], (call["ended_ns"] - start_ns) * 1e-9, where)


def _rank(found: ranks.Ranks, number: int, label: str, start_ns: int, names: _Names) -> RankReport:
    rank = found.read[number]
    threads = rank["threads"]
    residency = _sum_residency(threads)
    delay = sum(t["wake_delay_s"] for t in threads)
    absorbed = sum(t["wake_absorbed_s"] for t in threads)
    return RankReport(
        rank=rank["rank"],
        program=found.programs[number],
        label=label,
        host=rank["host"],
        pid=rank["pid"],
        family=rank["family"],
        mode=rank["mode"],
        hook=rank["hook"],
        end=rank["end"],
        is_written=found.written[number],
        last_state=rank["state"],
        open_wait=_open_wait(rank, start_ns, names),
        last_call=_last_call(rank, start_ns, names),
        threads=len(threads),
        calls=sum(t["calls"] for t in threads),
        core_time_s=residency.total_s,
        residency=residency,
        mpi_share=share(residency.mpi_s, residency.total_s),
        wake_delay_s=delay,
        wake_delay_share=share(delay, residency.total_s),
        wake_absorbed_s=absorbed,
        wake_lasting_share=share(max(0.0, delay - absorbed), residency.total_s),
        sleeps=sum(t["sleeps"] for t in threads),
        cpu_user_s=rank["cpu_user_s"],
        cpu_system_s=rank["cpu_system_s"],
        switches_voluntary=rank["switches_voluntary"],
        switches_involuntary=rank["switches_involuntary"],
        sent_bytes=sum(t["sent_bytes"] for t in threads),
        received_bytes=sum(t["received_bytes"] for t in threads),
    )


def _totals(read: list[_native.RankDict], rows: list[RankReport], run_time_s: float) -> Totals:
    threads = [t for rank in read for t in rank["threads"]]
    residency = _sum_residency(threads)
    delay = sum(row.wake_delay_s for row in rows)
    absorbed = sum(row.wake_absorbed_s for row in rows)
    return Totals(
        run_time_s=run_time_s,
        ranks=len(rows),
        threads=len(threads),
        calls=sum(row.calls for row in rows),
        calls_counted=sum(t["calls_counted"] for t in threads),
        core_time_s=residency.total_s,
        residency=residency,
        mpi_share=share(residency.mpi_s, residency.total_s),
        wait_asleep_share=share(residency.wait_asleep_s, residency.wait_s),
        wake_delay_s=delay,
        wake_delay_share=share(delay, residency.total_s),
        wake_delay_share_worst=max((row.wake_delay_share for row in rows), default=0.0),
        wake_absorbed_s=absorbed,
        wake_absorbed_share=share(absorbed, residency.total_s),
        wake_lasting_share_worst=max((row.wake_lasting_share for row in rows), default=0.0),
        slowdown_budget=max((rank["slowdown_budget"] for rank in read), default=0.0),
        sleeps=sum(row.sleeps for row in rows),
        wakes_by_peer=sum(t["wakes_by_peer"] for t in threads),
        wakes_sent=sum(t["wakes_sent"] for t in threads),
        wake_send_s=sum(t["wake_send_s"] for t in threads),
        cpu_ranks_s=sum(row.cpu_user_s + row.cpu_system_s for row in rows),
        wait_burnt_s=sum(_burnt(row) for row in rows),
        sent_bytes=sum(row.sent_bytes for row in rows),
        received_bytes=sum(row.received_bytes for row in rows),
    )


def _burnt(row: RankReport) -> float:
    """Waits awake that can have been on a core: where ranks share cores, most of that time others had them."""
    cpu_s = row.cpu_user_s + row.cpu_system_s
    return min(row.residency.wait_awake_s, cpu_s) if cpu_s > 0 else row.residency.wait_awake_s


def _health(found: ranks.Ranks, early: list[str], notes: list[str]) -> Health:
    unfinished = [rank["rank"] for rank in found.read if rank["end"] != "finalized"]
    return Health(
        ranks_expected=found.expected,
        ranks_read=len(found.read),
        ranks_unfinished=unfinished,
        early=early,
        unreadable=[UnreadableFile(u.file, u.reason) for u in found.unreadable],
        events_skipped=sum(t["events_skipped"] for rank in found.read for t in rank["threads"]),
        threads_dropped=sum(rank["threads_dropped"] for rank in found.read),
        notes=notes,
    )


def _missing(found: ranks.Ranks) -> list[str]:
    """Why ranks may have no record, where no damaged file tells."""
    missing = found.missing(_MISSING_SHOWN + 1)
    if not missing or found.unreadable:
        return []
    shown = ", ".join(map(str, missing[:_MISSING_SHOWN])) + (", ..." if len(missing) > _MISSING_SHOWN else "")
    note = (
        f"no record of rank {shown}: where it ran, the launcher did not pass on the environment "
        "(LD_PRELOAD, FALLOW_*), or the run directory is not to be seen, not to be written, or without room"
    )
    if len(found.read) == 1:
        note += "; or the launcher started a `fallow run` for each rank: put that in front (fallow run -- mpirun ...)"
    return [note]


def _left_awake(read: list[_native.RankDict], info: rundir.RunInfo | None) -> list[str]:
    """Why waits may not have slept though they were to."""
    chosen = info.options.get("hook", "auto") if info is not None else "auto"
    notes = []
    for hook, asked_for, what in (("none", "off", "waits"), ("twin", "twin", "collective calls' waits")):
        ranks_so = [rank for rank in read if rank["mode"] in ("sleep", "auto") and rank["hook"] == hook]
        if ranks_so and chosen != asked_for:
            name = _mpi_name(ranks_so[0]["mpi_version"])
            of = "every rank's" if len(ranks_so) == len(read) else f"{len(ranks_so)} ranks'"
            notes.append(f"{name} has no idle hook that Fallow knows: {of} {what} were left to spin")
    return notes


def _unique(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


def _mpi_name(version: str) -> str:
    """The first of what MPI_Get_library_version says: "Open MPI v4.1.4"; MPICH's is "MPICH Version: 4.0.2"."""
    line = version.strip().splitlines()[0] if version.strip() else ""
    return " ".join(line.split(",")[0].replace("Version:", "").split())


def _run(directory: Path, info: rundir.RunInfo | None, found: ranks.Ranks) -> Run:
    read = found.read
    first = min((rank["start_ns"] for rank in read), default=0)
    started = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(first / 1e9)) if info is None else info.started
    return Run(
        directory=str(directory),
        run_id=info.run_id if info else "",
        command=info.command if info else [],
        program=read[0]["program"] if read else "",
        started=started,
        host=info.host if info else (read[0]["host"] if read else ""),
        run_time_s=lasting.run_time_s(info, found),
        exit_status=info.exit_status if info else None,
        signal=info.signal if info else None,
        cpu_user_s=info.cpu_user_s if info else None,
        cpu_system_s=info.cpu_system_s if info else None,
        other_busy_s=info.other_busy_s if info else None,
        stolen_s=info.stolen_s if info else None,
        throttled_s=info.throttled_s if info else None,
        processor_limit=info.processor_limit if info else None,
        mpi=_mpi_name(read[0]["mpi_version"]) if read else "",
        families=_unique(rank["family"] for rank in read),
        modes=_unique(rank["mode"] for rank in read),
        hosts=_unique(rank["host"] for rank in read),
        options=info.options if info else {},
        fallow_version=info.fallow_version if info else "",
    )


def _histogram(read: list[_native.RankDict], which: str) -> HistogramReport:
    threads = [thread for rank in read for thread in rank["threads"]]
    return histogram.report([thread["gaps"] if which == "gaps" else thread["waits"] for thread in threads])


_ON = ("1", "true", "yes", "on")  # as the runtime reads a flag


def _info(directory: Path, goes_on: bool, notes: list[str]) -> rundir.RunInfo | None:
    try:
        info = rundir.read_run(directory)
    except UserError as error:
        if (directory / rundir.RUN_FILE).exists():
            notes.append(str(error))
        else:
            notes.append(
                f"there is no {rundir.RUN_FILE}, as of what ran under Fallow without `fallow run`: the run time is the "
                "ranks', and the command, how it ended and meters are not known"
            )
        return None
    if info.run_time_s is None:
        ended = "the launcher was killed or is still running; the run time is the ranks'"
        notes.append("ranks are still running; the run time is theirs so far" if goes_on else ended)
    if not info.with_fallow:
        notes.append("this run was made without Fallow")
    return info


def _why_nothing(found: ranks.Ranks, info: rundir.RunInfo | None, inner: list[str]) -> str:
    if found.unreadable:
        return "".join(f"\n  {u.file}: {u.reason}" for u in found.unreadable)
    if info is not None and not info.with_fallow:
        return ": this run was made without Fallow"
    if info is not None and info.options.get("off", "") in _ON:
        return ": Fallow was switched off (--off or FALLOW_OFF), so that no rank recorded anything"
    if inner:
        more = f" (and {len(inner) - 1} more)" if len(inner) > 1 else ""
        return f": the command started a `fallow run` of its own, whose record is {inner[0]}{more}"
    if info is not None and (static := list(linkage.unreachable(info.command, info.cwd))):
        return ": no rank recorded anything; " + "; ".join(static)
    return (
        ": no rank recorded anything; did the command start an MPI program? Had its ranks the right and the room to "
        "write there? Programs that start with another environment or LD_PRELOAD (env -i, a script's export) are not "
        "reached"
    )


def _runs_in(directory: Path) -> str:
    runs = sorted(path.parent for path in directory.glob(f"*/{rundir.RUN_FILE}"))
    return f"; {runs[-1]} is one" if runs else ""


def _changed(shown: Iterable[SiteReport], last_ns: int) -> list[str]:
    """Modules that are named by what stands in them now, which is not what ran."""
    notes = []
    for module in _unique(site.module for site in shown if site.module and "+0x" not in site.symbol):
        with contextlib.suppress(OSError, ValueError):
            if Path(module).stat().st_mtime_ns > last_ns:
                notes.append(f"{module} has changed since the run: the names of its call sites may be wrong")
    return notes


def _machine(
    named: str | None, info: rundir.RunInfo | None, directory: Path, notes: list[str]
) -> _native.Platform | None:
    """The platform to model on. One that the run was made with may be gone since, or known elsewhere only."""
    if named or info is None or not info.platform:
        return energy.platform(named or "", directory)
    try:
        return energy.platform(info.platform, directory)
    except UserError as error:
        notes.append(f"no energy is modelled: {error}; the run was made with that platform, --platform names another")
        return None


class _Sums:
    """What is added up of call sites while ranks are read."""

    def __init__(self) -> None:
        self.sites, self.tests = sites.Sums(), polling.Tests()

    def add(self, rank: _native.RankDict) -> None:
        self.sites.add(rank)
        self.tests.add(rank)


def load(directory: Path, platform: str | None = None) -> Report:
    """The report of a run directory, its energy modelled on the named platform or on the one the run was made with.

    UserError where nothing in it can be read, or the named platform cannot.
    """
    if not directory.is_dir():
        file = directory.exists()
        what = "is a file; a run is a directory (of a trace: fallow trace info)" if file else "no such run directory"
        raise UserError(f"{directory}: {what}")
    try:
        paths = ranks.files(directory)
    except OSError as error:
        raise UserError(f"{directory}: {error.strerror}") from None
    sums = _Sums()
    found = ranks.load(paths, timeline.events_per_thread(len(paths)), sums.add)
    lasting.go_on(found, time.time_ns())
    notes: list[str] = []
    info = _info(directory, any(found.written), notes)
    if not paths and not (directory / rundir.RUN_FILE).exists():
        raise UserError(
            f"{directory}: no run directory; nothing in it was written by `fallow run`{_runs_in(directory)}"
        )
    if not found.read:
        why = _why_nothing(found, info, rundir.inner(directory))
        raise UserError(f"{directory}: nothing to report{why}")
    if (programs := max(found.programs)) > 1:
        notes.append(f"the command started {programs} MPI programs; their ranks are shown together, as program:rank")
        side_by_side = ranks.at_once((*s[:2], 1) for s in found.spans.values()) > 1
        if side_by_side and all(rank["size"] == 1 for rank in found.read):
            notes.append(
                "each of these programs had one rank and ran side by side: if one program was meant, its launcher "
                "(mpirun, mpiexec, srun) is that of another MPI than the program's, which then starts alone each time"
            )
    notes += found.notes + _missing(found) + _left_awake(found.read, info)
    run = _run(directory, info, found)
    command_s = run.run_time_s
    if info is not None and info.run_time_s is not None:
        command_s = info.run_time_s
        lasting.tell_ends(found)
        notes += lasting.notes(found, run.run_time_s - info.run_time_s, run.run_time_s)
    labels = found.labels
    start_ns = min(rank["start_ns"] for rank in found.read)
    names = sites.last_places(found.read)
    rows = [_rank(found, number, label, start_ns, names) for number, label in enumerate(labels)]
    machine = _machine(platform, info, directory, notes)
    totals = _totals(found.read, rows, run.run_time_s)
    test_gap = info.options.get("test_gap", "auto") if info is not None else "auto"
    notes += polling.counted_notes(totals.calls_counted, totals.calls)
    notes += polling.notes(sums.tests, run.program, test_gap, totals.core_time_s)
    shown, left_out = sums.sites.build()
    notes += _changed(shown, max(t["last_ns"] for rank in found.read for t in [rank, *rank["threads"]]))
    return Report(
        schema=SCHEMA,
        version=VERSION,
        run=run,
        health=_health(found, ends.told(rows), notes),
        totals=totals,
        energy=energy.build(directory, run, rows, machine, notes, command_s=command_s, programs=found.spans),
        ranks=rows,
        functions=sites.functions(found.read),
        sites=shown,
        sites_left_out=left_out,
        gaps=_histogram(found.read, "gaps"),
        waits=_histogram(found.read, "waits"),
        timeline=timeline.build(found.read, labels),
    )
