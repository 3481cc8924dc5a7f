"""The options before the command, and the options that several commands share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from loader.cli.lazy import lazily
from loader.cli.output import Output

if TYPE_CHECKING:
    from loader import config
    from loader.settings import SourceSettings
else:
    config = lazily("loader.config")


@dataclass(frozen=True)
class Session:
    """The options before the command."""

    file: str | None
    output: Output

    def settings(self, source: str) -> SourceSettings:
        """Return the settings of a source of the configuration."""
        return self.load().source(source)

    def load(self) -> config.Config:
        """Read the configuration."""
        return config.load_config(self.file)


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
        "--table", "-t", metavar="SCHEMA.TABLE", help="Only this table; repeat the option for more.", show_default=False
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
