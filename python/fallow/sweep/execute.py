"""Runs a study's points on Dask: processes of this machine, jobs under Slurm, or a scheduler that runs already."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import logging
import multiprocessing
import os
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from fallow.errors import UserError
from fallow.progress import Bar
from fallow.sweep.point import describe, evaluate
from fallow.sweep.store import Row, Store
from fallow.sweep.study import Point, SweepStudy
from fallow.text import plural, seconds

_FLUSH_S = 2.0  # what a kill may cost: the points of so much time
_FLUSH_ROWS = 500
_AHEAD = 3  # points per worker that are under way
_ADDRESS = re.compile(r"//(?:[^\s:/\[\]]+|\[[0-9a-fA-F:.]+\]):([0-9]{1,5})/?")
_CLOSE_S = 10
_LAST_PORT = 65535
_SCRATCH = ".dask"  # among the results, whose lock says that nobody else is there
_LOST_WORKERS = 2  # a point that took so many workers with it has failed
_LOOK_S, _TELL_S, _TELL_AGAIN_S = 2.0, 10.0, 60.0  # while there is no worker
_WAITS = {"slurm": "the jobs wait in the queue, or have failed: see squeue", "local": "they do not start"}


@dataclass(frozen=True)
class Place:
    """Where to run: kind is local, slurm or an address."""

    kind: str
    workers: int = 0  # 0: as many as there are cores

    @classmethod
    def parse(cls, text: str) -> Place:
        """'local', 'local:4', 'slurm', 'slurm:20', 'dask://host:8786'."""
        kind, _, rest = text.partition(":")
        if kind in ("dask", "tcp", "tls") and _is_address(rest):
            return cls(f"{'tcp' if kind == 'dask' else kind}:{rest}")
        if kind in ("local", "slurm") and (not rest or (rest.isdecimal() and int(rest) > 0)):
            return cls(kind, int(rest or 0))
        raise UserError(f"'{text}' is no place to run; say local, local:4, slurm, slurm:20 or dask://HOST:PORT")


def _is_address(text: str) -> bool:
    """Whether it is //HOST:PORT."""
    found = _ADDRESS.fullmatch(text)
    return found is not None and 0 < int(found[1]) <= _LAST_PORT


def _distributed() -> Any:  # noqa: ANN401  # modules without types
    try:
        dask, distributed = importlib.import_module("dask"), importlib.import_module("distributed")
    except ImportError:
        raise UserError("sweeps need Dask: pip install 'fallow[sweep]'") from None
    dask.config.set({
        "distributed.scheduler.allowed-failures": _LOST_WORKERS, "distributed.worker.memory.terminate": False,
        "distributed.worker.memory.pause": False, "distributed.worker.memory.spill": False,
        "distributed.worker.memory.target": False, "distributed.comm.timeouts.connect": "60s",
    })  # fmt: skip
    for name in ("distributed", "distributed.client", "tornado.application"):  # each has a level of its own
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return distributed


def _slurm(workers: int, options: Mapping[str, Any]) -> Any:  # noqa: ANN401
    try:
        jobqueue = importlib.import_module("dask_jobqueue")
    except ImportError:
        raise UserError("--on slurm needs dask-jobqueue: pip install 'fallow[sweep]'") from None
    if shutil.which("sbatch") is None:
        raise UserError("--on slurm: there is no command sbatch here; start the sweep where Slurm's commands are")
    said: dict[str, Any] = {"cores": 1, "processes": 1, "memory": "4GB"} | dict(options)
    jobs = said.pop("jobs", 1)
    cluster: Any = None
    try:
        free_port = {"dashboard_address": ":0"}  # Dask complains where its usual one is in use
        said["scheduler_options"] = free_port | dict(said.get("scheduler_options", {}))
        count = (workers or int(jobs)) * int(said["processes"])
        cluster = jobqueue.SLURMCluster(**said)
        for _ in range(count):
            cluster.worker_spec.update(cluster.new_worker_spec())
        cluster.sync(cluster._correct_state)  # as scale() does, but it waits, and raises what sbatch refuses
        return cluster
    except (TypeError, ValueError, OSError, RuntimeError) as error:
        if cluster is not None:
            with contextlib.suppress(Exception):  # it complains of the jobs that never were
                cluster.close(timeout=_CLOSE_S)
            cluster.shutdown_on_close = False
        told = str(error)
        raise UserError("Slurm: " + " ".join((told.rpartition("stderr:")[2].strip() or told).split())) from None


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """What is started herein never hears an interrupt, which a terminal sends to all processes; we do, afterwards.

    So we hear what else interrupts us; what is started has to end by that.
    """
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    ours = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in ours:
        signal.signal(number, lambda number, _frame: came.append(number))
    tracker = importlib.import_module("multiprocessing.resource_tracker")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})  # it passes over the other two by itself
    try:
        tracker.ensure_running()  # it would let interrupts through again in the thread that starts it
        signal.pthread_sigmask(signal.SIG_SETMASK, before | {signal.SIGINT})
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number, handler in ours.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


