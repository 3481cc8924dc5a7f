"""The command that names a consistent set of snapshots."""

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
            help="A position (binlog.000054:123), a seqno, or a time of commit (2026-01-31T12:00:00Z): the newest view"
            " with nothing after it.",
            show_default=False,
        ),
    ] = "",
    verify: Annotated[
        bool, typer.Option("--verify", help="Ask the catalog whether each snapshot is still there.")
    ] = False,
) -> None:
    """Every table as it stood at one position of the log, by the snapshot to query it at."""
    session: Session = context.obj
    settings = session.settings(source)
    found = pipeline.view(settings, as_of)
    if verify:
        jobs.submit(pipeline.snapshots_job(settings, found), settings, session.output.console)
    if session.output.as_json:
        session.output.document(found)
        return
    out = session.output
    time = f", everything that was committed up to {found.committed_at} UTC" if found.committed_at else ""
    out.line(f"the tables at {found.stop} (seqno {found.stop_seqno}){time}")
    out.rows(("table", "snapshot", "query"), [(one.table, str(one.snapshot), one.query) for one in found.tables])
    for name in found.missing:
        out.line(f"{name} is not part of it: it was quarantined")
