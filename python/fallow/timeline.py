"""The last calls of every thread, cut down to what a picture can show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fallow.model import Timeline, TimelineRow

if TYPE_CHECKING:
    from fallow import _native

MAX_EVENTS = 60_000
"""In all rows together: about 3 MB of JSON."""
MAX_EVENTS_PER_THREAD = 4_000


def events_per_thread(files: int) -> int:
    """How many calls to read of each thread."""
    return max(50, min(MAX_EVENTS_PER_THREAD, MAX_EVENTS // max(1, files)))


def build(ranks: list[_native.RankDict], labels: list[str]) -> Timeline:
    """Rows of all threads that made calls, by rank; `labels` name the ranks."""
    threads = [
        (rank, label if index == 0 else f"{label}.{index}", index, thread)
        for rank, label in zip(ranks, labels, strict=True)
        for index, thread in enumerate(rank["threads"])
    ]
    entered = [thread["events"][0][0] for *_, thread in threads if thread["events"]]
    origin = min(entered, default=0)
    numbers: dict[str, int] = {}
    kinds: list[str] = []
    rows = []
    for rank, label, index, thread in threads:
        events = []
        for enter, leave, op, peer, size, _tag, _comm, _site, awake, asleep in thread["events"]:
            name, kind, _ = rank["ops"][op]
            if name not in numbers:
                numbers[name] = len(numbers)
                kinds.append(kind)
            events.append([enter - origin, leave - enter, numbers[name], awake, asleep, peer, size])
        rows.append(TimelineRow(rank["rank"], label, index, rank["end"], thread["calls"], events))
    return Timeline(origin, list(numbers), kinds, rows)
