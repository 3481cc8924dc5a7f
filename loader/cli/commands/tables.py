"""The command that shows a consistent set of snapshots of all tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from loader.cli.lazy import lazily
from loader.cli.session import Session, SourceOption

if TYPE_CHECKING:
    from loader import pipeline
    from loader.cli import jobs
else:
    pipeline, jobs = lazily("loader.pipeline"), lazily("loader.cli.jobs")


def tables(
    context: typer.Context,
    source: SourceOption = "",
    as_of: Annotated[
        str,
        typer.Option(
            metavar="PLACE",
            help="Show the newest view without changes after a position (binlog.000054:123), a seqno, or a time of"
            " commit (2026-01-31T12:00:00Z).",
            show_default=False,
        ),
    ] = "",
    verify: Annotated[bool, typer.Option("--verify", help="Check that the catalog still has each snapshot.")] = False,
) -> None:
    """Show the snapshot of every table at one position of the log, with the query that reads it."""
    session: Session = context.obj
    settings = session.settings(source)
    view = pipeline.view(settings, as_of)
    if verify:
        jobs.submit(pipeline.snapshots_job(settings, view), settings, session.output)
    if session.output.as_json:
        session.output.document(view)
        return
    out = session.output
    time = f"; the newest commit in it is of {view.committed_at} UTC" if view.committed_at else ""
    out.line(f"the tables at {view.stop}{out.seqno(view.stop_seqno)}{time}")
    out.rows(("table", "snapshot", "query"), [(table.table, str(table.snapshot), table.query) for table in view.tables])
    for name in view.missing:
        out.line(f"{name} is not included: it was behind")
