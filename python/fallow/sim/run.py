"""Runs simulations, several at once, with a progress bar, and stops them when the user does."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fallow import native
from fallow.errors import UserError, about, reason
from fallow.progress import Bar
from fallow.sim import machine as machines
from fallow.sim import timeline
from fallow.sim.model import (
    Case,
    Outcome,
    ProgramFacts,
    Study,
    TooShort,
    UnlikeSizes,
    idle_of,
    link_rows,
    path_of,
    rank_rows,
)
from fallow.sim.timeline import Window
from fallow.text import plural
from fallow.traces.found import find_files

_POLL_S = 0.1
REDUCING = ("stencil3d", "cg")  # made-up programs whose all-reduce is as large as one says
DRAWING = ("random",)  # those that draw more than their jitter from the seed
_MOST_RANKS = 4096  # beyond, per-rank and per-link rows and the critical path are left out
_MOST_CALLS = 30_000_000  # likewise


@dataclass(frozen=True)
class ProgramSpec:
    """Where the calls come from: trace files, or the name of a made-up program and its options."""

    paths: tuple[Path, ...] = ()
    synth: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    def open(self) -> Any:  # noqa: ANN401  # _native.SimProgram
        """A program of its own, to be replayed by one thread; UserError where that cannot be."""
        try:
            if self.synth:
                return machines.require("make_sim_program")(self.synth, **self.options)
            return machines.require("open_sim_trace")([native.file_name(p) for p in find_files(self.paths)])
        except (ValueError, TypeError, OverflowError) as error:
            raise UserError(str(error)) from None

    def facts(self, program: Any) -> ProgramFacts:  # noqa: ANN401
        """What to say of it."""
        notes = list(program.problems)
        if program.incomplete:
            notes.append(f"the trace ends early for {plural(program.incomplete, 'rank')}")
        clock = "made up" if self.synth else program.clock
        return ProgramFacts(program.name or self.synth, program.ranks, program.events, clock, tuple(notes))


class _Running:
    """The programs that are being replayed now, for progress and for stopping."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self.stopped = False
        self.programs: list[Any] = []
        self.lock = threading.Lock()

    def enter(self, program: Any) -> None:  # noqa: ANN401
        with self.lock:
            self.programs.append(program)
            if self.stopped:  # an interrupt came before there was anything to stop
                program.stop()

    def leave(self, program: Any) -> None:  # noqa: ANN401
        with self.lock:
            self.programs.remove(program)
            self.done += 1

    def share(self) -> float:
        with self.lock:
            running = sum(float(p.progress()) for p in self.programs)
            return (self.done + running) / max(self.total, 1)

    def stop(self) -> None:
        with self.lock:
            self.stopped = True
            for program in self.programs:
                program.stop()


def _watch(futures: Sequence[Future[Any]], running: _Running, what: str = "simulating") -> None:
    bar = Bar(what)
    try:
        while wait(futures, timeout=_POLL_S, return_when=FIRST_EXCEPTION).not_done:
            if any(f.done() and f.exception() for f in futures):
                running.stop()
                break
            bar.show(running.share())
    finally:
        bar.close()


def write(spec: ProgramSpec, target: Path) -> Any:  # noqa: ANN401  # _native.SimProgram
    """Writes the program's calls as a trace, with a progress bar; returns the program."""
    program, running = spec.open(), _Running(1)
    with ThreadPoolExecutor(max_workers=1) as pool:
        running.enter(program)
        try:
            writing = pool.submit(program.write, native.file_name(target))
            _watch([writing], running, "writing")
        except BaseException:
            running.stop()
            raise
        try:
            writing.result()
        except (ValueError, RuntimeError, MemoryError) as error:
            raise about(target, error) from None
    return program


@dataclass(frozen=True)
class Wanted:
    """What a simulation is to show beside its sums; what large programs cannot have is left out."""

    details: bool = True
    window: Window | None = None  # of the timeline; None: no timeline


