"""The command that compares the warehouse with the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from loader.cli.comparison import print_comparison
from loader.cli.lazy import lazily
from loader.cli.session import Session, SourceOption, TablesOption

if TYPE_CHECKING:
    from loader import pipeline
    from loader.cli import jobs
else:
    pipeline, jobs = lazily("loader.pipeline"), lazily("loader.cli.jobs")


def verify(
    context: typer.Context,
    source: SourceOption = "",
    table: TablesOption = [],  # noqa: B006 - typer copies it
) -> None:
    """Compare all rows with the server at one position of the log, after a run up to that position.

    Others may write to the server meanwhile. Exit code 4: rows differ.
    """
    session: Session = context.obj
    settings = session.settings(source)
    with pipeline.verification(settings, tuple(table)) as opened:
        applied = jobs.submit(opened.delta, settings, session.output) if opened.delta else None
        verified = opened.finish(jobs.submit(opened.comparison(applied), settings, session.output))
    if session.output.as_json:
        session.output.document(verified)
    else:
        print_comparison(session.output, verified)
    if verified.exit_code:
        raise typer.Exit(verified.exit_code)
