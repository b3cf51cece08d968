"""A study of predictors in the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from fallow.predict_model import GapBin, PredictReport, WayReport
from fallow.text import Style, count, fixed, note, paragraph, percent, plural, seconds, size, table

_LEGEND = (
    "calls, gaps, idle: predicted, of all calls, of the gaps that a rest fits into, of the time in them",
    "rest: of what knowing every gap would give; delay: of the run time; worst: the highest it ever was, "
    "of the time since the process began, which is some milliseconds before its first call",
    "late: rests that outlasted their gap, so that a call waited for the link",
)


def _bin_name(b: GapBin) -> str:
    if b.high_s is None:
        return f"> {seconds(b.low_s)}"
    return f"< {seconds(b.high_s)}" if b.low_s == 0 else f"{seconds(b.low_s)} - {seconds(b.high_s)}"


def _threshold(way: WayReport) -> str:
    if way.threshold_s is not None:
        return seconds(way.threshold_s)
    if not way.thresholds_s:
        return "-"
    least, median, most = way.thresholds_s
    return seconds(median) if least == most else f"{seconds(median)} ({seconds(least)}..{seconds(most)})"


def _cost(way: WayReport) -> str:
    return "-" if way.cost_ns is None or way.predictor == "oracle" else fixed(way.cost_ns, 0)


def _ways(report: PredictReport, style: Style) -> Iterator[str]:
    shares = ("calls %", "gaps %", "idle %", "rest %", "delay %", "worst %")
    header = ("predictor", "threshold", *shares, "late", "ns/call")
    rows = [
        (
            way.name,
            _threshold(way),
            fixed(100 * way.calls_predicted_share, 1),
            fixed(100 * way.gaps_predicted_share, 1),
            fixed(100 * way.idle_predicted_share, 1),
            fixed(100 * way.rest_of_oracle_share, 1),
            fixed(100 * way.delay_share, 3),
            fixed(100 * way.delay_worst_share, 3),
            count(way.mispredictions),
            _cost(way),
        )
        for way in report.ways
    ]
    yield from (f"  {line}" for line in table(header, rows, style, left=2))
    yield ""
    for words in _LEGEND:
        yield from paragraph(words, style, "  ", "  ")
    if report.cost_calls:
        words = f"ns/call: in the predictor, timed side by side on {count(report.cost_calls)} calls of one rank"
        yield from paragraph(words, style, "  ", "  ")


def lines(report: PredictReport, style: Style) -> Iterator[str]:
    """The study, line by line."""
    t = report.trace
    yield style.paint(style.safe(t.program or "(program unknown)"), "bold")
    some = len(t.ranks_studied) != t.ranks
    ranks = f"{len(t.ranks_studied)} of {plural(t.ranks, 'rank')}" if some else plural(t.ranks, "rank")
    words = (
        f"{ranks}, {plural(t.calls, 'call')}, {seconds(t.run_time_s)}, "
        f"gaps by {t.clock} clock; link: {seconds(report.react_down_s)} to rest, {seconds(report.react_up_s)} back"
    )
    yield from paragraph(words, style, "  ", "  ")
    yield ""
    gap_rows = [
        (_bin_name(b), count(b.count), percent(b.count_share, 2), seconds(b.time_s), percent(b.time_share, 2))
        for b in report.gaps.papers
    ]
    header = ("gaps between calls", "number", "of number", "time", "of time")
    yield from (f"  {line}" for line in table(header, gap_rows, style))
    yield ""
    yield from _ways(report, style)
    if report.nodes is not None:
        yield ""
        most = max(len(ranks) for ranks in report.nodes.nodes)
        title = f"joined: {plural(len(report.nodes.nodes), 'link')} of up to {plural(most, 'rank')}"
        rows = [
            (
                way.name,
                fixed(100 * way.rest_of_oracle_share, 1),
                fixed(100 * way.rest_share, 2),
                fixed(100 * way.delay_share, 3),
                fixed(100 * way.delay_worst_rank_share, 3),
            )
            for way in report.nodes.ways
        ]
        head = (title, "rest %", "of run time %", "delay %", "worst rank %")
        yield from (f"  {line}" for line in table(head, rows, style))
    adaptive = [way for way in report.ways if way.predictor != "oracle"]
    if adaptive:
        yield ""
        yield f"  memory of a rank's predictor: at most {size(max(way.memory_bytes for way in adaptive))}"
    for words in report.notes:
        yield from (style.paint(line, "yellow") for line in note(f"NOTE: {words}", style, "  "))
