"""The commands about the columns of tables whose log does not name them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loader.cli.lazy import lazily
from loader.cli.session import Session, SourceOption
from loader.errors import UsageError
from loader.model.table import TableName

if TYPE_CHECKING:
    from loader import pipeline
else:
    pipeline = lazily("loader.pipeline")

schema = typer.Typer(
    help="Columns of tables, for logs that do not name them.", no_args_is_help=True, rich_markup_mode=None
)
TableArgument = Annotated[str, typer.Argument(help="The table, as schema.table.", show_default=False)]


@schema.command()
def show(
    context: typer.Context,
    table: TableArgument,
    source: SourceOption = "",
    at: Annotated[
        str, typer.Option(help="A position (binlog.000054:123); the end of all that is staged by default.")
    ] = "",
) -> None:
    """What is known of a table's columns at a position of the log."""
    session: Session = context.obj
    found = pipeline.table_schema(session.settings(source), TableName.parse(table), at)
    out = session.output
    if out.as_json:
        out.document(found)
        return
    known = found.known()
    out.line(f"table {table} at {found.at}")
    if known.schema is None:
        out.line(f"its columns are not known: {known.unreadable_why}")
        return
    out.rows(("column", "type", "charset"), [(one.name, str(one), one.charset) for one in known.schema.columns])
    key = f"({', '.join(known.schema.key)})" if known.schema.key else "none"
    out.line(f"key: {key}{'' if known.key.sure else ', but a unique key may be it'}")


@schema.command("set")
def give(
    context: typer.Context,
    table: TableArgument,
    at: Annotated[str, typer.Option(help="The position from which on the table is so (binlog.000054:123).")],
    file: Annotated[
        Path, typer.Option(help="CREATE TABLE as SHOW CREATE TABLE prints it, or what --json schema show prints.")
    ],
    source: SourceOption = "",
) -> None:
    """Say how a table is from a position on that is not staged yet, where the log and its statements do not tell."""
    session: Session = context.obj
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError("the file cannot be read", why=str(error), file=file) from error
    given = pipeline.set_table_schema(session.settings(source), TableName.parse(table), at, text)
    if session.output.as_json:
        session.output.document(given)
    else:
        session.output.line(f"{table} is so from {given.at} on")
