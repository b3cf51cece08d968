"""Timelines of simulations: what ranks, cores and links did, for the page, Perfetto and Paraver."""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from fallow import files
from fallow.errors import UserError
from fallow.traces import model, paraver
from fallow.traces.text import Losses

_PS_PER_NS = 1000
_PROCESSES = 500_000  # numbers that processes of ranks, and of links, have to themselves, unless there are more
LINK_STATES = ("sending", "low", "deep", "changing")


class CallSpan(NamedTuple):
    """A call. It waits at its end: first awake, then asleep. Times in ns."""

    rank: int
    op: int
    begin_ns: float
    end_ns: float
    waited_ns: float
    slept_ns: float


class LinkSpan(NamedTuple):
    """One state of one direction of a node's link: 0 to the switch, 1 from it. Times in ns."""

    node: int
    direction: int
    state: int
    begin_ns: float
    end_ns: float


@dataclass(frozen=True)
class Window:
    """What is drawn: a window of simulated time, the first ranks and their nodes' links."""

    from_us: float = 0.0
    to_us: float | None = None
    ranks: int = 32
    most: int = 40_000  # spans of calls, and of links

    def as_dict(self) -> dict[str, Any]:
        """As the native part takes it."""
        return {"from_us": self.from_us, "to_us": self.to_us, "ranks": self.ranks, "most": self.most}


@dataclass(frozen=True)
class Timeline:
    """Spans of calls and links in the order in which they ended."""

    calls: tuple[CallSpan, ...]
    links: tuple[LinkSpan, ...]
    complete_until_ns: float | None  # None: nothing was left out
    from_ns: float = 0.0
    to_ns: float = math.inf
    ranks: int = 0  # that are drawn, if the program has so many


def _rows(packed: bytes, width: int) -> Iterator[Sequence[int]]:
    values = array("q")
    values.frombytes(packed)
    for at in range(0, len(values), width):
        yield values[at : at + width]


def _ns(ps: int) -> float:
    return ps / _PS_PER_NS


def unpack(found: dict[str, Any] | None, window: Window | None) -> Timeline | None:
    """From the native arrays."""
    if found is None or window is None:
        return None
    calls = tuple(CallSpan(r[0], r[1], *(_ns(t) for t in r[2:])) for r in _rows(found["calls"], 6))
    links = tuple(LinkSpan(r[0], r[1], r[2], _ns(r[3]), _ns(r[4])) for r in _rows(found["links"], 5))
    until = found["complete_until"]
    to_ns = math.inf if window.to_us is None else window.to_us * 1000
    return Timeline(calls, links, None if until is None else _ns(until), window.from_us * 1000, to_ns, window.ranks)


def as_dict(t: Timeline, ends_ns: Sequence[float] = ()) -> dict[str, Any]:
    """For the page: rows of flat numbers, times in whole ns. `ends_ns`: of the ranks, as far as they are known: a rank
    that calls nothing in the window computes all through it."""
    names: dict[int, int] = {}
    ranks: dict[int, list[int]] = {rank: [] for rank in range(min(t.ranks, len(ends_ns)))}
    drawn_ns = min(t.to_ns, math.inf if t.complete_until_ns is None else t.complete_until_ns)
    for c in t.calls:
        index = names.setdefault(c.op, len(names))
        ranks.setdefault(c.rank, []).extend(
            (round(c.begin_ns), round(c.end_ns - c.begin_ns), index, round(c.waited_ns), round(c.slept_ns))
        )
    links: dict[tuple[int, int], list[int]] = {}
    for x in t.links:
        links.setdefault((x.node, x.direction), []).extend((round(x.begin_ns), round(x.end_ns - x.begin_ns), x.state))
    return {
        "functions": [model.ops()[op].name for op in names],
        "ranks": [
            {"rank": r, "spans": ranks[r], "until_ns": round(min(ends_ns[r], drawn_ns)) if r < len(ends_ns) else 0}
            for r in sorted(ranks)
        ],
        "links": [{"node": n, "direction": d, "spans": links[n, d]} for n, d in sorted(links)],
        "from_ns": t.from_ns,
        "to_ns": t.to_ns if math.isfinite(t.to_ns) else None,
        "complete_until_ns": t.complete_until_ns,
    }


# --- Perfetto


