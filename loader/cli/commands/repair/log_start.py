"""The commands that choose where a source's log is read from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from loader.cli.lazy import lazily
from loader.cli.session import Session, SourceOption
from loader.errors import UsageError
from loader.model.position import Position

if TYPE_CHECKING:
    from loader import pipeline
    from loader.staging.documents import Generation
else:
    pipeline = lazily("loader.pipeline")


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
        str, typer.Option(metavar="GTIDS", help="Errant transactions that an error named; they are skipped.")
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
            f"generation {generation.name} of the log starts at {generation.start} of {generation.identity}"
        )
