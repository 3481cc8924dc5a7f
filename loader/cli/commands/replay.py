"""The command that replays a stretch of the log against the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from loader.cli.lazy import lazily
from loader.cli.output import Output
from loader.cli.session import Session, SourceOption, TablesOption

if TYPE_CHECKING:
    from loader import pipeline
    from loader.cli import jobs
else:
    pipeline, jobs = lazily("loader.pipeline"), lazily("loader.cli.jobs")


def replay(
    context: typer.Context,
    since: Annotated[str, typer.Option("--from", help="Position in the log, such as binlog.000054:123.")],
    source: SourceOption = "",
    table: TablesOption = [],  # noqa: B006 - typer copies it
    publish: Annotated[
        bool, typer.Option("--publish/--dry-run", help="Mend the tables; else say what differs, on a branch of each.")
    ] = False,
    re_extract: Annotated[
        bool,
        typer.Option(
            "--re-extract", help="First put back files that are lost or changed, by extracting their intervals again."
        ),
    ] = False,
) -> None:
    """Collapse all changes from a position to where each table stands, and bring in order the rows that differ.

    A table without a primary key, and a history, is rolled back to its snapshot at that very position, and forward.
    """
    session: Session = context.obj
    settings = session.settings(source)
    output = session.output
    if re_extract:
        for start in pipeline.intervals_since(settings, since):
            restored = jobs.submit(pipeline.restore_job(settings, start), settings, output.console)
            if not output.as_json:
                output.line(f"interval {start}: {restored['files']} files put back")
    result = jobs.submit(pipeline.replay_job(settings, since, tuple(table), publish=publish), settings, output.console)
    if output.as_json:
        output.document(result)
    else:
        _report(output, result)
    jobs.fail_on_tables(result, output)


def _report(output: Output, result: dict[str, Any]) -> None:
    output.line(f"changes after seqno {result['since_seqno']}")
    columns = ("table", "status", "inserts", "updates", "deletes", "files", "branch")
    output.rows(columns, [[one[name] for name in columns] for one in result["tables"]])
    for one in result["tables"]:
        for sample in one["samples"]:
            output.line(f"{one['table']}: {sample['before']} -> {sample['after']}")
    if any(one["branch"] for one in result["tables"]):
        output.line("a branch has the table as it should be, until the table changes; --publish mends it")
