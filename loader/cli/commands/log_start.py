"""The commands that choose where a source's log is read from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from loader.cli.lazy import lazily
from loader.cli.reports import report_tables
from loader.cli.session import Session, SourceOption
from loader.errors import UsageError
from loader.model.position import Position

if TYPE_CHECKING:
    from loader import pipeline
    from loader.cli import jobs
    from loader.staging.documents import Generation
else:
    pipeline, jobs = lazily("loader.pipeline"), lazily("loader.cli.jobs")


def begin(
    context: typer.Context,
    at: Annotated[
        str,
        typer.Option(
            metavar="PLACE",
            help="begin (of the oldest log file), end, binlog.000054:123, a GTID set, or a time such as"
            " 2026-01-31T12:00:00Z.",
        ),
    ],
    source: SourceOption = "",
) -> None:
    """Begin to follow the log at a place, without an initial load. The initial load begins at the end of the log."""
    session: Session = context.obj
    _report(session, pipeline.begin_at(session.settings(source), at))


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
    source: SourceOption = "",
) -> None:
    """Take over Iceberg tables that another tool loaded, and apply the log to them from a place on."""
    session: Session = context.obj
    settings = session.settings(source)
    adoption = pipeline.plan_adoption(settings, tuple(table), at)
    result = jobs.submit(pipeline.adopt_job(settings, *adoption), settings, session.output)
    pipeline.record_adoption(settings, adoption, result)
    report_tables(session.output, result)


def follow(
    context: typer.Context,
    at: Annotated[
        str,
        typer.Option(
            metavar="POSITION",
            help="Position on the new server, such as binlog.000003:4. Everything before it must have been read.",
        ),
    ] = "",
    accept: Annotated[
        str, typer.Option(metavar="GTIDS", help="Transactions that only the new server has; they are skipped.")
    ] = "",
    source: SourceOption = "",
) -> None:
    """Continue on another server at a position that you know. With GTIDs, runs find that position themselves."""
    session: Session = context.obj
    if bool(at) == bool(accept):
        raise UsageError("give either --at or --accept", hint="loader follow --help")
    settings = session.settings(source)
    generation = pipeline.follow_to(settings, Position.parse(at)) if at else pipeline.follow_accepting(settings, accept)
    _report(session, generation)


def _report(session: Session, generation: Generation) -> None:
    if session.output.as_json:
        session.output.document(generation)
    else:
        session.output.line(
            f"generation {generation.name} of the log starts at {generation.start} of server {generation.identity}"
        )