def _core_slices(c: CallSpan) -> Iterator[tuple[str, float, float]]:
    waits = c.end_ns - c.waited_ns - c.slept_ns
    if c.waited_ns > 0:
        yield "waiting awake", max(c.begin_ns, waits), c.waited_ns
    if c.slept_ns > 0:
        yield "at rest", c.end_ns - c.slept_ns, c.slept_ns  # asleep, slowed down or throttled, as the policy has it


def _perfetto_events(label: str, base: int, links: int, t: Timeline) -> Iterator[dict[str, Any]]:
    def slice_(pid: int, tid: int, name: str, begin: float, length: float) -> dict[str, Any]:
        return {"name": name, "ph": "X", "pid": pid, "tid": tid, "ts": begin / 1000, "dur": length / 1000}

    for rank in sorted({c.rank for c in t.calls}):
        yield {"name": "process_name", "ph": "M", "pid": base + rank, "args": {"name": f"{label}: rank {rank}"}}
        for tid, name in ((0, "calls"), (1, "core")):
            yield {"name": "thread_name", "ph": "M", "pid": base + rank, "tid": tid, "args": {"name": name}}
    for node in sorted({x.node for x in t.links}):
        for direction, name in ((0, "link to switch"), (1, "link from switch")):
            args = {"name": f"node {node} {name}"}
            yield {"name": "thread_name", "ph": "M", "pid": links, "tid": 2 * node + direction, "args": args}
    yield {"name": "process_name", "ph": "M", "pid": links, "args": {"name": f"{label}: links"}}
    for c in t.calls:
        yield slice_(base + c.rank, 0, model.ops()[c.op].name, c.begin_ns, c.end_ns - c.begin_ns)
        for name, begin, length in _core_slices(c):
            yield slice_(base + c.rank, 1, name, begin, length)
    for x in t.links:
        yield slice_(links, 2 * x.node + x.direction, LINK_STATES[x.state], x.begin_ns, x.end_ns - x.begin_ns)


def write_perfetto(timelines: Sequence[tuple[str, Timeline]], path: Path) -> None:
    """One JSON file; each policy's ranks and links are processes of their own."""
    half = max([_PROCESSES, *(c.rank + 1 for _, t in timelines for c in t.calls)])
    with files.whole(path) as file:
        file.write('{"displayTimeUnit":"ns","traceEvents":[\n')
        first = True
        for number, (label, t) in enumerate(timelines):
            for event in _perfetto_events(label, 2 * number * half, (2 * number + 1) * half, t):
                file.write(("" if first else ",\n") + json.dumps(event, separators=(",", ":")))
                first = False
        file.write("\n]}\n")


# --- Paraver


def _rest_states(t: Timeline, ranks_per_node: int, *, slowed: bool) -> Iterator[paraver.RestState]:
    """Rests of cores, and of the link to the switch, in the rows of each node's first rank."""
    resting = paraver.CORE_SLOWED if slowed else paraver.CORE_AT_REST
    for c in t.calls:
        if c.slept_ns > 0:
            begin = round(c.end_ns - c.slept_ns)
            yield paraver.RestState(c.rank, "core", begin, round(c.end_ns), resting)
    shown = {c.rank for c in t.calls}
    for x in t.links:
        rank = x.node * ranks_per_node
        if x.direction != 0 or x.state == 0 or rank not in shown:
            continue
        state = paraver.LINK_CHANGING if LINK_STATES[x.state] == "changing" else paraver.LINK_AT_REST
        yield paraver.RestState(rank, "link", round(x.begin_ns), round(x.end_ns), state)


def as_source(t: Timeline, program: str) -> model.MemorySource:
    """The calls with their simulated times."""
    size = max((c.rank for c in t.calls), default=0) + 1
    lists: list[list[model.Event]] = [[] for _ in range(size)]
    for c in t.calls:
        wait = round(c.waited_ns + c.slept_ns)
        lists[c.rank].append(model.Event(op=c.op, enter_ns=round(c.begin_ns), exit_ns=round(c.end_ns), wait_ns=wait))
    return model.MemorySource(model.Info(size=size, program=program), lists)


def write_paraver(t: Timeline, program: str, ranks_per_node: int, path: Path, *, slowed: bool = False) -> None:
    """`path` and, beside it, .pcf and .row: calls, and rows for the states of cores and links.

    `slowed`: cores rest by running slower, not by sleeping.
    """
    source, rests = as_source(t, program), list(_rest_states(t, ranks_per_node, slowed=slowed))
    try:
        files.whole_set(path, lambda target: paraver.write(source, target, Losses(), rests))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
