"""How long a run lasted. Ranks may outlive its command: one that starts them in the background, or is killed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fallow import text
from fallow.ranks import Ranks
from fallow.rundir import RunInfo

if TYPE_CHECKING:
    from fallow import _native

_NOTED_S = 0.01
"""Ranks that end so much later than the command are told of; a launcher may be gone a little before its ranks."""
_NOTED_SHARE = 1e-3
"""The same as a share of the run time: clocks differ."""


def _last_ns(rank: _native.RankDict) -> int:
    return max([rank["last_ns"], *(thread["last_ns"] for thread in rank["threads"])])


def go_on(found: Ranks, now_ns: int) -> None:
    """Ranks of one thread that compute while their record is looked at have done so since their last call."""
    if found.notes:
        return  # their clocks were corrected, this one was not
    for rank, written in zip(found.read, found.written, strict=True):
        if not written or rank["end"] != "running" or rank["state"] != "computing" or len(rank["threads"]) != 1:
            continue
        [thread] = rank["threads"]
        if thread["open"] is None and thread["last_ns"] < now_ns:
            thread["computing_s"] += (now_ns - thread["last_ns"]) * 1e-9
            thread["last_ns"] = now_ns


def run_time_s(info: RunInfo | None, found: Ranks) -> float:
    """From the start of the command to its end, or to that of the last rank where that is later."""
    first = min((rank["start_ns"] for rank in found.read), default=0)
    if info is None or info.run_time_s is None:
        return (max(map(_last_ns, found.read), default=first) - first) * 1e-9
    # Each host has a clock of its own; where ranks were moved to another's, the launcher's is not that of its host's.
    began = {info.host: info.start_ns} if not found.notes else {}
    for rank in found.read:
        began[rank["host"]] = min(rank["start_ns"], began.get(rank["host"], rank["start_ns"]))
    return max([info.run_time_s, *((_last_ns(rank) - began[rank["host"]]) * 1e-9 for rank in found.read)])


def tell_ends(found: Ranks) -> None:
    """After the run a file that says "running" was left by a rank that was killed, unless a process writes it."""
    for rank, written in zip(found.read, found.written, strict=True):
        if rank["end"] == "running" and not written:
            rank["end"] = "unfinished"


def notes(found: Ranks, longer_s: float, run_time_s: float) -> list[str]:
    """That ranks ran on for so long after the command had ended, if they did."""
    if longer_s <= max(_NOTED_S, _NOTED_SHARE * run_time_s):
        return []
    so_far = " so far" if any(rank["end"] == "running" for rank in found.read) else ""
    return [
        f"ranks ran on for {text.seconds(longer_s)}{so_far} after the command had ended: the run time is to their end; "
        "what meters read, and the command's CPU time, end with the command"
    ]
