"""The command that compares tables with their changes in the log, and corrects them."""

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
    since: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="PLACE",
            help="Where to start: binlog.000054:123, 54:123, begin, a time such as 2026-01-31T12:00:00Z, or a GTID set."
            " A time or a GTID set means the start of the interval with the first change after it.",
        ),
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="POSITION",
            help="Compare only rows that changed up to binlog.000054:123, each with its newest change. By default all"
            " rows that changed since.",
        ),
    ] = "",
    source: SourceOption = "",
    table: TablesOption = [],  # noqa: B006 - typer copies it
    publish: Annotated[
        bool,
        typer.Option(
            "--publish/--dry-run",
            help="Correct the tables. Otherwise only report differences, and put the corrected rows on a branch.",
        ),
    ] = False,
    re_extract: Annotated[
        bool,
        typer.Option("--re-extract", help="First restore lost and changed files by extracting their intervals again."),
    ] = False,
) -> None:
    """Compare tables with their changes from a position on, up to the applied position of each table.

    The changes are collapsed to the last version of each row. A table without a primary key, or with a history, is
    instead rolled back to its snapshot at that position, and then forward. A table that was loaded after it is
    compared from its newest load on.
    """
    session: Session = context.obj
    settings = session.settings(source)
    output = session.output
    start = pipeline.find_replay_start(settings, since)
    until = pipeline.find_replay_end(settings, to, start) if to else 0
    if re_extract:
        for interval in pipeline.intervals_since(settings, start.seqno):
            restored = jobs.submit(pipeline.restore_job(settings, interval), settings, output)
            if not output.as_json:
                found = pipeline.interval(settings, interval).state.start
                output.line(f"interval {found}: {restored['files']:,} files restored")
    job = pipeline.replay_job(settings, start.seqno, tuple(table), until_seqno=until, publish=publish)
    result = jobs.submit(job, settings, output)
    if output.as_json:
        output.document(result)
    else:
        _report(output, start.position, to, result)
    jobs.fail_on_tables(result, output)


def _report(output: Output, since: str, to: str, result: dict[str, Any]) -> None:
    end = f", rows that changed up to {to}{output.seqno(result['until_seqno'])}" if to else ""
    output.line(f"changes after {since}{output.seqno(result['since_seqno'])}{end}")
    columns = ("table", "status", "inserts", "updates", "deletes", "files", "branch")
    output.rows(columns, [[table[name] for name in columns] for table in result["tables"]])
    for table in result["tables"]:
        if table["note"]:
            output.line(f"{table['table']}: {table['note']}")
        for sample in table["samples"]:
            output.line(f"{table['table']}: {sample['before']} -> {sample['after']}")
    if any(table["branch"] for table in result["tables"]):
        output.line("each branch has the corrected table, and is valid until the table changes; --publish corrects it")
