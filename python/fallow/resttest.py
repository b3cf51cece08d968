"""Whether computation takes longer on cores that rest now and then, as hypervisors and governors may make it."""

from __future__ import annotations

import multiprocessing
import os
import statistics
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection

_BLOCK_S = 2.5
_SETTLE_S = 1.0  # what the machine makes of resting shows only after about a second
_BLOCKS = 9  # every other one rests
_WORK = bytes(1 << 20)
_ROUNDS = 16  # about 4 ms of computation
_REST_S = 300e-6
_UNDISTURBED = 0.95  # what daemons and interrupts take of a machine without users is far less than the rest


@dataclass(frozen=True)
class RestTest:
    """Computation time on cores that rest, over that on cores that wait awake: one ratio for each turn of each core."""

    ratios: tuple[float, ...]
    core_share: float = 1.0
    """Of the turns that waited awake, the share of the time that the test had its cores."""

    @property
    def disturbed(self) -> bool:
        """Others had the cores for so long that the ratios say nothing: who rests gets a core back sooner."""
        return self.core_share < _UNDISTURBED

    @property
    def median(self) -> float:
        """Of all turns."""
        return statistics.median(self.ratios)

    @property
    def slower(self) -> bool:
        """By more than 1 %, and in nearly all turns."""
        return self.median > 1.01 and statistics.quantiles(self.ratios, n=8)[0] > 1.0


def compare_turns(blocks: Sequence[float]) -> list[float]:
    """Ratios from the times of turns that waited awake, rested, waited awake and so on, an odd number of them: each of
    those that rested over the mean of its neighbours, so that what drifts cancels out."""
    return [blocks[i] / ((blocks[i - 1] + blocks[i + 1]) / 2) for i in range(1, len(blocks), 2)]


def _block(until: float, rests: bool, settle_s: float) -> tuple[float, float]:
    """Its time for a piece of computation, and the share of time in which it had the core."""
    begun, on_core = time.monotonic(), time.process_time()
    settled = begun + settle_s
    times: list[float] = []
    while not times or time.monotonic() < until:
        start = time.perf_counter()
        for _ in range(_ROUNDS):
            zlib.crc32(_WORK)
        end = time.perf_counter()
        if time.monotonic() >= settled:
            times.append(end - start)
        if rests:
            time.sleep(_REST_S)
        else:
            while time.perf_counter() < end + _REST_S:
                pass
    return statistics.median(times), (time.process_time() - on_core) / max(time.monotonic() - begun, 1e-9)


def _on_core(core: int, start: float, block_s: float, result: Connection) -> None:
    os.sched_setaffinity(0, {core})
    settle_s = _SETTLE_S * block_s / _BLOCK_S
    blocks = [_block(start + (i + 1) * block_s, i % 2 == 1, settle_s) for i in range(_BLOCKS)]
    result.send((compare_turns([took for took, _ in blocks]), statistics.mean(share for _, share in blocks[::2])))


def measure(show: Callable[[float], None], block_s: float = _BLOCK_S) -> RestTest:
    """Keeps every core of this process busy for about 22 s; calls `show` now and then with the share that is done."""
    context = multiprocessing.get_context("fork")
    start, length_s = time.monotonic(), _BLOCKS * block_s
    results, workers = [], []
    for core in sorted(os.sched_getaffinity(0)):
        ours, theirs = context.Pipe(duplex=False)
        worker = context.Process(target=_on_core, args=(core, start, block_s, theirs), daemon=True)
        worker.start()
        theirs.close()
        results.append(ours)
        workers.append(worker)
    ratios: list[float] = []
    shares: list[float] = []
    for result in results:
        while not result.poll(0.2):
            show(min((time.monotonic() - start) / length_s, 1.0))
        turns, share = result.recv()
        ratios += turns
        shares.append(share)
    for worker in workers:
        worker.join()
    return RestTest(tuple(ratios), min(shares))