@contextlib.contextmanager
def _taken_along(scratch: Path) -> Iterator[None]:
    """A signal that comes a second time ends the command at once; what is in `scratch` goes with it."""

    def end(number: int, _frame: FrameType | None) -> None:
        for worker in multiprocessing.active_children():  # or it makes files while the others are taken away
            worker.kill()
        shutil.rmtree(scratch, ignore_errors=True)
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    def first(number: int, frame: FrameType | None) -> None:
        try:
            ours[number](number, frame)
        finally:
            signal.signal(number, end)

    main = threading.current_thread() is threading.main_thread()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP) if main}
    ours = {int(number): handler for number, handler in handlers.items() if callable(handler)}
    for number in ours:
        signal.signal(number, first)
    try:
        yield
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _ended(cluster: Any) -> Iterator[Any]:  # noqa: ANN401
    """Closes it behind us. Of a worker that is just being started anew, Dask may complain; all is done by then."""
    try:
        yield cluster
    finally:
        for _ in range(2):
            try:
                cluster.close(timeout=_CLOSE_S)
                break
            except AssertionError:
                continue


@contextlib.contextmanager
def _scratch(directory: Path) -> Iterator[None]:
    """Where Dask puts its directories and locks: it never takes all of them away, and a kill leaves more of them."""
    dask = importlib.import_module("dask")
    try:
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
    except OSError as error:
        raise UserError(f"{directory}: {error.strerror}; choose another directory with --results") from None
    with _taken_along(directory), dask.config.set({"temporary-directory": str(directory.absolute())}):
        try:
            yield
        finally:
            shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def client(place: Place, slurm: Mapping[str, Any], scratch: Path, points: int) -> Iterator[Any]:
    """A Dask client for so many points; what was started for it ends with it. No process here is for nothing."""
    distributed = _distributed()
    with contextlib.ExitStack() as stack:
        if place.kind == "local":
            stack.enter_context(_scratch(scratch))
            count = min(place.workers or len(os.sched_getaffinity(0)), points)
            with _uninterrupted():
                cluster = stack.enter_context(_ended(distributed.LocalCluster(
                    n_workers=count, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=0,
                    silence_logs=logging.CRITICAL,
                )))  # fmt: skip
            yield stack.enter_context(distributed.Client(cluster))
        elif place.kind == "slurm":
            cluster = stack.enter_context(_slurm(place.workers, slurm))
            yield stack.enter_context(distributed.Client(cluster))
        else:
            try:
                connected = distributed.Client(place.kind, timeout="20s")
            except (OSError, TimeoutError, ValueError) as error:
                raise UserError(f"no Dask scheduler answers at {place.kind}: {error}") from None
            yield stack.enter_context(connected)


class _Progress:
    """Rows that are not on disk yet, and the bar."""

    def __init__(self, store: Store, total: int, done: int) -> None:
        self.store, self.total, self.done = store, total, done
        self.before = done
        self.failed = 0
        self.rows: list[Row] = []
        self.written = time.monotonic()
        self.bar = Bar("sweeping")

    def add(self, row: Row) -> None:
        self.rows.append(row)
        self.done += 1
        self.failed += row["status"] != "done"
        if len(self.rows) >= _FLUSH_ROWS or time.monotonic() - self.written > _FLUSH_S:
            self.flush()
        left = self.total - self.before
        note = f", {self.done} of {plural(self.total, 'point')}" + (f", {self.failed} failed" if self.failed else "")
        self.bar.show((self.done - self.before) / max(left, 1), note)

    def flush(self) -> None:
        self.store.add(self.rows)
        self.rows = []
        self.written = time.monotonic()


