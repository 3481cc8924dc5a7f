"""The command that removes staged files that are no longer needed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from loader.cli.lazy import lazily
from loader.cli.session import Session, SourceOption
from loader.errors import UsageError

if TYPE_CHECKING:
    from loader import pipeline, settings
else:
    pipeline, settings = lazily("loader.pipeline"), lazily("loader.settings")


def purge(
    context: typer.Context,
    source: SourceOption = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would be removed.")] = False,
    older_than: Annotated[
        str,
        typer.Option(
            metavar="AGE", help="30d or 12h, instead of staging.keep of the configuration.", show_default=False
        ),
    ] = "",
) -> None:
    """Remove staged files of intervals that every table has applied for long enough, and of unused attempts."""
    session: Session = context.obj
    chosen = session.settings(source)
    removed = pipeline.purge(chosen, _keep(older_than) if older_than else chosen.retention.keep, dry_run=dry_run)
    if session.output.as_json:
        session.output.document(removed)
        return
    columns = ("what", "generation", "start", "attempt", "files", "bytes")
    rows = [[getattr(removal, name) for name in columns] for removal in removed]
    session.output.rows(columns, rows)
    moved = "moved to the archive" if any(removal.archived for removal in removed) else "removed"
    session.output.line(f"{len(removed)} folders {'would be ' if dry_run else ''}{moved}")
    for kept in pipeline.kept_files(chosen):
        session.output.next_step(
            f"{kept.table} is postponed, see loader status: {kept.files:,} files of {kept.bytes:,} bytes in"
            f" {kept.intervals:,} applied intervals stay for it"
        )


def _keep(text: str) -> timedelta | None:
    try:
        return settings.parse_keep(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is not an age", hint=str(error), key="--older-than") from error
