"""The command that maintains the warehouse's tables."""

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
    job, pipeline, jobs = lazily("loader.spark.job"), lazily("loader.pipeline"), lazily("loader.cli.jobs")
    spec = lazily("loader.materialise.maintain.spec")

_COLUMNS = ("table", "compacted", "data_files", "delete_files", "bytes", "manifests", "expired", "snapshots", "orphans")


def maintain(
    context: typer.Context,
    source: SourceOption = "",
    table: TablesOption = [],  # noqa: B006 - typer's way
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what there is to do.")] = False,
) -> None:
    """Compact tables that need it, expire old snapshots, remove orphaned files; it may run beside deltas."""
    session: Session = context.obj
    settings = session.settings(source)
    chosen = pipeline.maintain_job(settings, tuple(table), dry_run=dry_run)
    found = spec.MaintainResult.model_validate(jobs.submit(chosen, settings, session.output.console))
    _report(session.output, found)
    if found.exit_code:
        raise typer.Exit(found.exit_code)


def _report(output: Output, found: spec.MaintainResult) -> None:
    if output.as_json:
        output.document(found)
        return
    rows = [
        [
            one.table,
            one.compacted,
            f"{one.before.data_files} -> {one.after.data_files}",
            f"{one.before.delete_files} -> {one.after.delete_files}",
            f"{one.before.bytes:,} -> {one.after.bytes:,}",
            f"{one.before.manifests} -> {one.after.manifests}",
            one.expired,
            f"{one.before.snapshots} -> {one.after.snapshots}",
            one.orphans,
        ]
        for one in found.tables
        if not one.error
    ]
    output.rows(_COLUMNS, rows)
    if found.dry_run:
        output.line("nothing was changed: this is what there is to do")
    for one in found.tables:
        if one.error:
            output.error(job.rebuild(one.error))
