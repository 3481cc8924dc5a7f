"""The commands that pause and resume tables."""

from __future__ import annotations

from getpass import getuser
from typing import TYPE_CHECKING, Annotated

import typer

from loader.cli.lazy import lazily
from loader.cli.session import Session, SourceOption

if TYPE_CHECKING:
    from loader import pipeline
else:
    pipeline = lazily("loader.pipeline")

_TablesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="SCHEMA.TABLE...", help="Tables, or patterns such as 'shop.order_*' in quotes.", show_default=False
    ),
]


def pause(
    context: typer.Context,
    table: _TablesArgument,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why. Everybody sees it.", show_default=False)],
    source: SourceOption = "",
) -> None:
    """Stop merging tables from the next run on. Their changes are still staged, and all other tables continue."""
    session: Session = context.obj
    paused = pipeline.pause(session.settings(source), table, getuser(), reason)
    if session.output.as_json:
        session.output.document(paused)
        return
    for one in paused:
        session.output.line(f"{one.table} is {one.note}")


def resume(context: typer.Context, table: _TablesArgument, source: SourceOption = "") -> None:
    """Let the next run merge paused tables again, from their applied positions."""
    session: Session = context.obj
    resumed = pipeline.resume(session.settings(source), table)
    if session.output.as_json:
        session.output.document(resumed)
        return
    for one in resumed:
        session.output.line(f"resumed {one.table}, {one.note}")
