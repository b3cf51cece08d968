"""Chrome's trace event JSON, which ui.perfetto.dev opens: one process per rank, one slice per call and wait."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fallow.traces import model
from fallow.traces.model import Event, Source
from fallow.traces.text import Losses


def _slice(rank: int, e: Event) -> dict[str, Any]:
    args: dict[str, Any] = {"comm": e.comm, "size_bytes": e.size_bytes}
    for name, value, none in (
        ("peer", e.peer, -1),
        ("tag", e.tag, -1),
        ("root", e.root, -1),
        ("recv_bytes", e.recv_bytes, 0),
        ("wait_ns", e.wait_ns, 0),
        ("site", e.site, 0),
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
                file.write(",\n" + json.dumps(_slice(rank, event), separators=(",", ":")))
        file.write("\n]}\n")
