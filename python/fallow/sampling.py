"""Reads the meters while a command runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from fallow import native

SCHEMA = "fallow-meters"
VERSION = 1
_LONGEST_PERIOD_S = 1.0
_MOST_SAMPLES = 4096
"""Beyond, every second sample is dropped and samples are kept half as often: the ends are what energy needs."""


class Domain(Protocol):
    """One thing whose energy a meter reports."""

    @property
    def name(self) -> str:
        """Unique within the meter."""

    @property
    def kind(self) -> str:
        """Node, package, dram and so on."""

    @property
    def inside(self) -> str | None:
        """The domain that already includes this one."""


class Meter(Protocol):
    """One source of energy figures, as the extension module offers it."""

    @property
    def name(self) -> str:
        """Of the kind of meter."""

    @property
    def domains(self) -> Sequence[Domain]:
        """What it reports on."""

    @property
    def measures(self) -> str:
        """One sentence: what the figures cover, and whose they are."""

    @property
    def min_period_s(self) -> float:
        """Reading more often brings nothing new."""

    @property
    def max_period_s(self) -> float:
        """Reading less often may miss something."""

    @property
    def off(self) -> Mapping[str, str]:
        """Why, by domain, for those that failed."""

    @property
    def lost_intervals(self) -> Mapping[str, int]:
        """Intervals left out because a counter jumped, by domain."""

    def read(self) -> Mapping[str, float]:
        """Energy in J since the first read, by domain; those that failed are left out."""


@dataclass(frozen=True)
class Found:
    """Meters, and the (meter, domain) pairs that add up without overlap."""

    meters: list[Meter]
    additive: list[tuple[str, str]]


def find(root: str = "/") -> Found | None:
    """The machine's meters; None where this build reads none."""
    search = native.part("find_meters")
    if not callable(search):
        return None
    found = search(root)
    return Found(list(found), list(found.additive))


def period_s(meters: Iterable[Meter]) -> float:
    """How often to read: as often as the neediest asks for, and no more often than brings something new."""
    all_of_them = list(meters)
    longest = min([_LONGEST_PERIOD_S, *(m.max_period_s for m in all_of_them)])
    return max([longest, *(m.min_period_s for m in all_of_them if m.min_period_s <= m.max_period_s)])


class Sampler:
    """Samples meters in a thread from start() to stop()."""

    def __init__(self, found: Found, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._found = found
        self._clock = clock
        self._samples: list[list[tuple[int, dict[str, float]]]] = [[] for _ in found.meters]
        self._stride = 1
        self._count = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="fallow-meters", daemon=True)

    @classmethod
    def start(cls, say: Callable[[str], None]) -> Sampler | None:
        """Finds the machine's meters and starts sampling; None where there are none."""
        try:
            found = find()
            if found is None or not found.meters:
                return None
            sampler = cls(found)
            sampler.sample()
            sampler._thread.start()
        except Exception as error:  # no meter is worth the program's run
            say(f"meters are not read: {error}")
            return None
        return sampler

    def sample(self, keep: bool = True) -> None:
        """Reads every meter once."""
        for meter, samples in zip(self._found.meters, self._samples, strict=True):
            reading = (self._clock(), dict(meter.read()))
            if keep:
                samples.append(reading)
        if any(len(samples) > _MOST_SAMPLES for samples in self._samples):
            self._samples = [samples[::2] for samples in self._samples]
            self._stride *= 2

    def _loop(self) -> None:
        period = period_s(self._found.meters)
        while not self._done.wait(period):
            self._count += 1
            self.sample(keep=self._count % self._stride == 0)

    def stop(self, command_ns: tuple[int, int] | None = None) -> dict[str, Any]:
        """Takes the last sample and returns everything, in the form of meters.json.

        `command_ns`: when the command began and ended, by this sampler's clock.
        """
        self._done.set()
        if self._thread.is_alive():
            self._thread.join()
        self.sample()
        return {
            "schema": SCHEMA,
            "version": VERSION,
            "command_ns": command_ns,
            "additive": self._found.additive,
            "meters": [
                {
                    "name": meter.name,
                    "measures": meter.measures,
                    "domains": [{"name": d.name, "kind": d.kind, "inside": d.inside} for d in meter.domains],
                    "off": dict(meter.off),
                    "lost_intervals": dict(meter.lost_intervals),
                    "samples": samples,
                }
                for meter, samples in zip(self._found.meters, self._samples, strict=True)
            ],
        }
