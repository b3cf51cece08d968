"""Runs predictors over a trace with the native study, and makes a report of it."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fallow import native
from fallow.errors import UserError, reason
from fallow.predict_model import (
    SCHEMA,
    VERSION,
    GapBin,
    GapReport,
    NodesReport,
    NodeWay,
    PredictReport,
    PredictTimeline,
    RankWay,
    SweepPoint,
    TimelineRow,
    TraceReport,
    WayReport,
)
from fallow.progress import Words
from fallow.stats import share
from fallow.text import plural, seconds
from fallow.traces.model import Info, ops

_WITH_THRESHOLD = ("pps",)
_WITH_LEAD = ("pps", "spps", "last")
_TUNED = ("pps", "spps")
_SWEEP_POINTS = 41
_SWEEP_PER_DECADE = 12
_LOOK_S = 0.1
_COST_CALLS = 200_000

Options = dict[str, float]


@dataclass(frozen=True)
class Wish:
    """What is to be studied. Options are by name of the native table, times in ns."""

    predictors: Sequence[str]
    options: Options
    thresholds_ns: Sequence[float] = ()  # of pps; none: sweep them
    leads: Sequence[float] = (0.05,)
    ranks: Sequence[int] = ()  # none: all
    ranks_per_node: int | None = None  # None: by recorded host; 0: no joint evaluation
    costs: bool = True
    timeline: bool = False
    timeline_rank: int | None = None  # None: the first studied one that has events
    timeline_from_ns: int = 0
    timeline_calls: int = 4000
    threads: int = 0


@dataclass(frozen=True)
class Way:
    """A predictor and all that it is told."""

    predictor: str
    options: Options
    lead: float | None = None
    threshold_ns: float | None = None

    @property
    def native(self) -> tuple[str, Options]:
        """As the native study takes it."""
        return self.predictor, self.options


@dataclass
class _Runner:
    """Drives the native study."""

    study: Any
    progress: Words
    notes: list[str] = field(default_factory=list)

    def run(self, what: str, start: Callable[[], None]) -> None:
        try:
            start()
            while not self.study.wait(_LOOK_S):
                self.progress.show(what, self.study.progress)
        except (ValueError, IndexError, RuntimeError) as error:
            raise UserError(str(error)) from None
        except MemoryError as error:
            raise UserError(reason(error)) from None
        except KeyboardInterrupt:
            self.study.cancel()
            raise
        finally:
            self.progress.clear()

    def ranks(self, what: str, ways: Sequence[Way], ranks: Sequence[int], threads: int) -> list[dict[str, Any]]:
        plain = [way.native for way in ways]
        self.run(what, lambda: self.study.start_ranks(plain, ranks, threads))
        found: list[dict[str, Any]] = self.study.ranks()
        return found


def module() -> Any:  # noqa: ANN401  # a module
    """The native predictors; UserError where they were not built."""
    found = getattr(native.require(), "predict", None)
    if found is None:
        raise UserError("this build of Fallow has no predictors; install the package anew: pip install .")
    return found


def _heeded(predictor: str, options: Options) -> Options:
    """All options of the table that a predictor heeds, with their values."""
    rows = module().options()
    return {row[0]: options.get(row[0], row[5]) for row in rows if predictor in row[1].split()}


def _ways(wish: Wish, predictor: str, thresholds_ns: Sequence[float]) -> Iterator[Way]:
    for lead in wish.leads if predictor in _WITH_LEAD else (None,):
        own = dict(wish.options) if lead is None else {**wish.options, "lead": lead}
        for threshold in thresholds_ns if predictor in _WITH_THRESHOLD else (None,):
            with_threshold = own if threshold is None else {**own, "threshold": threshold}
            yield Way(predictor, _heeded(predictor, with_threshold), lead, threshold)


def _swept(react_ns: float) -> list[float]:
    """Thresholds from the shortest gap that a rest fits into, over three and a third decades (figure 5.14)."""
    first, most = max(react_ns, 1000.0), next(float(row[4]) for row in module().options() if row[0] == "threshold")
    tried = (min(float(round(first * 10 ** (i / _SWEEP_PER_DECADE))), most) for i in range(_SWEEP_POINTS))
    return list(dict.fromkeys(tried))


def _sum(rows: Sequence[dict[str, int]], key: str) -> int:
    return sum(row[key] for row in rows)


def _best(ways: Sequence[Way], results: Sequence[dict[str, Any]]) -> list[int]:
    """For each lead, the number of the way with most rest."""
    leads = dict.fromkeys(way.lead for way in ways)
    low = [sum(r["ways"][i]["low_ns"] for r in results) for i in range(len(ways))]
    return [max((i for i, w in enumerate(ways) if w.lead == lead), key=lambda i: low[i]) for lead in leads]


def _sweep_points(ways: Sequence[Way], results: Sequence[dict[str, Any]]) -> list[SweepPoint]:
    points = []
    for i, way in enumerate(ways):
        rows = [r["ways"][i] for r in results]
        points.append(
            SweepPoint(
                threshold_s=(way.threshold_ns or 0.0) * 1e-9,
                lead=way.lead or 0.0,
                calls_predicted_share=share(_sum(rows, "calls_predicted"), _sum(rows, "calls")),
                rest_share=share(_sum(rows, "low_ns"), _sum(rows, "run_ns")),
                rest_of_oracle_share=share(_sum(rows, "low_ns"), _sum(rows, "oracle_low_ns")),
                delay_share=share(_sum(rows, "delay_ns"), _sum(rows, "run_ns")),
            )
        )
    return points


def _name(way: Way, ways: Sequence[Way]) -> str:
    """The predictor's, with what tells it from the other ways."""
    same = [w for w in ways if w.predictor == way.predictor]
    name = way.predictor
    if way.threshold_ns is not None and len({w.threshold_ns for w in same}) > 1:
        name += f" {seconds(way.threshold_ns * 1e-9)}"
    if way.lead is not None and len({w.lead for w in same}) > 1:
        name += f" lead {100 * way.lead:g}%"
    return name


