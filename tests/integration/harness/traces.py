"""Traces that runs left, read through Fallow's own reader in the environment of the `fallow` command."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.fallow import Fallow
from harness.running import HANGS_S

_DUMP = """
import json, sys
from pathlib import Path
from fallow.traces.found import find_files
from fallow.traces.model import CREATES, PERSISTENT, FileSource, ops
source = FileSource(find_files([Path(sys.argv[1])]))
ranks = []
for rank in range(source.info.size):
    events = []
    for e in source.events(rank):
        d = e._asdict()
        op = ops()[e.op]
        d["op"] = op.name
        d["creates"], d["persistent"] = op.has(CREATES), op.has(PERSISTENT)
        d["members"] = list(source.info.members(e.comm, rank))
        events.append(d)
    ranks.append({"events": events, **source.ranks[rank]} | {"count": source.ranks[rank]["events"], "events": events})
print(json.dumps({"ranks": ranks, "clock": source.info.clock, "problems": source.reader.problems()}))
"""


@dataclass(frozen=True)
class Call:
    """One event, by the names of fallow.traces.model.Event."""

    op: str
    members: tuple[int, ...]
    fields: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        return self.fields[name]


@dataclass(frozen=True)
class Trace:
    """A trace as lists of events by rank."""

    ranks: list[list[Call]]
    complete: list[bool]
    dropped: int
    clock: str
    problems: list[str] = field(default_factory=list)


def read_trace(fallow: Fallow, path: Path) -> Trace:
    """All events of a trace, its parts, or a directory with either."""
    python = fallow.exe.with_name("python")
    done = subprocess.run([python, "-c", _DUMP, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    calls = [[Call(e["op"], tuple(e["members"]), e) for e in r["events"]] for r in data["ranks"]]
    complete = [r["complete"] for r in data["ranks"]]
    return Trace(calls, complete, sum(r["dropped"] for r in data["ranks"]), data["clock"], data["problems"])


def check_requests(calls: list[Call]) -> None:
    """Every number is created once, completed or freed while it lives, and nothing lives at the end."""
    live: dict[int, bool] = {}
    for i, call in enumerate(calls):
        where = f"event {i}: {call.op} {call.fields}"
        if call.creates:
            for number in call.requests:
                assert number not in live, where
                live[number] = call.persistent
        elif call.op in ("MPI_Start", "MPI_Startall", "MPI_Cancel"):
            assert all(number in live for number in call.requests), where
        elif call.op == "MPI_Request_free":
            for number in call.requests:
                assert number in live, where
                del live[number]
        for number in call.completed:
            assert number in live, where
            if not live[number]:
                del live[number]
    assert not live, f"requests never completed: {live}"


def replay(fallow: Fallow, path: Path) -> dict[str, Any]:
    """What the simulator makes of a trace; fails if it cannot be replayed to the end."""
    done = subprocess.run([fallow.exe, "sim", path, "--json"], capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
