"""The command that releases quarantined tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from loader.cli.lazy import lazily
from loader.cli.session import Session, SourceOption
from loader.errors import UsageError

if TYPE_CHECKING:
    from loader import pipeline
else:
    pipeline = lazily("loader.pipeline")


def release(
    context: typer.Context,
    table: Annotated[str, typer.Argument(metavar="SCHEMA.TABLE", help="The table.", show_default=False)] = "",
    source: SourceOption = "",
    every: Annotated[bool, typer.Option("--all", help="Release every quarantined table.")] = False,
) -> None:
    """Let the next run attempt a quarantined table again, from its applied position. Fix the cause first.

    A table with `every` waits until it is due. `loader run --now` merges it at once.
    """
    session: Session = context.obj
    if bool(table) == every:
        raise UsageError("name one table, or give --all", hint="list the quarantined tables with: loader status")
    released = pipeline.release(session.settings(source), table)
    if session.output.as_json:
        session.output.document(released)
        return
    for quarantine in released:
        name, error = quarantine.table, quarantine.error["what"]
        session.output.line(f"released {name}, quarantined since {quarantine.since:%F %T} UTC: {error}")
    if not released:
        session.output.line("no table is quarantined")
