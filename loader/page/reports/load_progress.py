"""Initial loads on a page: how far they are, and how long they take."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from loader.initial_load.load_states import LoadState
from loader.page import figures
from loader.page.data_table import Column, data_table
from loader.page.html import Html, tag

_COLUMNS = (
    Column("table"),
    Column("chunks staged", number=True),
    Column("progress"),
    Column("rows", number=True),
    Column("size", number=True),
    Column("rows/s", number=True),
    Column("newest chunk"),
    Column("time left"),
)


def load_progress(loads: Sequence[LoadState], number: int, now: datetime) -> Html:
    """Return the initial loads that are not in the warehouse yet.

    Args:
        loads: those to show.
        number: how many there are.
        now: the time of the report, in UTC.
    """
    caption = "Initial loads" if len(loads) == number else f"{len(loads):,} of {number:,} initial loads"
    return data_table(caption, _COLUMNS, (_row(one, now) for one in loads))


def _row(load: LoadState, now: datetime) -> tuple[object, ...]:
    done = f"{load.staged:,} of {load.chunks:,}"
    bar = tag("progress", done, max=load.chunks, value=load.staged, aria_label=f"{load.table}: {done} chunks")
    about = "about " if load.estimated else ""
    read = (about + figures.count(load.rows), about + figures.size(load.bytes))
    if load.finished:
        return load.table, done, bar, *read, "", "", "all chunks are staged; not in the warehouse yet"
    newest = "none"
    if load.newest_chunk:
        newest = f"{figures.duration(max(0.0, (now - load.newest_chunk).total_seconds()))} ago"
    rate = "unknown" if load.rows_per_second is None else figures.count(round(load.rows_per_second))
    left = "unknown" if load.seconds_left is None else f"about {figures.duration(load.seconds_left)}"
    return load.table, done, bar, *read, rate, newest, left