def _way_report(way: Way, name: str, index: int, results: Sequence[dict[str, Any]]) -> WayReport:
    rows = [r["ways"][index] for r in results]
    tuned = way.predictor in _TUNED
    thresholds = sorted(row["threshold_ns"] * 1e-9 for row in rows if row["threshold_ns"] > 0) if tuned else []
    ranks = [
        RankWay(
            rank=result["rank"],
            calls=row["calls"],
            calls_predicted_share=share(row["calls_predicted"], row["calls"]),
            rest_of_oracle_share=share(row["low_ns"], row["oracle_low_ns"]),
            delay_share=share(row["delay_ns"], row["run_ns"]),
            delay_worst_share=row["budget_worst"],
            threshold_s=row["threshold_ns"] * 1e-9 if tuned and row["threshold_ns"] > 0 else None,
        )
        for result, row in zip(results, rows, strict=True)
    ]
    return WayReport(
        name=name,
        predictor=way.predictor,
        options=way.options,
        threshold_s=None if way.threshold_ns is None else way.threshold_ns * 1e-9,
        thresholds_s=[thresholds[0], statistics.median(thresholds), thresholds[-1]] if thresholds else [],
        lead=way.lead,
        calls=_sum(rows, "calls"),
        calls_predicted_share=share(_sum(rows, "calls_predicted"), _sum(rows, "calls")),
        gaps=_sum(rows, "gaps"),
        gaps_predicted_share=share(_sum(rows, "gaps_predicted"), _sum(rows, "gaps")),
        idle_s=_sum(rows, "idle_ns") * 1e-9,
        idle_predicted_share=share(_sum(rows, "idle_predicted_ns"), _sum(rows, "idle_ns")),
        rests=_sum(rows, "rests"),
        mispredictions=_sum(rows, "mispredictions"),
        rest_s=_sum(rows, "low_ns") * 1e-9,
        rest_share=share(_sum(rows, "low_ns"), _sum(rows, "run_ns")),
        rest_of_oracle_share=share(_sum(rows, "low_ns"), _sum(rows, "oracle_low_ns")),
        delay_s=_sum(rows, "delay_ns") * 1e-9,
        delay_share=share(_sum(rows, "delay_ns"), _sum(rows, "run_ns")),
        delay_worst_share=max(row["budget_worst"] for row in rows),
        delay_worst_s=max(row["delay_worst_ns"] for row in rows) * 1e-9,
        searches=_sum(rows, "searches"),
        restarts=_sum(rows, "restarts"),
        memory_bytes=max(row["memory_bytes"] for row in rows),
        cost_ns=None,
        ranks=ranks,
    )


def _bins(rows: Sequence[Sequence[tuple[float, float | None, int, int]]], *, trim: bool) -> list[GapBin]:
    """One list of bins per rank, added up; empty ones at the ends may be left out."""
    sums = [(c[0][0], c[0][1], sum(b[2] for b in c), sum(b[3] for b in c)) for c in zip(*rows, strict=True)]
    count, total_ns = sum(s[2] for s in sums), sum(s[3] for s in sums)
    used = [i for i, s in enumerate(sums) if s[2]]
    if trim:
        sums = sums[used[0] : used[-1] + 1] if used else []
    return [
        GapBin(low * 1e-9, None if high is None else high * 1e-9, n, ns * 1e-9, share(n, count), share(ns, total_ns))
        for low, high, n, ns in sums
    ]


