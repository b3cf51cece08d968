"""Chrome's trace event JSON, which ui.perfetto.dev opens: one process per rank, one slice per call."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fallow.traces import model
from fallow.traces.model import Event, Source
from fallow.traces.text import Losses, site_text

_NAMES = {model.ANY_PEER: '"any"', model.NULL_PEER: '"null"', model.ROOT_HERE: '"here"'}
_ANY = {model.ANY_TAG: '"any"'}
_FLAGS = (  # of the event, by bit; the clock of compute_ns is told by its being there
    "any source", "any tag", "failed", "in place", "complete", "", "counts lost", "requests lost", "after loss",
)  # fmt: skip
# Further fields, which are told where they say something: name, what says nothing, words.
_NUMBERS: tuple[tuple[str, int, dict[int, str]], ...] = (
    ("peer", model.NO_PEER, _NAMES),
    ("tag", model.NO_TAG, _ANY),
    ("root", model.NO_PEER, _NAMES),
    ("recv_peer", model.NO_PEER, _NAMES),
    ("recv_tag", model.NO_TAG, _ANY),
    ("recv_bytes", 0, {}),
    ("wait_ns", 0, {}),
)
_FIELDS = tuple((Event._fields.index(name), f',"{name}":', none, words) for name, none, words in _NUMBERS)


def _slice(rank: int, e: Event, sites: Sequence[str]) -> str:
    """`sites`: their texts as JSON. Put together by hand, as this is for each call."""
    row: Sequence[Any] = e
    args = "".join([f"{key}{words.get(row[at], row[at])}" for at, key, none, words in _FIELDS if row[at] != none])
    if e.flags & model.CPU_TIME and e.compute_ns:  # else it is the gap before the call
        args += f',"compute_ns":{e.compute_ns}'
    if e.site:
        args += f',"site":{sites[e.site - 1] if e.site <= len(sites) else e.site}'
    if flags := ", ".join([name for bit, name in enumerate(_FLAGS) if name and e.flags >> bit & 1]) if e.flags else "":
        args += f',"flags":"{flags}"'
    return (
        f'{{"name":"{model.ops()[e.op].name}","cat":"mpi","ph":"X","pid":{rank},"tid":{e.thread},'
        f'"ts":{e.enter_ns / 1000},"dur":{(e.exit_ns - e.enter_ns) / 1000},'
        f'"args":{{"comm":{e.comm},"size_bytes":{e.size_bytes}{args}}}}}'
    )


def write(source: Source, path: Path, losses: Losses) -> None:
    """Writes one JSON file; times in microseconds with three decimals."""
    if source.info.comms:
        losses.add("the members of communicators")
    sites = [json.dumps(site_text(site)) for site in source.info.sites]
    with path.open("w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit":"ns","traceEvents":[\n')
        for rank in range(source.info.size):
            host = source.info.hosts[rank] if rank < len(source.info.hosts) else ""
            name = {"name": "process_name", "ph": "M", "pid": rank, "args": {"name": f"rank {rank} {host}".strip()}}
            order = {"name": "process_sort_index", "ph": "M", "pid": rank, "args": {"sort_index": rank}}
            comma = "" if rank == 0 else ",\n"
            file.write(comma + json.dumps(name) + ",\n" + json.dumps(order))
            for event in source.events(rank):
                if event.requests or event.completed or event.counts or event.recv_counts:
                    losses.add("requests and counts per peer")
                file.write(",\n" + _slice(rank, event, sites))
        file.write("\n]}\n")