@contextlib.contextmanager
def _told_of_none(found: Any, place: Place, bar: Bar) -> Iterator[None]:  # noqa: ANN401
    """Says while there is no worker, again and again: jobs may stand in a queue for days, or end before they begin."""
    over = threading.Event()

    def look() -> None:
        seen, told = time.monotonic(), 0.0
        with contextlib.suppress(Exception):  # the scheduler is lost, which another one tells
            while not over.wait(_LOOK_S):
                now = time.monotonic()
                if found.scheduler_info(n_workers=-1)["workers"]:
                    seen, told = now, 0.0
                elif now - (told or seen) >= (_TELL_AGAIN_S if told else _TELL_S) and not over.is_set():
                    told = now
                    bar.close()
                    where = _WAITS.get(place.kind, f"at {place.kind}; start some there")
                    print(f"fallow: no worker for {seconds(round(now - seen))}, {where}", file=sys.stderr, flush=True)

    watching = threading.Thread(target=look, daemon=True)
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join(_CLOSE_S)


def _lost(point: Point, error: BaseException) -> Row:
    what = f"took its worker with it or could not be run: {type(error).__name__}: {error}"
    return describe(point) | {"status": "failed", "error": what}


def _run(found: Any, points: list[Point], progress: _Progress, *, alone: bool) -> list[Point]:  # noqa: ANN401
    """Keeps some points per worker under way, or one in all. Returns those that were not alone when workers died."""
    distributed = _distributed()
    queue = iter(points)
    stream = distributed.as_completed([], raise_errors=False)
    under_way: dict[str, Point] = {}
    suspects: list[Point] = []

    def feed() -> None:
        most = 1 if alone else _AHEAD * max(1, len(found.scheduler_info(n_workers=-1)["workers"]))
        for point in itertools.islice(queue, max(0, most - len(under_way))):
            key = f"point-{point.id}{'-alone' if alone else ''}"
            future = found.submit(evaluate, point, key=key, pure=True)
            under_way[future.key] = point
            stream.add(future)

    feed()
    for future in stream:
        point = under_way.pop(future.key)
        error = future.exception()
        if isinstance(error, distributed.KilledWorker) and not alone:
            suspects.append(point)
        else:
            progress.add(_lost(point, error) if error is not None else future.result())
        future.release()
        feed()
    return suspects


def _drive(found: Any, waiting: list[Point], progress: _Progress) -> None:  # noqa: ANN401
    """Runs all points. One that takes its worker with it brings others under suspicion: these run again, alone."""
    distributed = _distributed()
    try:
        suspects = _run(found, waiting, progress, alone=False)
        _run(found, suspects, progress, alone=True)
    except (distributed.CancelledError, distributed.comm.CommClosedError, TimeoutError):  # of no point's making
        raise UserError("the Dask scheduler was lost; the same command goes on from what was kept") from None


def sweep(study: SweepStudy, store: Store, place: Place, *, retry: bool = False) -> tuple[int, int]:
    """Runs what is not in the store yet; returns how many points are done and how many failed. `retry`: failed too."""

    def settled(point: Point) -> bool:
        row = store.rows.get(point.id)
        return row is not None and (row["status"] == "done" or not retry)

    waiting = [p for p in study.points if not settled(p)]
    progress = _Progress(store, len(study.points), len(study.points) - len(waiting))
    if waiting:
        try:
            started = client(place, study.slurm, store.directory / _SCRATCH, len(waiting))
            with started as found, _told_of_none(found, place, progress.bar):
                _drive(found, waiting, progress)
        finally:
            progress.flush()
            progress.bar.close()
    rows = [store.rows[p.id] for p in study.points]
    return sum(r["status"] == "done" for r in rows), sum(r["status"] != "done" for r in rows)
