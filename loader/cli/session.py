"""What every command is given: the options before it, and the options that several share."""

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
    """What the options before the command say."""

    file: str | None
    output: Output

    def settings(self, source: str) -> SourceSettings:
        """The source's settings from the configuration."""
        return self.load().source(source)

    def load(self) -> config.Config:
        """The configuration."""
        return config.load_config(self.file)


SourceOption = Annotated[
    str,
    typer.Option(
        "--source",
        "-s",
        metavar="NAME",
        help="Source of the configuration, by name or by the address of its server or log files"
        " (mysql://host:port, file:///path); the only one by default.",
    ),
]
TablesOption = Annotated[
    list[str],
    typer.Option("--table", "-t", metavar="SCHEMA.TABLE", help="Only this table; repeat for more.", show_default=False),
]
IntervalOption = Annotated[
    int,
    typer.Option(
        "--interval",
        "-i",
        metavar="SEQNO",
        show_default=False,
        help="Start seqno of the interval; the oldest that is not staged by default, else the newest.",
    ),
]
