"""The commands on staged files: print records, compare with another extraction, restore files, sign documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from loader.cli.command_group import CommandGroup
from loader.cli.lazy import lazily
from loader.cli.session import Session, SourceOption, StartArgument

if TYPE_CHECKING:
    from loader import pipeline
    from loader.cli import jobs
    from loader.cli.listing import records
else:
    pipeline, jobs = lazily("loader.pipeline"), lazily("loader.cli.jobs")
    records = lazily("loader.cli.listing.records")

staged = CommandGroup(help="Show, compare, restore and sign staged files.")


@staged.command()
def cat(
    context: typer.Context,
    start: StartArgument,
    table: Annotated[str, typer.Argument(metavar="SCHEMA.TABLE", help="The table.", show_default=False)],
    source: SourceOption = "",
) -> None:
    """Verify the staged files of a table in an interval, then print their records, one per line."""
    session: Session = context.obj
    settings = session.settings(source)
    interval = pipeline.find_interval(settings, start)
    for line in records.lines(settings, interval, table, as_json=session.output.as_json):
        typer.echo(line)


@staged.command()
def compare(context: typer.Context, start: StartArgument, source: SourceOption = "") -> None:
    """Extract a staged interval once more and compare the files; nothing is kept.

    Exit code 4: the files differ.
    """
    session: Session = context.obj
    output, settings = session.output, session.settings(source)
    result = jobs.submit(pipeline.reextract_job(settings, pipeline.find_interval(settings, start)), settings, output)
    if output.as_json:
        output.document(result)
    elif not result["differences"]:
        output.line(f"equal: re-extraction produced the same {result['files']:,} files of {result['bytes']:,} bytes")
    else:
        output.rows(("name", "what", "why"), [list(difference.values()) for difference in result["differences"]])
    if result["exit_code"]:
        raise typer.Exit(result["exit_code"])


@staged.command()
def restore(context: typer.Context, start: StartArgument, source: SourceOption = "") -> None:
    """Extract a staged interval again and put back its files that are lost or changed."""
    session: Session = context.obj
    output, settings = session.output, session.settings(source)
    interval = pipeline.find_interval(settings, start)
    result = jobs.submit(pipeline.restore_job(settings, interval), settings, output)
    if output.as_json:
        output.document(result)
    else:
        output.line(f"interval {start}: {result['files']:,} files restored")


@staged.command()
def sign(context: typer.Context, source: SourceOption = "") -> None:
    """Sign what was staged before staging.signing_key was set.

    Run it once, while nobody else can write to the store.
    """
    session: Session = context.obj
    signed = pipeline.sign_staged(session.settings(source))
    if session.output.as_json:
        session.output.document({"signed": signed})
    else:
        session.output.line(f"{signed:,} documents are signed now")
