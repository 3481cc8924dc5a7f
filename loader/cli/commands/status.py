"""The command that shows the positions of a source and the state of its tables."""

from __future__ import annotations

import math
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from loader.cli.lazy import lazily
from loader.cli.output import Output
from loader.cli.reports import print_skips
from loader.cli.session import Session, SourceOption

if TYPE_CHECKING:
    from loader import pipeline
    from loader.spark import job
else:
    job, pipeline = lazily("loader.spark.job"), lazily("loader.pipeline")


class Format(StrEnum):
    """Forms of the output."""

    TEXT = "text"
    PROMETHEUS = "prometheus"


def status(
    context: typer.Context,
    source: SourceOption = "",
    form: Annotated[
        Format,
        typer.Option("--format", help="prometheus prints gauges of the source, or of all sources, for a scrape."),
    ] = Format.TEXT,
) -> None:
    """Show the positions of a source and the state of its tables.

    If the server does not answer, the command still shows what is staged and applied.
    """
    session: Session = context.obj
    if form is Format.PROMETHEUS:
        _print_gauges(session, source)
        return
    state = pipeline.status(session.settings(source))
    output = session.output
    unreachable = job.rebuild(state.unreachable) if state.unreachable else None
    if output.as_json:
        output.document(state)
        if unreachable:
            raise typer.Exit(unreachable.exit_code)
        return
    output.line(f"source {state.source}: {state.server}")
    _positions(output, state)
    if unreachable:
        output.line("the server cannot be read, so the end of its log is not known: see the error below")
    elif state.behind is None:
        output.line("the source has another server now, or the log of its server was reset")
        output.line("the next run continues on it, or says why it cannot")
    else:
        output.line(f"{state.behind:,} bytes of log are not applied yet; {state.runway}")
    _loads(output, state)
    _tables(output, state)
    if state.skips:
        print_skips(output, state.skips)
    if unreachable:
        raise unreachable


def _print_gauges(session: Session, source: str) -> None:
    """Print the gauges of a source, or of all sources. A source that cannot be read gets the gauge `up` 0.

    Raises:
        LoaderError: a source could not be read; the gauges of all others are printed before.
    """
    loaded = session.load()
    names = [loaded.source(source).name] if source else list(loaded.sources)
    found, failed = pipeline.read_gauges(names, loaded.source)
    typer.echo(pipeline.prometheus_text(found), nl=False)  # exact, and not wrapped at the width of a terminal
    if failed:
        raise failed[0]


def _positions(output: Output, state: pipeline.SourceStatus) -> None:
    rows = [
        (state.log_end or "unknown", "end of the log"),
        (state.planned, "newest plan"),
        (state.staged, "newest staged interval"),
        (state.applied, state.applied_to),
    ]
    output.rows(("position", "of"), rows)


def _loads(output: Output, state: pipeline.SourceStatus) -> None:
    """Print the initial loads that are not in the warehouse yet."""
    if state.loads:
        rows = [
            (
                load.table,
                f"{load.staged:,} of {load.chunks:,}",
                f"{about}{load.rows:,}",
                f"{about}{load.bytes / 1e6:,.1f}",
                "" if load.rows_per_second is None else f"{load.rows_per_second:,.0f}",
                "" if load.seconds_left is None else str(timedelta(seconds=math.ceil(load.seconds_left))),
                "staged, not in the warehouse" if load.finished else "reading",
            )
            for load in state.loads
            for about in ("about " if load.estimated else "",)
        ]
        output.rows(("initial load of", "chunks staged", "rows", "MB", "rows/s", "time left", "state"), rows)


def _tables(output: Output, state: pipeline.SourceStatus) -> None:
    """Print the applied position of each table, and mark the tables that are short of the newest published record."""
    stopped = {table.table for table in state.quarantined} | {one.table for one in state.postponed}
    rows = [
        (table.table, state.applied, str(table.snapshot), table.words)
        for table in state.tables
        if table.table not in stopped
    ]
    short = f"short of {state.applied}"
    rows += [(table.table, table.applied, "", f"quarantined, {short}") for table in state.quarantined]
    rows += [
        (one.table, one.applied, "", f"{one.state}, {short}" if one.short else one.state) for one in state.postponed
    ]
    rows += [(name, "", "", f"released, {short}") for name in state.released]
    output.rows(("table", "applied", "snapshot", "state"), sorted(rows))
    for one in state.postponed:
        output.next_step(f"{one.table}: {one.note}")
    for table in state.quarantined:
        for line in output.text_of(job.rebuild(table.error_with_release())).split("\n"):
            output.line(line)
