"""Output of commands: tables and sentences for people, one JSON document for programs."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import typer

from loader.cli.printed_commands import with_source
from loader.errors import LoaderError
from loader.log_format import VisibleFormatter
from loader.visible_text import exact_json, visible

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console

_NUMBERS = {
    "rows",
    "loaded",
    "compared",
    "differences",
    "inserts",
    "updates",
    "deletes",
    "bytes",
    "events",
    "tables",
    "applied_seqno",
    "snapshot",
    "start_seqno",
}

_PIPE_WIDTH = 220  # a pipe has no width, and numbers must not be folded


class Output:
    """Print results to stdout and errors to stderr; with `as_json`, print both as JSON to stdout.

    Attributes:
        as_json: print one JSON document instead of text.
        verbose: also print seqnos next to positions.
        source: the source that printed commands must name; empty if the configuration has only one.
    """

    def __init__(self, as_json: bool, *, verbose: bool = False) -> None:
        self.as_json = as_json
        self.verbose = verbose
        self.source = ""

    @cached_property
    def console(self) -> Console:
        """The console for results."""
        from rich.console import Console  # imported here, so that commands with JSON output start faster

        console = Console(highlight=False, soft_wrap=True)
        if not console.is_terminal:
            console.width = _PIPE_WIDTH
        return console

    @cached_property
    def errors(self) -> Console:
        """The console for errors, log lines and progress. Lines on it appear above a progress bar."""
        from rich.console import Console

        return Console(stderr=True, highlight=False, soft_wrap=True)

    def seqno(self, seqno: int) -> str:
        """Return a seqno as the end of a sentence, or nothing if the output is not verbose."""
        return f" (seqno {seqno})" if self.verbose else ""

    def document(self, result: BaseModel | Sequence[BaseModel] | dict[str, Any]) -> None:
        """Print a result as JSON."""
        data: Any = result
        if isinstance(result, Sequence):
            data = [item.model_dump(mode="json") for item in result]
        elif not isinstance(result, dict):
            data = result.model_dump(mode="json")
        typer.echo(exact_json(data))

    def line(self, text: str) -> None:
        """Print a sentence for people."""
        if not self.as_json:
            self.console.print(visible(text), markup=False)

    def rows(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print a table for people."""
        if self.as_json:
            return
        from rich.markup import escape
        from rich.table import Table

        table = Table(*columns, box=None, header_style="bold", pad_edge=False)
        for column in table.columns:
            column.overflow = "fold"
            column.no_wrap = str(column.header) in _NUMBERS
            column.justify = "right" if str(column.header) in _NUMBERS else "left"
        for row in rows:
            table.add_row(*(escape(f"{value:,}" if isinstance(value, int) else visible(str(value))) for value in row))
        self.console.print(table)

    def next_step(self, text: str) -> None:
        """Print a sentence with commands that a person can copy."""
        self.line(with_source(text, self.source))

    def note(self, text: str) -> None:
        """Write a note to stderr, apart from the results."""
        self.errors.print(visible(text), markup=False)

    def error(self, error: LoaderError, link: str = "") -> None:
        """Print an error: what failed, where, why, what to do, and the link to its explanation if there is one."""
        if self.as_json:
            typer.echo(exact_json(self._complete(error).as_dict() | ({"link": link} if link else {})))
        else:
            self.errors.print("error:", style="red", end=" ")
            self.errors.print(self.text_of(error), markup=False)
            if link:
                self.errors.print(f"  read on: {visible(link)}", markup=False)

    def text_of(self, error: LoaderError) -> str:
        """Return the text of an error for people. Its commands name the source if there are several."""
        return str(self._complete(error))

    def _complete(self, error: LoaderError) -> LoaderError:
        return error.with_hint(with_source(error.hint, self.source))


def warn_renamed(old: str, new: str) -> None:
    """Print a warning that a command or an option has a new name; it goes to stderr, also with --json."""
    typer.echo(f"warning: {old} is now {new}; the old name will be removed in the next release", err=True)


class Lines(logging.Handler):
    """Print log records to stderr, above a progress bar if there is one."""

    def __init__(self, output: Output) -> None:
        super().__init__()
        self.setFormatter(VisibleFormatter("%(message)s"))
        self._output = output

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record."""
        self._output.errors.print(self.format(record), markup=False)
