"""Events as readers collect them: packed but for the latest ones, so that millions of calls need little memory."""

from __future__ import annotations

import marshal
import zlib
from collections.abc import Iterator

from fallow.traces.model import Event

_BLOCK = 128  # events that are packed together


class PackedEvents:
    """Of one rank, used like a list. One is changed fast where it is one of the latest or near the last one taken."""

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._latest: list[Event] = []
        self._in_order = True
        self._number, self._open, self._changed = -1, list[Event](), False  # the block that was used last

    def __len__(self) -> int:
        return len(self._blocks) * _BLOCK + len(self._latest)

    def __iter__(self) -> Iterator[Event]:
        for number in range(len(self._blocks)):
            yield from tuple(self._events_of(number))
        yield from tuple(self._latest)

    def __getitem__(self, index: int) -> Event:
        events, at = self._around(index)
        return events[at]

    def __setitem__(self, index: int, event: Event) -> None:
        events, at = self._around(index)
        self._changed |= events is self._open
        events[at] = event

    def append(self, event: Event) -> None:
        """Adds it at the end."""
        self._in_order &= not self._latest or self._latest[-1].enter_ns <= event.enter_ns
        self._latest.append(event)
        if len(self._latest) == 2 * _BLOCK:
            self._blocks.append(_pack(self._latest[:_BLOCK]))
            del self._latest[:_BLOCK]

    def put_in_order(self) -> None:
        """By when they begin. All of them are unpacked at a time if they are not so already."""
        if not self._in_order:
            ordered = sorted(self, key=lambda e: e.enter_ns)
            PackedEvents.__init__(self)
            for event in ordered:
                self.append(event)

    def _around(self, index: int) -> tuple[list[Event], int]:
        number, at = divmod(index, _BLOCK)
        if number < len(self._blocks):
            return self._events_of(number), at
        return self._latest, index - len(self._blocks) * _BLOCK

    def _events_of(self, number: int) -> list[Event]:
        if number != self._number:
            if self._changed:
                self._blocks[self._number] = _pack(self._open)
            columns = marshal.loads(zlib.decompress(self._blocks[number]))  # noqa: S302  # our own
            self._open = [Event._make(fields) for fields in zip(*columns, strict=True)]
            self._number, self._changed = number, False
        return self._open


def _pack(events: list[Event]) -> bytes:
    """Field by field, as these are more alike."""
    return zlib.compress(marshal.dumps(tuple(zip(*events, strict=True))), 1)