def _node_groups(wish: Wish, info: Info, studied: Sequence[int]) -> list[list[int]]:
    if wish.ranks_per_node == 0:
        return []
    groups: dict[object, list[int]] = {}
    for rank in studied:
        if wish.ranks_per_node is None and not info.hosts[rank]:
            continue  # nobody says where it ran
        key = info.hosts[rank] if wish.ranks_per_node is None else rank // wish.ranks_per_node
        groups.setdefault(key, []).append(rank)
    return [ranks for ranks in groups.values() if len(ranks) > 1]


def _nodes_report(groups: list[list[int]], names: Sequence[str], results: Sequence[dict[str, Any]]) -> NodesReport:
    ways = []
    for i, name in enumerate(names):
        rows = [(r["ways"][i], len(r["ranks"])) for r in results]
        run = sum(row["run_ns"] for row, _ in rows)
        ways.append(
            NodeWay(
                name=name,
                rest_s=sum(row["low_ns"] for row, _ in rows) * 1e-9,
                rest_share=share(sum(row["low_ns"] for row, _ in rows), run),
                rest_of_oracle_share=share(
                    sum(row["low_ns"] for row, _ in rows), sum(row["oracle_low_ns"] for row, _ in rows)
                ),
                rests=sum(row["rests"] for row, _ in rows),
                delay_share=share(
                    sum(row["delay_ns"] for row, _ in rows), sum(row["run_ns"] * size for row, size in rows)
                ),
                delay_worst_rank_share=max(share(row["delay_worst_rank_ns"], row["run_ns"]) for row, _ in rows),
            )
        )
    return NodesReport(groups, ways)


def _timeline(rank: int, raw: dict[str, Any], names: Sequence[str]) -> PredictTimeline:
    enter, leave = raw["enter_ns"], raw["exit_ns"]
    before = [enter[0] if enter else 0, *leave[:-1]]
    used = dict.fromkeys(raw["op"])
    index = {op: i for i, op in enumerate(used)}
    return PredictTimeline(
        rank=rank,
        start_ns=enter[0] if enter else 0,
        gap_ns=[e - b for e, b in zip(enter, before, strict=True)] if enter else [],
        call_ns=[x - e for e, x in zip(enter, leave, strict=True)],
        operation=[index[op] for op in raw["op"]],
        operations=[ops()[op].name for op in used],
        rows=[
            TimelineRow(name, list(rest), list(expected), list(silence))
            for name, (rest, expected, silence) in zip(names, raw["ways"], strict=True)
        ],
    )


def _studied(wish: Wish, info: Info, rank_rows: Sequence[dict[str, Any]]) -> list[int]:
    for rank in [*wish.ranks, *([] if wish.timeline_rank is None else [wish.timeline_rank])]:
        if rank >= info.size:
            raise UserError(f"rank {rank} is not in this trace of {info.size} ranks")
    asked = sorted(set(wish.ranks)) or range(info.size)
    with_events = [r for r in asked if rank_rows[r]["events"] > 0]
    if not with_events:
        raise UserError("there are no events in these ranks; fallow trace info shows what a trace holds")
    return with_events


def _chosen(wish: Wish, runner: _Runner, ranks: Sequence[int]) -> tuple[list[Way], list[SweepPoint]]:
    """The ways to report; where thresholds of pps were swept also the sweep."""
    ways: list[Way] = []
    points: list[SweepPoint] = []
    react = wish.options.get("react_down", 10e3) + wish.options.get("react_up", 10e3)
    for predictor in wish.predictors:
        if predictor != "pps" or wish.thresholds_ns:
            ways += _ways(wish, predictor, wish.thresholds_ns)
            continue
        tried = list(_ways(wish, predictor, _swept(react)))
        results = runner.ranks("thresholds of pps", tried, ranks, wish.threads)
        points += _sweep_points(tried, results)
        ways += [tried[i] for i in _best(tried, results)]
    return ways, points


def _notes(info: Info, rows: Sequence[dict[str, Any]], studied: Sequence[int]) -> list[str]:
    notes = []
    if info.clock == "cpu":
        notes.append(
            "computation was timed by the CPU clock: gaps are CPU time, calls last at most what a fast network "
            "would take, and the ranks have no common clock"
        )
    dropped = sum(rows[r]["dropped"] for r in studied)
    if dropped:
        notes.append(f"{plural(dropped, 'event')} not recorded: gaps around such events are too long")
    broken = sum(not rows[r]["complete"] for r in studied)
    if broken:
        notes.append(f"read up to the last whole block, as its end is missing: {plural(broken, 'rank')}")
    return notes


def _without_calls_times(gaps: GapReport, results: Sequence[dict[str, Any]]) -> bool:
    """Whether the run consists of the gaps between its calls."""
    run_s = _sum([r["ways"][0] for r in results], "run_ns") * 1e-9
    return 0 < run_s <= sum(b.time_s for b in gaps.papers) + 0.5e-9


