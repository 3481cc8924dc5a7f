"""The options before the command, and the options that several commands share."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from loader.cli.lazy import lazily
from loader.cli.output import Output
from loader.error_page import ErrorLinks
from loader.errors import LoaderError, UsageError
from loader.model.table import TableName

if TYPE_CHECKING:
    from loader.config import file as config
    from loader.settings import SourceSettings
else:
    config = lazily("loader.config.file")


@dataclass(frozen=True)
class Session:
    """The options before the command. `links`: to the documentation, once the configuration is read."""

    file: str | None
    output: Output
    links: ErrorLinks = field(default_factory=ErrorLinks)

    def settings(self, source: str) -> SourceSettings:
        """Return the settings of a source of the configuration. Printed commands name it if there are several."""
        loaded = self.load()
        found = loaded.source(source)
        self.output.source = found.name if len(loaded.sources) > 1 else ""
        return found

    def load(self) -> config.Config:
        """Read the configuration."""
        loaded = config.load_config(self.file)
        self.links.docs_url = loaded.docs_url
        return loaded

    def error_links(self) -> ErrorLinks:
        """Return the links to errors, by the configuration if it can be read: its errors are explained as well."""
        with suppress(LoaderError):
            self.load()
        return self.links


def _check_tables(context: typer.Context, tables: list[str]) -> list[str]:
    """Refuse names without a schema.

    Raises:
        UsageError: a name has no schema or no table.
    """
    for text in tables if context.obj else ():  # without a session, the arguments are only parsed
        name = TableName.parse(text)
        if not (name.schema and name.table):
            raise UsageError(f"{text!r} is not the name of a table", hint="write it like shop.orders", key="--table")
    return tables


SourceOption = Annotated[
    str,
    typer.Option(
        "--source",
        "-s",
        metavar="NAME",
        help="Source of the configuration: its name, or the address of its server or log files"
        " (mysql://host:port, file:///path). Not needed if there is only one.",
    ),
]
TablesOption = Annotated[
    list[str],
    typer.Option(
        "--table",
        "-t",
        metavar="SCHEMA.TABLE",
        callback=_check_tables,
        help="Only this table; repeat the option for more.",
        show_default=False,
    ),
]
IntervalOption = Annotated[
    str,
    typer.Option(
        "--interval",
        "-i",
        metavar="START",
        show_default=False,
        help="Start of the interval, such as binlog.000054:123; by default the oldest interval that is not staged,"
        " else the newest one.",
    ),
]
StartArgument = Annotated[
    str,
    typer.Argument(metavar="START", help="Start of an interval, such as binlog.000054:123.", show_default=False),
]
