"""Where a program calls MPI and what that costs: by function and by call site, over all ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fallow import symbols
from fallow.model import FunctionReport, Place, SiteReport

if TYPE_CHECKING:
    from fallow import _native

MAX_SITES = 200
"""Sites that are named; the rest of the time is rarely worth a look."""

_OVERFLOW = "(further call sites)"
_SEVERAL = "several"
SEVERAL_COMMS = 0xFFFF
"""The communicator's number where a call site used too many to tell them apart."""


@dataclass
class _Sum:
    calls: int = 0
    time_s: float = 0.0
    size_bytes: int = 0
    gap_s: float = 0.0
    wait_awake_s: float = 0.0
    wait_asleep_s: float = 0.0
    wait_max_s: float = 0.0
    wake_delay_s: float = 0.0
    sleeps: int = 0
    comm_size: int = 0
    ranks: int = 0
    last_rank: int = -1  # by its place among those that were read

    def add(self, row: _native.SiteDict | _native.OpDict) -> None:
        self.calls += row["calls"]
        self.time_s += row["time_s"]
        self.size_bytes += row["size_bytes"]
        self.wait_awake_s += row["wait_awake_s"]
        self.wait_asleep_s += row["wait_asleep_s"]
        self.wake_delay_s += row["wake_delay_s"]

    def add_site(self, site: _native.SiteDict, rank: int) -> None:
        self.add(site)
        self.gap_s += site["gap_s"]
        self.sleeps += site["sleeps"]
        self.wait_max_s = max(self.wait_max_s, site["wait_max_s"])
        self.comm_size = max(self.comm_size, site["comm_size"])
        self.ranks += rank != self.last_rank
        self.last_rank = rank


def functions(ranks: list[_native.RankDict]) -> list[FunctionReport]:
    """Totals by MPI function, most time first."""
    sums: dict[tuple[str, str], _Sum] = {}
    for rank in ranks:
        for thread in rank["threads"]:
            for row in thread["ops"]:
                name, kind, _ = rank["ops"][row["op"]]
                sums.setdefault((name, kind), _Sum()).add(row)
    rows = [
        FunctionReport(name, kind, s.calls, s.time_s, s.size_bytes, s.wait_awake_s, s.wait_asleep_s, s.wake_delay_s)
        for (name, kind), s in sums.items()
    ]
    return sorted(rows, key=lambda row: (-row.time_s, row.function))


_Key = tuple[str, str, int, int, int]
"""Function, module, offset in it, communicator, and the program's number of ranks: runs may have several."""


def place(rank: _native.RankDict, site: _native.PlaceDict) -> tuple[str, int]:
    """The module that a call site lies in, and where; both are nothing where that is not known."""
    if site["module"] < 0:
        return "", site["address"]
    base, path = rank["modules"][site["module"]]
    return path, max(0, site["address"] - base)


def _key(rank: _native.RankDict, site: _native.SiteDict) -> _Key:
    if site["address"] == 0:
        return _SEVERAL, "", 0, SEVERAL_COMMS, 0
    function = rank["ops"][site["op"]][0]
    comm = site["comm"], rank["size"]
    return function, *place(rank, site), *comm


def last_places(ranks: list[_native.RankDict]) -> dict[tuple[str, int], Place]:
    """Names of where the calls were made with which the records end of ranks that did not reach their program's end."""
    threads = [(rank, thread) for rank in ranks if rank["end"] != "finalized" for thread in rank["threads"]]
    calls = ((rank, call) for rank, thread in threads for call in (thread["open"], thread["last"]) if call is not None)
    known = {place(rank, call) for rank, call in calls if call["module"] >= 0}
    return {where: Place(symbol.name, symbol.source) for where, symbol in symbols.resolve(known).items()}


class Sums:
    """All ranks' call sites, added up rank by rank."""

    def __init__(self) -> None:
        self._sums: dict[_Key, _Sum] = {}
        self._ranks = 0

    def add(self, rank: _native.RankDict) -> None:
        """Adds a rank, once."""
        for thread in rank["threads"]:
            for site in thread["sites"]:
                self._sums.setdefault(_key(rank, site), _Sum()).add_site(site, self._ranks)
        self._ranks += 1

    def build(self) -> tuple[list[SiteReport], int]:
        """The call sites with the most time, named, and how many more there are."""
        ordered = sorted(self._sums.items(), key=lambda item: (-item[1].time_s, item[0]))
        shown = ordered[:MAX_SITES]
        names = symbols.resolve((key[1], key[2]) for key, _ in shown)
        return [_report(key, s, names[key[1], key[2]]) for key, s in shown], len(ordered) - len(shown)


def _report(key: _Key, s: _Sum, symbol: symbols.Symbol) -> SiteReport:
    function, module, offset, comm, _ = key
    overflow = offset == 0 and not module
    return SiteReport(
        function=function,
        symbol=_OVERFLOW if overflow else symbol.name,
        source=symbol.source,
        module=module,
        offset=offset,
        comm=comm,
        comm_size=s.comm_size,
        ranks=s.ranks,
        calls=s.calls,
        time_s=s.time_s,
        size_bytes=s.size_bytes,
        gap_s=s.gap_s,
        wait_awake_s=s.wait_awake_s,
        wait_asleep_s=s.wait_asleep_s,
        wait_max_s=s.wait_max_s,
        wake_delay_s=s.wake_delay_s,
        sleeps=s.sleeps,
    )
