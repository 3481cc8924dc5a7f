"""The command that says where a source and its tables stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from loader.cli.lazy import lazily
from loader.cli.output import Output
from loader.cli.session import Session, SourceOption

if TYPE_CHECKING:
    from loader import pipeline
    from loader.spark import job
else:
    job, pipeline = lazily("loader.spark.job"), lazily("loader.pipeline")


def status(context: typer.Context, source: SourceOption = "") -> None:
    """Where the source and its tables stand; what is staged and applied also while the server does not answer."""
    session: Session = context.obj
    found = pipeline.status(session.settings(source))
    out = session.output
    unreachable = job.rebuild(found.unreachable) if found.unreachable else None
    if out.as_json:
        out.document(found)
        if unreachable:
            raise typer.Exit(unreachable.exit_code)
        return
    out.line(f"source {found.source}: {found.server}")
    applied = "all tables but those quarantined" if found.quarantined else "all tables"
    out.rows(("position", "of"), [
        (found.log_end or "unknown", "the log's end"), (found.planned, "the newest plan"),
        (found.staged, "the newest staged interval"), (found.applied, applied),
    ])  # fmt: skip
    if unreachable:
        out.line("how far the log has got since is not known, as the server does not answer")
    elif found.behind is None:
        out.line("this is another server than the one that was read so far, or its log was reset")
        out.line("the next run goes on with it, or says why not")
    else:
        out.line(f"{found.behind:,} bytes of log are not applied yet; {found.runway}")
    _tables(out, found)
    if unreachable:
        raise unreachable


def _tables(out: Output, found: pipeline.SourceStatus) -> None:
    """Print up to where each table has the log: those of the newest record up to its stop, others less."""
    stopped = {one.table for one in found.quarantined}
    rows = [
        (t.table, found.applied, str(t.snapshot), "exact" if t.exact else "catching up")
        for t in found.tables
        if t.table not in stopped
    ]
    short = f"short of {found.applied}"
    rows += [(one.table, one.applied, "", f"quarantined, {short}") for one in found.quarantined]
    rows += [(name, "", "", f"released, {short}") for name in found.released]
    out.rows(("table", "applied", "snapshot", "state"), sorted(rows))
    for one in found.quarantined:
        for line in str(job.rebuild(one.told())).split("\n"):
            out.line(line)
