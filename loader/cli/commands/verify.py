"""The command that compares the warehouse with the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from loader.cli.lazy import lazily
from loader.cli.session import Session, SourceOption, TablesOption
from loader.model.table import TableName

if TYPE_CHECKING:
    from loader import pipeline
    from loader.cli import jobs
    from loader.cli.output import Output
else:
    pipeline, jobs = lazily("loader.pipeline"), lazily("loader.cli.jobs")


def verify(
    context: typer.Context,
    source: SourceOption = "",
    table: TablesOption = [],  # noqa: B006 - typer copies it
) -> None:
    """Compare all rows with the server at one position of the log, after a run up to that position.

    Others may write to the server meanwhile. Exit code 4: rows differ.
    """
    session: Session = context.obj
    settings = session.settings(source)
    with pipeline.verification(settings, tuple(table)) as opened:
        applied = jobs.submit(opened.delta, settings, session.output) if opened.delta else None
        verified = opened.finish(jobs.submit(opened.comparison(applied), settings, session.output))
    _report(session.output, verified)
    if verified.exit_code:
        raise typer.Exit(verified.exit_code)


def _report(output: Output, verified: pipeline.Verified) -> None:
    if output.as_json:
        output.document(verified)
        return
    output.line(f"compared at {verified.position}")
    output.rows(
        ("table", "status", "rows on the server", "rows in the warehouse", "differences"),
        [
            (
                table.table,
                table.status,
                f"{table.server_rows:,}",
                f"{table.warehouse_rows:,}",
                f"{'at least ' if table.at_least else ''}{table.differences:,}",
            )
            for table in verified.tables
        ],
    )
    for table in verified.tables:
        if table.skipped_at:
            output.line(
                f"{table.table}: lacks rows that an operator skipped at {table.skipped_at} (see: loader status); "
                f"to bring them: {TableName.parse(table.table).load_again}"
            )
        if table.uncompared:
            output.line(f"{table.table}: not compared: {', '.join(table.uncompared)}")
        for sample in table.samples:
            output.line(f"{table.table}: {sample}")
        if error := jobs.error_of(table.error):
            output.error(error)
