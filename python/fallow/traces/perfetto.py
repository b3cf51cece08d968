"""Chrome's trace event JSON, which ui.perfetto.dev opens: one process per rank, one slice per call."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fallow.traces import model
from fallow.traces.model import Event, Site, Source
from fallow.traces.text import Losses, site_text

_PEERS = {model.ANY_PEER: "any", model.NULL_PEER: "null", model.ROOT_HERE: "here"}
_TAGS = {model.ANY_TAG: "any"}
_FLAGS = (  # of the event, by bit; the clock of compute_ns is told by its being there
    "any source", "any tag", "failed", "in place", "complete", "", "counts lost", "requests lost", "after loss",
)  # fmt: skip


def _slice(rank: int, e: Event, sites: Sequence[Site]) -> dict[str, Any]:
    args: dict[str, Any] = {"comm": e.comm, "size_bytes": e.size_bytes}
    for name, value, none in (
        ("peer", _PEERS.get(e.peer, e.peer), -1),
        ("tag", _TAGS.get(e.tag, e.tag), -1),
        ("root", _PEERS.get(e.root, e.root), -1),
        ("recv_peer", _PEERS.get(e.recv_peer, e.recv_peer), -1),
        ("recv_tag", _TAGS.get(e.recv_tag, e.recv_tag), -1),
        ("recv_bytes", e.recv_bytes, 0),
        ("wait_ns", e.wait_ns, 0),
        ("compute_ns", e.compute_ns if e.flags & model.CPU_TIME else 0, 0),  # else it is the gap before the call
        ("site", site_text(sites[e.site - 1]) if 0 < e.site <= len(sites) else e.site, 0),
        ("flags", ", ".join(name for bit, name in enumerate(_FLAGS) if name and e.flags >> bit & 1), ""),
    ):
        if value != none:
            args[name] = value
    op = model.ops()[e.op]
    return {
        "name": op.name, "cat": "mpi", "ph": "X", "pid": rank, "tid": e.thread,
        "ts": e.enter_ns / 1000, "dur": (e.exit_ns - e.enter_ns) / 1000, "args": args,
    }  # fmt: skip


def write(source: Source, path: Path, losses: Losses) -> None:
    """Writes one JSON file; times in microseconds with three decimals."""
    if source.info.comms:
        losses.add("the members of communicators")
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
                file.write(",\n" + json.dumps(_slice(rank, event, source.info.sites), separators=(",", ":")))
        file.write("\n]}\n")
