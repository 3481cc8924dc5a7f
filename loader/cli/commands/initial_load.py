"""The command that loads tables for the first time."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from loader.cli.lazy import lazily
from loader.cli.reports import report_tables
from loader.cli.session import Session, SourceOption, TablesOption

if TYPE_CHECKING:
    from loader import pipeline
    from loader.cli import jobs
    from loader.cli.output import Output
    from loader.full_load import table_results
    from loader.pipeline import LoadForecast
else:
    pipeline, jobs = lazily("loader.pipeline"), lazily("loader.cli.jobs")
    table_results = lazily("loader.full_load.table_results")


def initial_load(
    context: typer.Context,
    source: SourceOption = "",
    table: TablesOption = [],  # noqa: B006 - typer copies it
    again: Annotated[
        bool, typer.Option("--again", help="Also read tables from the server again that are loaded already.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the tables, their sizes, and what would be refused.")
    ] = False,
) -> None:
    """Load the captured tables, or some of them. Tables that are loaded already are left alone."""
    session: Session = context.obj
    settings = session.settings(source)
    if dry_run:
        _report_forecast(session.output, pipeline.forecast_load(settings, tuple(table), again=again))
        return
    result = jobs.submit(pipeline.full_load_job(settings, tuple(table), again=again), settings, session.output)
    report_tables(session.output, table_results.load_results(result))


def _report_forecast(output: Output, forecast: LoadForecast) -> None:
    """Print what a load would do.

    Raises:
        typer.Exit: it would refuse tables.
    """
    if output.as_json:
        output.document(forecast)
    else:
        rows = [
            (
                one.table,
                one.status,
                f"{one.rows:,}",
                f"{one.bytes / 1e6:,.1f}",
                "" if one.error else f"{one.staged} of {one.chunks}",
                "" if one.error else _duration(one.seconds),
            )
            for one in forecast.tables
        ]
        columns = ("table", "status", "rows (estimate)", "MB (estimate)", "staged chunks", "time (estimate)")
        output.rows(columns, rows)
        output.line(_estimate(forecast))
    jobs.fail_on_tables(forecast.model_dump(mode="json"), output)


def _estimate(forecast: LoadForecast) -> str:
    """Return the time of the whole load, and how it was estimated."""
    whole = f"Estimate for reading all tables: {_duration(forecast.seconds)}"
    rate = forecast.rate
    if rate is None:
        return f"{whole}. The tables are too small to measure a rate."
    speed = f"{rate.bytes_per_second / 1e6:,.1f} MB/s"
    if rate.measured_by == "chunks":
        return f"{whole}, at {speed}, the rate of the chunks of {rate.table} that are staged."
    readers = f"{rate.readers} reader{'s' if rate.readers > 1 else ''}"
    return f"{whole}, at {speed} with {readers}, by a sample of {rate.table}. Other load on the server changes it."


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=math.ceil(seconds)))