def _trace_report(paths: Sequence[str], info: Info, results: Sequence[dict[str, Any]]) -> TraceReport:
    ranks = [r["rank"] for r in results]
    rows = [r["ways"][0] for r in results]
    return TraceReport(
        paths=[str(p) for p in paths],
        program=info.program,
        ranks=info.size,
        ranks_studied=ranks,
        hosts=len({info.hosts[r] for r in ranks} - {""}),
        clock=info.clock,
        calls=_sum(rows, "calls"),
        run_time_s=statistics.mean(row["run_ns"] for row in rows) * 1e-9,
    )


def _joined(wish: Wish, runner: _Runner, info: Info, ways: Sequence[Way], ranks: Sequence[int]) -> NodesReport | None:
    groups = _node_groups(wish, info, ranks)
    unknown = wish.ranks_per_node is None and len(ranks) > 1 and not any(info.hosts[r] for r in ranks)
    if (groups or unknown) and info.clock == "cpu":
        runner.notes.append(
            "ranks are not joined by node: a trace with CPU time has no clock that ranks have in common; "
            "record one without --clock cpu"
        )
        return None
    if unknown:
        runner.notes.append(
            "ranks are not joined by node: the trace does not say where they ran; "
            "--ranks-per-node says how many share a link"
        )
    if not groups:
        return None
    whole = {rank: len(group) for group in _node_groups(wish, info, range(info.size)) for rank in group}
    if any(whole[group[0]] > len(group) for group in groups) and (wish.ranks or info.left_out):
        runner.notes.append("links are joined as if the ranks that are not studied did not use them")
    plain = [way.native for way in ways]
    runner.run("joining ranks", lambda: runner.study.start_nodes(plain, groups, wish.threads))
    return _nodes_report(groups, [_name(way, ways) for way in ways], runner.study.nodes())


def _drawn(wish: Wish, runner: _Runner, ways: Sequence[Way], ranks: Sequence[int]) -> PredictTimeline | None:
    rank = ranks[0] if wish.timeline_rank is None else wish.timeline_rank
    if not wish.timeline:
        return None
    plain = [way.native for way in ways]
    begin = wish.timeline_from_ns
    runner.run("timeline", lambda: runner.study.start_timeline(plain, rank, begin, wish.timeline_calls))
    drawn = _timeline(rank, runner.study.timeline(), [_name(way, ways) for way in ways])
    if begin and not drawn.gap_ns:
        runner.notes.append(f"the timeline is empty: rank {rank} makes no call from {seconds(begin * 1e-9)} on")
    return drawn


def study(paths: Sequence[str], info: Info, rank_rows: Sequence[dict[str, Any]], wish: Wish) -> PredictReport:
    """Everything that was wished for."""
    try:
        runner = _Runner(module().Study(list(paths)), Words(sys.stderr))
    except ValueError as error:
        raise UserError(str(error)) from None
    ranks = _studied(wish, info, rank_rows)
    runner.notes += _notes(info, rank_rows, ranks)
    ways, points = _chosen(wish, runner, ranks)
    results = runner.ranks("predicting", ways, ranks, wish.threads)
    reports = [_way_report(way, _name(way, ways), i, results) for i, way in enumerate(ways)]
    react_ns = wish.options.get("react_down", 10e3) + wish.options.get("react_up", 10e3)
    if not any(report.gaps for report in reports):
        runner.notes.append(f"no gap is longer than {seconds(react_ns * 1e-9)}, to rest and back: nothing can rest")
    gaps = GapReport(
        papers=_bins([r["gaps"]["papers"] for r in results], trim=False),
        bins=_bins([r["gaps"]["bins"] for r in results], trim=True),
    )
    if _without_calls_times(gaps, results):
        runner.notes.append(
            "calls last no time in this trace, as formats without times inside MPI have none (Dimemas, SimGrid): the "
            "run time is computation alone, and shares of it are too high"
        )
    cost_calls = 0
    if wish.costs:
        busiest = max(ranks, key=lambda r: rank_rows[r]["events"])
        plain = [way.native for way in ways]
        runner.run("timing", lambda: runner.study.start_costs(plain, busiest, _COST_CALLS))
        costs = runner.study.costs()
        cost_calls = costs[0][1]
        reports = [replace(report, cost_ns=cost) for report, (cost, _) in zip(reports, costs, strict=True)]
    return PredictReport(
        schema=SCHEMA,
        version=VERSION,
        trace=_trace_report(paths, info, results),
        react_down_s=wish.options.get("react_down", 10e3) * 1e-9,
        react_up_s=wish.options.get("react_up", 10e3) * 1e-9,
        gaps=gaps,
        ways=reports,
        sweep=points,
        cost_calls=cost_calls,
        nodes=_joined(wish, runner, info, ways, ranks),
        timeline=_drawn(wish, runner, ways, ranks),
        notes=runner.notes,
    )
