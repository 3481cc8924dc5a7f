"""The commands that show and set the columns of tables, for logs without column names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loader.cli.command_group import CommandGroup
from loader.cli.lazy import lazily
from loader.cli.session import Session, SourceOption
from loader.errors import UsageError
from loader.model.table import TableName

if TYPE_CHECKING:
    from loader import pipeline
else:
    pipeline = lazily("loader.pipeline")

schema = CommandGroup(help="Show or set the columns of tables, for logs without column names.")
TableArgument = Annotated[str, typer.Argument(metavar="SCHEMA.TABLE", help="The table.", show_default=False)]


@schema.command()
def show(
    context: typer.Context,
    table: TableArgument,
    source: SourceOption = "",
    at: Annotated[
        str,
        typer.Option(
            metavar="POSITION", help="A position such as binlog.000054:123; by default the end of all staged intervals."
        ),
    ] = "",
) -> None:
    """Show what the loader knows of the columns of a table at a position of the log."""
    session: Session = context.obj
    shown = pipeline.table_schema(session.settings(source), TableName.parse(table), at)
    out = session.output
    if out.as_json:
        out.document(shown)
        return
    known = shown.known()
    out.line(f"table {table} at {shown.at}")
    if known.schema is None:
        out.line(f"its columns are not known: {known.unreadable_why}")
        return
    out.rows(
        ("column", "type", "charset"), [(column.name, str(column), column.charset) for column in known.schema.columns]
    )
    key = f"({', '.join(known.schema.key)})" if known.schema.key else "none"
    out.line(f"key: {key}{'' if known.key.sure else ', or a unique key'}")


@schema.command("set")
def give(
    context: typer.Context,
    table: TableArgument,
    at: Annotated[
        str, typer.Option(metavar="POSITION", help="Position from which on the columns are valid (binlog.000054:123).")
    ],
    file: Annotated[
        Path,
        typer.Option(metavar="FILE", help="Output of SHOW CREATE TABLE, or of loader --json schema show."),
    ],
    source: SourceOption = "",
) -> None:
    """Set the columns of a table from a position on, if neither the log nor its statements tell them.

    The position must not be staged yet, unless its interval left out rows of the table.
    """
    session: Session = context.obj
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        hint = f"write it with: loader --json schema show {TableName.parse(table).argument} --at {at} > FILE"
        raise UsageError("the file cannot be read", why=str(error), hint=hint, file=file) from error
    stored = pipeline.set_table_schema(session.settings(source), TableName.parse(table), at, text)
    if session.output.as_json:
        session.output.document(stored)
    else:
        session.output.line(f"the columns of {table} are set from {stored.at} on")