def simulate(
    spec: ProgramSpec, machine: Any, cases: Sequence[Case], wanted: Wanted = Wanted(), threads: int = 1  # noqa: ANN401
) -> list[Outcome]:  # fmt: skip
    """Replays the program once per case, on `threads` threads: cases at once, and what is left over inside each, where
    nothing but sums is wanted. UserError says what cannot be replayed, and where."""
    inside = max(1, threads // max(1, len(cases)))
    running = _Running(len(cases))
    native_run: Callable[..., dict[str, Any]] = machines.require("simulate")
    window = wanted.window.as_dict() if wanted.window else None

    def one(case: Case) -> Outcome:
        program = spec.open()
        running.enter(program)
        details = wanted.details and program.ranks <= _MOST_RANKS and program.events <= _MOST_CALLS
        try:
            found = native_run(machine, program, case.policy, dict(case.options), details, window, inside)
        finally:
            running.leave(program)
        return _outcome(case, found, wanted.window)

    with ThreadPoolExecutor(max_workers=max(1, min(threads, len(cases)))) as pool:
        try:
            futures = [pool.submit(one, case) for case in cases]
            _watch(futures, running)
        except BaseException:  # an interrupt may come while they are being started: the pool waits for those that were
            pool.shutdown(wait=False, cancel_futures=True)
            running.stop()
            raise
        try:
            return [f.result() for f in _first_failure_first(futures)]
        except (ValueError, OverflowError) as error:
            raise UserError(str(error)) from None
        except MemoryError as error:
            raise UserError(f"{reason(error)} for this simulation") from None


def _outcome(case: Case, found: dict[str, Any], window: Window | None) -> Outcome:
    raw, more, drawn = json.loads(found["result"]), found["details"], timeline.unpack(found["timeline"], window)
    if more is None:
        return Outcome(case, raw, timeline=drawn)
    path = path_of(more["path"], more["path_unsplit"], more["path_messages"])
    idle = idle_of(more["edge_idle"])
    short = TooShort(*more["too_short"]) if more["too_short"] else None
    unlike = UnlikeSizes(*more["unlike_sizes"]) if more["unlike_sizes"] else None
    return Outcome(case, raw, rank_rows(more["ranks"]), link_rows(more["links"]), path, idle, drawn, short, unlike)


def _first_failure_first(futures: list[Future[Outcome]]) -> list[Future[Outcome]]:
    """The same, unless one failed by itself: the others were stopped because of it."""
    stopped = machines.require("SimCancelled")
    for future in futures:
        if future.done() and not future.cancelled() and (e := future.exception()) and not isinstance(e, stopped):
            return [future]
    return futures


def _check_room(ranks: int, facts: Mapping[str, Any]) -> None:
    room = facts["nodes"] * facts["ranks_per_node"]
    if ranks > room:
        raise UserError(
            f"the program has {ranks} ranks; {facts['name']} has room for {room}: put more on a node "
            "(--ranks-per-node) or take a larger network (--topology fat-tree)"
        )


def study(
    spec: ProgramSpec, where: machines.MachineSpec, cases: Sequence[Case], wanted: Wanted = Wanted(), threads: int = 1
) -> Study:
    """Everything always on first, then the cases."""
    machine = machines.load(where)
    facts, described = spec.facts(spec.open()), machines.facts(machine)
    _check_room(facts.ranks, described)
    _expect_switches(described, cases)
    base = Case("always-on")
    outcomes = simulate(spec, machine, [base, *(c for c in cases if c != base)], wanted, threads)
    facts = replace(facts, notes=(*facts.notes, *doubts(outcomes[0])))
    full = _with_contention(spec, where, base) if _estimates(described, facts) else None
    return Study(facts, described, tuple(outcomes), full)


def _expect_switches(machine: Mapping[str, Any], cases: Sequence[Case]) -> None:
    """UserError for options of switches, or of links between them, where these stay on as nothing passes them."""
    for option, flag in (("rest_switches", "--rest-switches"), ("upper_links", "--edge-only")):
        if not machine["contention"] and any(option in case.options for case in cases):
            why = "without contention (--network loggp) switches, and links between them, stay on"
            raise UserError(f"{flag} would do nothing: {why}")


def doubts(base: Outcome) -> list[str]:
    """What to say of calls that were not replayed as they are made: the program, or its trace, is not in order."""
    out = []
    if left := base.raw.get("unreceived"):
        which = f"from rank {left['source']} to rank {left['target']}, tag {left['tag']}"
        on = f"communicator {left['communicator']}"
        out.append(f"never received: {plural(left['count'], 'message')}, the first one {which}, {on}")
    if found := base.too_short:
        which = f"on rank {found.target} for {found.room} of {found.bytes} bytes from rank {found.source}"
        on = f"tag {found.tag}, communicator {found.communicator}"
        out.append(f"too short for their message: {plural(found.count, 'receive')}, the first one {which}, {on}")
    if sizes := base.unlike_sizes:
        which = f"{sizes.operation} on communicator {sizes.communicator}"
        sides = [f"{size} bytes on rank {rank} (call {call})" for rank, call, size in (sizes.before, sizes.then)]
        found_of = plural(sizes.count, "collective call")
        out.append(f"of different sizes: {found_of}, the first one {which} with {' and '.join(sides)}")
    if calls := base.raw.get("unplaced"):
        out.append(
            f"replayed without messages: {plural(calls, 'call')} on communicators of which the trace does not say who "
            "is in them, such as those with spawned ranks, or who are neighbours"
        )
    if calls := base.raw.get("let_go"):
        out.append(
            f"left before their end: {plural(calls, 'call')} of ranks with several threads, as all ranks would have "
            "waited for ever; times after that say less"
        )
    if calls := base.raw.get("refused"):
        out.append(f"left out: {plural(calls, 'call')} that returned an error; messages of theirs are not replayed")
    return out


def _estimates(machine: Mapping[str, Any], facts: ProgramFacts) -> bool:
    return not machine["contention"] and facts.events <= _MOST_CALLS


def _with_contention(spec: ProgramSpec, where: machines.MachineSpec, base: Case) -> float:
    """Run time that the simulation without contention is an estimate of."""
    full = machines.load(machines.MachineSpec(where.platform, dict(where.settings) | {"contention": True}))
    return simulate(spec, full, [base], Wanted(details=False))[0].run_time_s
