"""Reads the meters while a command runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from fallow import native, text

_Answer = TypeVar("_Answer")
SCHEMA = "fallow-meters"
VERSION = 1
_LONGEST_PERIOD_S = 1.0
_MOST_SAMPLES = 4096
"""Beyond, every second sample is dropped and samples are kept half as often: the ends are what energy needs."""
PATIENCE_S = 10.0
"""Sensors behind slow buses take seconds; who takes longer hangs, and would do so for ever."""
HANGS_REMEDY = "see which tool hangs too (nvidia-smi, sensors) and what the kernel says (dmesg); it may take a restart"


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


def _ask(work: Callable[[], _Answer]) -> Future[_Answer]:
    """Begins it in a thread that nobody has to wait for."""
    answer: Future[_Answer] = Future()

    def run() -> None:
        try:
            answer.set_result(work())
        except Exception as error:
            answer.set_exception(error)

    threading.Thread(target=run, name="fallow-meters", daemon=True).start()
    return answer


def answer_of(work: Callable[[], _Answer], patience_s: float = PATIENCE_S) -> _Answer:
    """What `work` returns or raises; TimeoutError if that takes too long: it then goes on, and nobody waits for it."""
    return _wait_for(_ask(work), patience_s)


def _wait_for(answer: Future[_Answer], patience_s: float) -> _Answer:
    try:
        return answer.result(patience_s)
    except TimeoutError:
        raise TimeoutError(f"no answer in {text.seconds(patience_s)}: a driver hangs") from None


def period_s(meters: Iterable[Meter]) -> float:
    """How often to read: as often as the neediest asks for, and no more often than brings something new."""
    all_of_them = list(meters)
    longest = min([_LONGEST_PERIOD_S, *(m.max_period_s for m in all_of_them)])
    return max([longest, *(m.min_period_s for m in all_of_them if m.min_period_s <= m.max_period_s)])


class Sampler:
    """Keeps what meters say from the first sample on."""

    def __init__(self, found: Found, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._found = found
        self._clock = clock
        self._samples: list[list[tuple[int, dict[str, float]]]] = [[] for _ in found.meters]
        self._stride = 1
        self._count = 0

    def sample(self, keep: bool = True) -> None:
        """Reads every meter once."""
        for meter, samples in zip(self._found.meters, self._samples, strict=True):
            reading = (self._clock(), dict(meter.read()))
            if keep:
                samples.append(reading)
        if any(len(samples) > _MOST_SAMPLES for samples in self._samples):
            self._samples = [samples[::2] for samples in self._samples]
            self._stride *= 2

    def sample_until(self, done: threading.Event) -> Sampler:
        """Reads every meter as often as it asks for, and once more at the end; returns itself."""
        period = period_s(self._found.meters)
        while not done.wait(period):
            self._count += 1
            self.sample(keep=self._count % self._stride == 0)
        self.sample()
        return self

    def told(self, command_ns: tuple[int, int] | None = None) -> dict[str, Any]:
        """Everything, in the form of meters.json. `command_ns`: when the command began and ended, by the same clock."""
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


class SamplingThread:
    """Finds and samples the machine's meters in a thread of its own: a driver that hangs holds nobody up for long."""

    def __init__(self, search: Callable[[], Found | None] = find, patience_s: float = PATIENCE_S) -> None:
        self._search = search
        self._patience_s = patience_s
        self._sampled: Future[Sampler] = Future()
        self._done = threading.Event()

    def start(self, say: Callable[[str], None]) -> SamplingThread | None:
        """Returns once all have been read; None where there are none, or one does not answer."""
        try:
            sampler = answer_of(self._first_sample, self._patience_s)
            if sampler is None:
                return None
            self._sampled = _ask(lambda: sampler.sample_until(self._done))
        except Exception as error:  # no meter is worth the program's run
            say(f"meters are not read: {error}")
            return None
        return self

    def stop(self, command_ns: tuple[int, int], say: Callable[[str], None]) -> dict[str, Any] | None:
        """Takes the last sample and returns all, as Sampler.told() does; None if it could not be had."""
        self._done.set()
        try:
            return _wait_for(self._sampled, self._patience_s).told(command_ns)
        except Exception as error:
            say(f"what meters counted is not known: {error}")
            return None

    def _first_sample(self) -> Sampler | None:
        found = self._search()
        if found is None or not found.meters:
            return None
        sampler = Sampler(found)
        sampler.sample()
        return sampler
