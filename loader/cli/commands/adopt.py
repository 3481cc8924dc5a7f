"""The command that takes over tables which another tool loaded."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from loader.cli.comparison import print_comparison
from loader.cli.lazy import lazily
from loader.cli.reports import print_tables
from loader.cli.session import Session, SourceOption
from loader.model.table import TableName
from loader.spark.job import rebuild

if TYPE_CHECKING:
    from loader import pipeline
    from loader.cli import jobs
    from loader.cli.output import Output
    from loader.settings import SourceSettings
else:
    pipeline, jobs = lazily("loader.pipeline"), lazily("loader.cli.jobs")


class Compare(StrEnum):
    """Which rows are compared with the source."""

    FULL = "full"
    SAMPLE = "sample"
    NONE = "none"


def adopt(
    context: typer.Context,
    table: Annotated[
        list[str],
        typer.Option("--table", "-t", metavar="SCHEMA.TABLE", help="The table; repeat the option for more."),
    ],
    at: Annotated[
        str,
        typer.Option(
            metavar="PLACE",
            help="The tables have every change before this place and none after it: binlog.000054:123 or a GTID set.",
        ),
    ],
    compare: Annotated[
        Compare,
        typer.Option(
            help="Which rows to compare with the source after a run: all, or of large tables a sample and the number"
            " of rows.",
        ),
    ] = Compare.SAMPLE,
    source: SourceOption = "",
) -> None:
    """Take over Iceberg tables that another tool loaded, apply the log to them from a place on, and compare their rows.

    Exit code 4: a table was refused, or rows differ.
    """
    session: Session = context.obj
    output, settings = session.output, session.settings(source)
    adoption = pipeline.plan_adoption(settings, tuple(table), at, compared=compare is not Compare.NONE)
    result = jobs.submit(pipeline.adopt_job(settings, *adoption), settings, output)
    pipeline.record_adoption(settings, adoption, result)
    errors = [rebuild(one["error"]) for one in result["tables"] if one["error"]]
    if not output.as_json:
        print_tables(output, result)
        for error in errors:
            output.error(error)
    adopted = tuple(one["table"] for one in result["tables"] if not one["error"])
    verified = None
    if adopted and compare is not Compare.NONE:
        verified = _compare(output, settings, adopted, sampled=compare is Compare.SAMPLE)
    if output.as_json:
        output.document({**result, "comparison": verified.model_dump(mode="json") if verified else None})
    if code := max([*(error.exit_code for error in errors), verified.exit_code if verified else 0]):
        raise typer.Exit(code)


def _compare(output: Output, settings: SourceSettings, tables: tuple[str, ...], *, sampled: bool) -> pipeline.Verified:
    """Apply the log to tables up to a position, and compare them there."""
    with pipeline.verification(settings, tables, sampled=sampled) as opened:
        applied = jobs.submit(opened.delta, settings, output) if opened.delta else None
        verified = opened.finish(jobs.submit(opened.comparison(applied), settings, output))
    if not output.as_json:
        _print(output, verified)
    return verified


def _print(output: Output, verified: pipeline.Verified) -> None:
    print_comparison(output, verified)
    for one in verified.tables:
        if one.status != "different":
            continue
        table = TableName.parse(one.table)
        output.line(
            f"{table}: it follows the log with these differences; to read its rows from the source instead: "
            + table.load_again
        )
        if one.compared_rows < one.server_rows:
            output.next_step(f"{table}: to compare all rows: loader verify --table {table.argument}")
