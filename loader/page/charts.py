"""The charts of the newest intervals."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

from loader import pipeline
from loader.page import figures
from loader.page.chart import BarChart, Series
from loader.page.html import Html, tag

_OPERATIONS = ("inserts", "updates", "deletes")


def source_charts(intervals: Sequence[pipeline.IntervalActivity]) -> Html:
    """Return the charts of a source: its rows, and the commit time that each interval covers."""
    rows = [
        pipeline.TableActivity(
            table="", inserts=one.state.inserts, updates=one.state.updates, deletes=one.state.deletes
        )
        for one in intervals
    ]
    return tag("div", _rows_chart(intervals, rows).html(), _time_chart(intervals).html(), class_="charts")


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


def _seconds(earlier: str, later: str) -> float:
    if not earlier:
        return 0.0
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()


def _rows_chart(intervals: Sequence[pipeline.IntervalActivity], rows: Sequence[pipeline.TableActivity]) -> BarChart:
    return BarChart(
        id="rows",
        title="Rows by operation",
        labels=[one.state.start for one in intervals],
        label_heading="start of the interval",
        series=[Series(name, name, [getattr(one, name) for one in rows]) for name in _OPERATIONS],
        shown=lambda value: figures.count(round(value)),
    )


def _time_chart(intervals: Sequence[pipeline.IntervalActivity]) -> BarChart:
    return BarChart(
        id="time",
        title="Commit time covered",
        labels=[one.state.start for one in intervals],
        label_heading="start of the interval",
        series=[Series("of commits", "covered", covered_seconds(intervals))],
        shown=figures.duration,
    )
