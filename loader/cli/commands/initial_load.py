"""The command that loads tables for the first time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from loader.cli.lazy import lazily
from loader.cli.reports import report_tables
from loader.cli.session import Session, SourceOption, TablesOption

if TYPE_CHECKING:
    from loader import pipeline
    from loader.cli import jobs
    from loader.materialise import spec
else:
    pipeline, jobs = lazily("loader.pipeline"), lazily("loader.cli.jobs")
    spec = lazily("loader.materialise.spec")


def initial_load(
    context: typer.Context,
    source: SourceOption = "",
    table: TablesOption = [],  # noqa: B006 - typer copies it
    again: Annotated[
        bool, typer.Option("--again", help="Also read tables from the server again that are loaded already.")
    ] = False,
) -> None:
    """Load the captured tables, or some of them. Tables that are loaded already are left alone."""
    session: Session = context.obj
    settings = session.settings(source)
    result = jobs.submit(pipeline.full_load_job(settings, tuple(table), again=again), settings, session.output)
    loaded, failed = result["load"], [table for table in result["read"]["tables"] if table["error"]]
    loaded["tables"] = sorted(loaded["tables"] + [_unread(table) for table in failed], key=lambda t: str(t["table"]))
    report_tables(session.output, loaded)


def _unread(table: dict[str, Any]) -> dict[str, Any]:
    """Return a table that could not be read in the form of the load's result."""
    return spec.TableResult(table=table["table"], status="failed", error=table["error"]).model_dump(mode="json")
