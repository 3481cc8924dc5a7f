"""The charts of the newest intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import pairwise

from loader import pipeline
from loader.page import figures
from loader.page.chart import BarChart, Series
from loader.page.html import Html, join, tag

_OPERATIONS = ("inserts", "updates", "deletes")


def source_charts(intervals: Sequence[pipeline.IntervalActivity]) -> Html:
    """Return the charts of a source: its rows, the commit time and the log of each interval, and its lag."""
    rows = [
        pipeline.TableActivity(
            table="", inserts=one.state.inserts, updates=one.state.updates, deletes=one.state.deletes
        )
        for one in intervals
    ]
    charts = (_rows_chart(intervals, rows), _time_chart(intervals), _bytes_chart(intervals), _lag_chart(intervals))
    return tag("div", join(chart.html() for chart in charts), class_="charts")


def table_chart(intervals: Sequence[pipeline.IntervalActivity], table: str) -> Html:
    """Return the chart of the rows of a table."""
    none = pipeline.TableActivity(table=table)
    rows = [next((rows for rows in one.tables if rows.table == table), none) for one in intervals]
    return tag("div", _rows_chart(intervals, rows).html(), class_="charts")


def covered_seconds(intervals: Sequence[pipeline.IntervalActivity]) -> list[float]:
    """Return the seconds between the newest commit of each interval and the newest one before it.

    An interval without a commit covers 0 seconds, and so does the first one, because what is before it is unknown.
    """
    times: list[str] = []
    for one in intervals:
        times.append(max(one.committed_at, times[-1] if times else ""))  # clocks can go back, positions cannot
    found = [_seconds(earlier, later) for earlier, later in pairwise(times)]
    return [0.0, *found] if times else []


def lag_seconds(intervals: Sequence[pipeline.IntervalActivity]) -> list[tuple[float, float]]:
    """Return the lag of the newest commit of each interval: seconds until it was staged, and from then until applied.

    An interval without a commit has no lag. Neither has a step that is not done yet.
    """
    return [
        (_between(_commit_time(one), one.state.staged_at), _between(_staged_at(one), one.applied_at))
        for one in intervals
    ]


def _commit_time(one: pipeline.IntervalActivity) -> datetime | None:
    return datetime.fromisoformat(one.committed_at).replace(tzinfo=UTC) if one.committed_at else None


def _staged_at(one: pipeline.IntervalActivity) -> datetime | None:
    return one.state.staged_at if one.committed_at else None


def _between(earlier: datetime | None, later: datetime | None) -> float:
    """Return the seconds between two times: 0 if one is unknown, or if the clocks of server and store differ."""
    return max(0.0, (later - earlier).total_seconds()) if earlier and later else 0.0


def _seconds(earlier: str, later: str) -> float:
    if not earlier:
        return 0.0
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()


def _rows_chart(intervals: Sequence[pipeline.IntervalActivity], rows: Sequence[pipeline.TableActivity]) -> BarChart:
    series = [Series(name, name, [getattr(one, name) for one in rows]) for name in _OPERATIONS]
    return _chart("rows", "Rows by operation", intervals, series, lambda value: figures.count(round(value)))


def _time_chart(intervals: Sequence[pipeline.IntervalActivity]) -> BarChart:
    series = [Series("of commits", "covered", covered_seconds(intervals))]
    return _chart("time", "Commit time covered", intervals, series, figures.duration)


def _bytes_chart(intervals: Sequence[pipeline.IntervalActivity]) -> BarChart:
    """Return the chart of the bytes of log. An interval that was planned to the end of the log covers the backlog."""
    series = [Series("of log", "covered", [one.log_bytes for one in intervals])]
    return _chart("bytes", "Log covered", intervals, series, lambda value: figures.size(round(value)))


def _lag_chart(intervals: Sequence[pipeline.IntervalActivity]) -> BarChart:
    staged, applied = ([one[place] for one in lag_seconds(intervals)] for place in range(2))
    series = [Series("until staged", "staged", staged), Series("until applied", "applied", applied)]
    return _chart("lag", "Lag of the newest commit", intervals, series, figures.duration)


def _chart(
    name: str,
    title: str,
    intervals: Sequence[pipeline.IntervalActivity],
    series: Sequence[Series],
    shown: Callable[[float], str],
) -> BarChart:
    """Return a chart with a bar for each interval. `shown`: see BarChart."""
    labels = [one.state.start for one in intervals]
    return BarChart(
        id=name, title=title, labels=labels, label_heading="start of the interval", series=series, shown=shown
    )
