"""What the command prints: tables and sentences for people, one JSON document for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from loader.errors import LoaderError

_NUMBERS = {
    "rows",
    "loaded",
    "compared",
    "differences",
    "inserts",
    "updates",
    "deletes",
    "bytes",
    "tables",
    "applied_seqno",
    "snapshot",
    "start_seqno",
}

_PIPE_WIDTH = 220  # a pipe has no width of its own, and a table must not fold its numbers


class Output:
    """Prints results to stdout and errors to stderr; with `as_json` both are JSON on stdout."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.console = Console(highlight=False, soft_wrap=True)
        if not self.console.is_terminal:
            self.console.width = _PIPE_WIDTH
        self.errors = Console(stderr=True, highlight=False, soft_wrap=True)

    def document(self, result: BaseModel | Sequence[BaseModel] | dict[str, Any]) -> None:
        """Print a result as JSON."""
        if isinstance(result, BaseModel):
            data: Any = result.model_dump(mode="json")
        elif isinstance(result, dict):
            data = result
        else:
            data = [item.model_dump(mode="json") for item in result]
        typer.echo(json.dumps(data, ensure_ascii=False))

    def line(self, text: str) -> None:
        """A sentence for people."""
        if not self.as_json:
            self.console.print(escape(text))

    def rows(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """A table for people."""
        if self.as_json:
            return
        table = Table(*columns, box=None, header_style="bold", pad_edge=False)
        for column in table.columns:
            column.overflow = "fold"
            column.no_wrap = str(column.header) in _NUMBERS
            column.justify = "right" if str(column.header) in _NUMBERS else "left"
        for row in rows:
            table.add_row(*(escape(f"{value:,}" if isinstance(value, int) else str(value)) for value in row))
        self.console.print(table)

    def error(self, error: LoaderError) -> None:
        """An error, with its place, cause and cure."""
        if self.as_json:
            typer.echo(json.dumps(error.as_dict(), ensure_ascii=False))
        else:
            self.errors.print(f"[red]error:[/red] {escape(str(error))}")
