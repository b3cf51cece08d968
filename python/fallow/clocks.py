"""Clocks of hosts that disagree: the times of all ranks on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fallow import text

if TYPE_CHECKING:
    from fallow import _native


def _spans(read: Sequence[_native.RankDict]) -> dict[str, tuple[int, int]]:
    """From the first to the last MPI call on each host, in the order of ranks."""
    out: dict[str, tuple[int, int]] = {}
    for rank in read:
        for thread in rank["threads"]:
            begin, end = out.get(rank["host"], (thread["first_ns"], thread["last_ns"]))
            out[rank["host"]] = min(begin, thread["first_ns"]), max(end, thread["last_ns"])
    return out


def errors(read: Sequence[_native.RankDict], programs: Sequence[int]) -> dict[str, tuple[int, str]]:
    """By how many ns the clock of a host is ahead, and of which host's.

    Ranks of one MPI program call MPI at the same time. Where those of two hosts do not, a clock is wrong, and by how
    much tells their beginning: MPI_Init lets no rank go long before the others.
    """
    found: dict[str, tuple[int, str]] = {}
    ranks_of: dict[int, list[_native.RankDict]] = {}
    for rank, program in zip(read, programs, strict=True):
        ranks_of.setdefault(program, []).append(rank)
    for ranks in ranks_of.values():
        spans = _spans(ranks)
        if not spans:
            continue
        first, (begin, end) = next(iter(spans.items()))
        ahead, of = found.get(first, (0, first))
        for host, span in spans.items():
            if host not in found and (span[0] > end or span[1] < begin):
                found[host] = span[0] - begin + ahead, of
    return found


def _move(rank: _native.RankDict, by: int) -> None:
    rank["start_ns"] += by
    rank["last_ns"] += by
    for thread in rank["threads"]:
        thread["first_ns"] += by
        thread["last_ns"] += by
        thread["events"] = [(e[0] + by, e[1] + by, *e[2:]) for e in thread["events"]]
        if (wait := thread["open"]) is not None:
            thread["open"] = wait | {"since_ns": wait["since_ns"] + by, "seen_ns": wait["seen_ns"] + by}


def correct(read: Sequence[_native.RankDict], programs: Sequence[int]) -> list[str]:
    """Moves the times of ranks on hosts whose clock is clearly wrong; returns a line about each such host."""
    found = errors(read, programs)
    for rank in read:
        if rank["host"] in found:
            _move(rank, -found[rank["host"]][0])
    said = []
    for host, (ahead, of) in found.items():
        off = f"{text.seconds(abs(ahead) * 1e-9)} {'ahead of' if ahead > 0 else 'behind'}"
        said.append(f"the clock of {host} is {off} that of {of}: its ranks' times are moved by that")
    return said
