"""Chapter 4 of the thesis: smaller messages, and links with fewer lanes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fallow.reproduce.document import Bars, Section, Strips
from fallow.reproduce.measure import SIZES, KernelResults
from fallow.reproduce.record import Program

__all__ = ["KernelResults", "sections"]


def _label(k: KernelResults, programs: Mapping[str, Program]) -> str:
    return f"{programs[k.program].title}, {k.ranks} ranks, {k.ranks_per_node} a node"


def sections(
    kernels: Sequence[KernelResults], programs: Mapping[str, Program], published: Mapping[str, Any]
) -> list[Section]:
    """Table 4.5, figures 4.27 to 4.36, 4.37 and 4.38, 4.39 to 4.46, 4.47 and 4.48."""
    return [
        _messages(kernels, programs, published), _speedups(kernels, programs, published), _over_time(kernels, programs),
        _lanes(kernels, programs, published), _slowdowns(kernels, programs, published),
    ]  # fmt: skip


def _messages(
    kernels: Sequence[KernelResults], programs: Mapping[str, Program], published: Mapping[str, Any]
) -> Section:
    s = Section("Table 4.5: mean size of messages, one process a node, KB", [
        "Published for Alya CG (inputs A, B) and GROMACS PME (inputs A, B); ours are the messages on the wire, pieces of "
        "collectives included."
    ])  # fmt: skip
    s.header = ("processes", "Alya A", "Alya B", "ours, CG", "GROMACS A", "GROMACS B", "ours, FT")
    for row in published["message_kb"]:
        ours = {k.kernel: k.message_bytes / 1024 for k in kernels if k.ranks == row[0] and k.ranks_per_node == 1}
        cells = [f"{ours[name]:.1f}" if name in ours else "-" for name in ("alya", "gromacs")]
        s.rows.append((str(row[0]), str(row[1]), str(row[2]), cells[0], str(row[3]), str(row[4]), cells[1]))
    s.differences = [f"{p.title}: {p.why}." for p in programs.values() if p.kernel]
    return s


def _speedups(
    kernels: Sequence[KernelResults], programs: Mapping[str, Program], published: Mapping[str, Any]
) -> Section:
    s = Section("Figures 4.27 to 4.30 and 4.33 to 4.36: speed with smaller messages", [
        "Run time with whole messages over run time with messages between nodes cut to 75, 62.5 and 50 %, all lanes on. (The "
        "publication leaves messages below 1 KB whole; their time is latency, which stays.)"
    ])  # fmt: skip
    sizes = [x for x in SIZES if x < 1]
    s.header = ("kernel", *(f"{x * 100:g} %" for x in sizes))
    s.rows = [(_label(k, programs), *(f"{k.speedup[x]:.4f}" for x in sizes)) for k in kernels]
    alya, gromacs = published["alya_speedup_6ppn_384_input_b_pct"], published["gromacs_speedup_6ppn_384_input_b_pct"]
    best = max(((k.speedup[0.5] - 1) * 100, _label(k, programs)) for k in kernels)
    s.differences = [
        f"Published with 384 processes, six a node, at half size: {alya} % for Alya CG, {gromacs} % for GROMACS PME. The most "
        f"here is {best[0]:.1f} % ({best[1]}): how much is gained depends on the share of time in messages of some size, and "
        "these inputs are smaller on fewer ranks."
    ]
    return s


_IN_PROGRAM, _IN_MPI, _AWAKE, _CHANGING, _ONE_LANE = range(5)
_LINK_STATES = {"sending": _AWAKE, "low": _ONE_LANE, "deep": _ONE_LANE, "changing": _CHANGING}


def _over_time(kernels: Sequence[KernelResults], programs: Mapping[str, Program]) -> Section:
    s = Section("Figures 4.37 and 4.38: processes and their links over time", [
        "Whether a process is in the program or in MPI, and below it the lanes of its link to the switch: messages at half "
        "size, for which two lanes of four are enough, links that follow loops of calls, one process a node."
    ])  # fmt: skip
    s.header = ("kernel", "time in MPI, %", "link with one lane, %", "changing, %")
    for k in kernels:
        if k.drawn is None:
            continue
        d, rows = k.drawn, []
        for rank, (calls, links) in enumerate(zip(d.calls, d.links, strict=True)):
            rows.append((f"process {rank}", _IN_PROGRAM, tuple((a, b, _IN_MPI) for a, b in calls)))
            shown = tuple((a, b, _LINK_STATES[state]) for a, b, state in links if state != "sending")
            rows.append((f"link {rank}", _AWAKE, shown))
        states = ("in the program", "in MPI", "link with lanes for messages", "changing", "with one lane")
        s.strips.append(Strips(_label(k, programs), states, d.from_us, d.to_us, tuple(rows)))
        shares = [_share(rows, of, d.from_us, d.to_us) for of in (_IN_MPI, _ONE_LANE, _CHANGING)]
        s.rows.append((_label(k, programs), *(f"{x * 100:.1f}" for x in shares)))
    if s.strips:
        s.differences.append(
            "Published are pictures without numbers: links at full power during phases of calls, at lower power in between. "
            "Ours draws each call; a phase ends where computation lasts long enough for a loop of calls to be over."
        )
    else:
        s.text.append("No kernel is recorded with 16 ranks.")
    return s


def _share(
    rows: Sequence[tuple[str, int, tuple[tuple[float, float, int], ...]]], state: int, begin: float, end: float
) -> float:
    """Of the time of the rows that can be in the state."""
    mine = [spans for _, between, spans in rows if (between == _IN_PROGRAM) == (state == _IN_MPI)]
    inside = sum(max(0.0, min(b, end) - max(a, begin)) for spans in mine for a, b, s in spans if s == state)
    return inside / ((end - begin) * len(mine)) if mine and end > begin else 0.0


def _lanes(kernels: Sequence[KernelResults], programs: Mapping[str, Program], published: Mapping[str, Any]) -> Section:
    s = Section("Figures 4.39 to 4.46: energy of edge links with fewer lanes", [
        "Links have one lane on in gaps, and as many in calls as the compressed messages need: 3 of 4 at 75 and 62.5 %, 2 of 4 "
        "at 50 %. They change width for each call, or for each loop of calls. Energy saved in edge links, in %."
    ])  # fmt: skip
    s.header = ("kernel", "links follow", *(f"{x * 100:g} %" for x in SIZES))
    for k in kernels:
        for marks in ("calls", "loops"):
            s.rows.append((_label(k, programs), marks, *(f"{k.lanes[marks, x].saved * 100:.2f}" for x in SIZES)))
    groups = tuple(
        (f"{k.program} {k.ranks}/{k.ranks_per_node}", tuple(k.lanes["loops", x].saved * 100 for x in SIZES))
        for k in kernels
    )
    s.bars = Bars("%", tuple(f"size {x * 100:g} %" for x in SIZES), groups)
    tops = {
        name: max((k.lanes["loops", 0.5].saved * 100 for k in kernels if k.kernel == name), default=None)
        for name in ("alya", "gromacs")
    }
    said = {
        "alya": published["link_saving_half_size_alya_pct"],
        "gromacs": published["link_saving_half_size_gromacs_pct"],
    }
    for name, top in tops.items():
        if top is None:
            continue
        s.differences.append(
            f"Published for {'Alya CG' if name == 'alya' else 'GROMACS PME'} at half size: up to {said[name]} %; ours up to "
            f"{top:.1f} %. With one lane of four at 43 % of power (section 2.6) a link cannot save more than 57 %; the "
            "published figures of chapter 4 go beyond that, so they must count a lane that is off differently, as if one of "
            "four drew a quarter, perhaps."
        )
    return s


def _slowdowns(
    kernels: Sequence[KernelResults], programs: Mapping[str, Program], published: Mapping[str, Any]
) -> Section:
    s = Section(
        "Figures 4.47 and 4.48: run time with links that follow calls", ["Increase of run time at half size, in %."]
    )
    s.header = ("kernel", "for each call", "for each loop")
    for k in kernels:
        s.rows.append((_label(k, programs), *(f"{k.lanes[m, 0.5].slowdown * 100:.3f}" for m in ("calls", "loops"))))
    for per_node, key in ((1, "slowdown_1ppn_pct"), (6, "slowdown_6ppn_pct")):
        ours = [k.lanes["loops", 0.5].slowdown * 100 for k in kernels if k.ranks_per_node == per_node]
        if ours:
            why = (
                ": the recorded kernels wait 10 us for lanes more often, as little computation lies between their exchanges"
                if max(ours) > published[key]
                else ", within what is published"
            )
            s.differences.append(
                f"With {per_node} a node at most {published[key]} % are published; for each loop ours is up to "
                f"{max(ours):.2f} %{why}."
            )
    return s
