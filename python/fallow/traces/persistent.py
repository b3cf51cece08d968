"""Persistent requests, for formats that know none: each start becomes the non-blocking call that it stands for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import repeat

from fallow.traces import model
from fallow.traces.model import Event

AS_STARTED = "persistent requests as such (their starts are written as non-blocking calls)"
STARTS = ("MPI_Start", "MPI_Startall")
_CANCELLED, _FROM = 1, 3  # Outcome in src/trace/event.hpp


@cache
def _started_as(op: model.Op) -> int:
    """MPI_Send_init: MPI_Isend."""
    blocking = model.ops()[op.blocking].name.removeprefix("MPI_")
    return model.op_number(f"MPI_I{blocking[0].lower()}{blocking[1:]}")


class Starts:
    """The persistent requests of one rank."""

    def __init__(self) -> None:
        self.made: dict[int, Event] = {}

    def unfold(self, e: Event) -> list[Event]:
        """What the call begins: for a start what its requests were made for; any other call stands for itself."""
        op = model.ops()[e.op]
        if op.has(model.PERSISTENT):
            self.made.update((request, e) for request in e.requests)
        elif op.name == "MPI_Request_free":
            for request in e.requests:
                self.made.pop(request, None)
        elif op.name in STARTS and any(request in self.made for request in e.requests):
            return list(self._starts(e))
        return [e]

    def _starts(self, e: Event) -> Iterator[Event]:
        told = len(e.counts) == len(e.recv_counts) == len(e.requests)
        compute_ns = e.compute_ns
        for i, request in enumerate(e.requests):
            if (made := self.made.get(request)) is None:
                continue
            op = model.ops()[made.op]
            now = made._replace(
                op=_started_as(op), flags=e.flags, thread=e.thread, site=e.site, enter_ns=e.enter_ns, exit_ns=e.exit_ns,
                compute_ns=compute_ns, wait_ns=0, requests=(request,), completed=(),
            )  # fmt: skip
            compute_ns = 0
            if not op.has(model.COLLECTIVE):
                now = now._replace(counts=(), recv_counts=())
                now = with_outcome(now, e.counts[i], e.recv_counts[i]) if told else now
            yield now


def with_outcome(begun: Event, outcome: int, tag: int) -> Event:
    """A send or receive as it would have been made, had the program known what became of it."""
    op = model.ops()[begun.op]
    both = op.has(model.SENDS) and op.has(model.RECEIVES)
    if outcome >= _FROM and op.has(model.RECEIVES):
        source = outcome - _FROM
        return begun._replace(recv_peer=source, recv_tag=tag) if both else begun._replace(peer=source, tag=tag)
    if outcome != _CANCELLED:
        return begun
    return begun._replace(recv_peer=model.NULL_PEER) if both else begun._replace(peer=model.NULL_PEER)


def outcomes(e: Event) -> Iterable[tuple[int, tuple[int, int]]]:
    """Of a call that completes requests: each, its outcome and the tag received, 0 where nothing is said."""
    told = zip(e.counts, e.recv_counts, strict=False)
    said = len(e.completed) == len(e.counts) == len(e.recv_counts)
    return zip(e.completed, told if said else repeat((0, 0)), strict=False)


def freed(e: Event) -> tuple[int, ...]:
    """Requests that nobody waits for after this call; their numbers are given to others."""
    return tuple(e.requests) if model.ops()[e.op].name == "MPI_Request_free" else ()


def unfolded(events: Iterable[Event]) -> Iterator[Event]:
    """The calls of one rank with starts unfolded."""
    starts = Starts()
    for e in events:
        yield from starts.unfold(e)
