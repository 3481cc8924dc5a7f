"""The command that compacts warehouse tables and expires their snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from loader.cli.lazy import lazily
from loader.cli.output import Output
from loader.cli.session import Session, SourceOption, TablesOption

if TYPE_CHECKING:
    from loader import pipeline
    from loader.cli import jobs
    from loader.materialise.maintain import spec
    from loader.spark import job
else:
    pipeline, jobs, job = lazily("loader.pipeline"), lazily("loader.cli.jobs"), lazily("loader.spark.job")
    spec = lazily("loader.materialise.maintain.spec")

_COLUMNS = ("table", "compacted", "data_files", "delete_files", "bytes", "manifests", "expired", "snapshots", "orphans")


def maintain(
    context: typer.Context,
    source: SourceOption = "",
    table: TablesOption = [],  # noqa: B006 - typer copies it
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report what there is to do.")] = False,
) -> None:
    """Compact tables that need it, expire old snapshots, remove orphaned files. Deltas may run at the same time."""
    session: Session = context.obj
    settings = session.settings(source)
    maintenance = pipeline.maintain_job(settings, tuple(table), dry_run=dry_run)
    result = spec.MaintainResult.model_validate(jobs.submit(maintenance, settings, session.output))
    _report(session.output, result)
    if result.exit_code:
        raise typer.Exit(result.exit_code)


def _report(output: Output, result: spec.MaintainResult) -> None:
    if output.as_json:
        output.document(result)
        return
    rows = [
        [
            table.table,
            table.compacted,
            f"{table.before.data_files} -> {table.after.data_files}",
            f"{table.before.delete_files} -> {table.after.delete_files}",
            f"{table.before.bytes:,} -> {table.after.bytes:,}",
            f"{table.before.manifests} -> {table.after.manifests}",
            table.expired,
            f"{table.before.snapshots} -> {table.after.snapshots}",
            table.orphans,
        ]
        for table in result.tables
        if not table.error
    ]
    output.rows(_COLUMNS, rows)
    if result.dry_run:
        output.line("dry run: nothing was changed")
    for table in result.tables:
        if table.error:
            output.error(job.rebuild(table.error))
