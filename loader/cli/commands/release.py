"""The command that lets quarantined tables go on."""

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
    table: Annotated[str, typer.Argument(help="The table, as schema.table.", show_default=False)] = "",
    source: SourceOption = "",
    every: Annotated[bool, typer.Option("--all", help="Every table that is quarantined.")] = False,
) -> None:
    """Let the next run attempt a quarantined table again, from where it stands; mend the cause first."""
    session: Session = context.obj
    if bool(table) == every:
        raise UsageError("name one table, or give --all", hint="see: loader status")
    released = pipeline.release(session.settings(source), table)
    if session.output.as_json:
        session.output.document(released)
        return
    for one in released:
        session.output.line(f"released {one.table}, quarantined since {one.since:%F %T}: {one.error['what']}")
    if not released:
        session.output.line("no table is quarantined")
