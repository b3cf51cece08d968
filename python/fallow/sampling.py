"""Reads the meters while a command runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from fallow import native

SCHEMA = "fallow-meters"
VERSION = 1
_LONGEST_PERIOD_S = 1.0  # often enough to see counters wrap that hold a minute or more


class Meter(Protocol):
    """An energy counter that never runs backwards."""

    @property
    def name(self) -> str:
        """Where and what: "powercap:package-0"."""

    @property
    def min_period_s(self) -> float:
        """Reading more often than this gives nothing new."""

    def energy_j(self) -> float:
        """Energy since some fixed moment; raises OSError if it cannot be read any more."""


class Sampler:
    """Samples meters in a thread from start() to stop(). A meter that fails is left out from then on."""

    def __init__(self, meters: Sequence[Meter], clock: Callable[[], int] = time.time_ns) -> None:
        self._meters = list(meters)
        self._clock = clock
        self._samples: list[list[tuple[int, float]]] = [[] for _ in meters]
        self._lost: dict[int, str] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="fallow-meters", daemon=True)

    @classmethod
    def start(cls, say: Callable[[str], None]) -> Sampler | None:
        """Finds the machine's meters and starts sampling; None where there are none."""
        find = native.part("find_meters")
        if not callable(find):
            return None
        try:
            meters: list[Meter] = list(find("/"))
        except Exception as error:  # no meter is worth the program's run
            say(f"meters are not read: {error}")
            return None
        if not meters:
            return None
        sampler = cls(meters)
        sampler.sample()
        sampler._thread.start()
        return sampler

    def sample(self) -> None:
        """Reads every meter once."""
        for index, meter in enumerate(self._meters):
            if index in self._lost:
                continue
            try:
                self._samples[index].append((self._clock(), meter.energy_j()))
            except (OSError, RuntimeError, ValueError) as error:
                self._lost[index] = str(error)

    def _loop(self) -> None:
        period = max([_LONGEST_PERIOD_S, *(m.min_period_s for m in self._meters)])
        while not self._done.wait(period):
            self.sample()

    def stop(self) -> dict[str, Any]:
        """Takes the last sample and returns everything, in the form of meters.json."""
        self._done.set()
        if self._thread.is_alive():
            self._thread.join()
        self.sample()
        return {
            "schema": SCHEMA,
            "version": VERSION,
            "meters": [
                {
                    "name": meter.name,
                    "min_period_s": meter.min_period_s,
                    "lost": self._lost.get(index),
                    "samples": self._samples[index],
                }
                for index, meter in enumerate(self._meters)
            ],
        }
