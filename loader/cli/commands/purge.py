"""The command that removes staged files that nothing needs any more."""

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
        str, typer.Option(help="30d or 12h, instead of the configuration's staging.keep.", show_default=False)
    ] = "",
) -> None:
    """Remove the files of intervals that every table has had for long enough, and of attempts that lost."""
    session: Session = context.obj
    chosen = session.settings(source)
    removed = pipeline.purge(chosen, _keep(older_than) if older_than else chosen.retention.keep, dry_run=dry_run)
    if session.output.as_json:
        session.output.document(removed)
        return
    columns = ("what", "generation", "start_seqno", "attempt", "files", "bytes")
    session.output.rows(
        columns,
        [(one.what, one.generation, str(one.start_seqno), one.attempt, one.files, one.bytes) for one in removed],
    )
    moved = "moved to the archive" if any(one.archived for one in removed) else "removed"
    session.output.line(f"{len(removed)} folders {'would be ' if dry_run else ''}{moved}")


def _keep(text: str) -> timedelta | None:
    try:
        return settings.parse_keep(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is no time to keep files for", hint=str(error), key="--older-than") from error
