"""The table of what each call means: calls.toml, expanded and checked."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

KINDS = ("other", "send", "recv", "start", "wait", "test", "probe", "collective", "rma", "rma_sync", "io", "setup")
SIZES = ("none", "count", "send", "recv", "send_each", "sendv", "sendw", "recv_each", "recvcounts", "origin", "one", "parts")
WAKES = ("none", "peer", "all", "later", "recent")
FREES = ("", "comm", "type", "win", "file", "request", "session")

# MPICH's own functions that make generalized requests, as far as they mean what one of MPI means.
EXTENSIONS = {"MPIX_Grequest_class_allocate": "Grequest_start", "MPIX_Grequest_start": "Grequest_start"}

# What communicators have that these calls make; all others have no topology.
TOPOLOGIES = {
    "Cart_create": "MPI_CART",
    "Cart_sub": "MPI_CART",
    "Graph_create": "MPI_GRAPH",
    "Dist_graph_create": "MPI_DIST_GRAPH",
    "Dist_graph_create_adjacent": "MPI_DIST_GRAPH",
}


@dataclass(frozen=True)
class Call:
    base: str            # "Send": the function is MPI_Send, and MPI_Send_c where there is one
    kind: str
    blocks: bool = False
    peer: str = ""
    tag: str = ""
    size: str = "none"
    wakes: str = "none"
    frees: str = ""
    why: str = ""
    extension: bool = False  # not of MPI (yet): the function is MPIX_Send
    twin: bool = False   # a non-blocking call and tests can stand for it, see src/pmpi/twins.hpp


def _checked(call: Call) -> Call:
    for value, allowed, what in (
        (call.kind, KINDS, "kind"),
        (call.size, SIZES, "size"),
        (call.wakes, WAKES, "wakes"),
        (call.frees, FREES, "frees"),
    ):
        if value not in allowed:
            raise SystemExit(f"calls.toml: {call.base}: {what} '{value}' is none of {', '.join(allowed)}")
    if not call.blocks and not call.why:
        raise SystemExit(f"calls.toml: {call.base} does not sleep, so it needs a 'why'")
    return call


def load_table(path: Path) -> dict[str, Call]:
    """Calls by base name, sorted."""
    data = tomllib.loads(path.read_text())
    calls: dict[str, Call] = {}

    def add(call: Call) -> None:
        if call.base in calls:
            raise SystemExit(f"calls.toml: {call.base} stands there twice")
        calls[call.base] = _checked(call)

    for group in data["group"]:
        fields = {k: v for k, v in group.items() if k != "names"}
        for name in group["names"]:
            add(Call(base=name, **fields))
    for rule in data["derive"]:
        for call in [c for c in calls.values() if c.kind == rule["of"]]:
            prefix, suffix = rule.get("prefix", ""), rule.get("suffix", "")
            stem = prefix + (call.base[0].lower() + call.base[1:] if prefix else call.base)
            add(
                Call(
                    base=stem + suffix,
                    kind=rule["kind"],
                    blocks=rule["blocks"],
                    peer=call.peer,
                    size=call.size,
                    wakes=rule["wakes"],
                    why=rule["why"],
                )
            )
    return dict(sorted(calls.items()))


def functions(table: dict[str, Call]) -> list[tuple[str, Call]]:
    """Every function name that may be wrapped, in the order of its number; `_c` forms included."""
    names = [(f"MPI_{base}{suffix}", call) for base, call in table.items() if not call.extension for suffix in ("", "_c")]
    names += [(name, table[base]) for name, base in EXTENSIONS.items() if base in table]
    names += [(f"MPIX_{base}", call) for base, call in table.items() if call.extension or call.wakes == "later"]  # of these Open MPI 4.1 has some
    return sorted(names, key=lambda entry: entry[0])


def takes_long(name: str, call: Call) -> bool:
    """Calls that are made seldom, or for much data: what counts is that their wrappers are small, and take half the time to compile."""
    return call.kind in {"io", "setup", "other"} or call.base.endswith("_init") or name.endswith("_c")
