"""The `inspect` command: lists a log as text or JSON, stages it as CSV, or counts it. It needs no configuration."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loader.cli.output import Output
from loader.errors import UsageError

if TYPE_CHECKING:
    from loader.cli.listing.selection import Form, Selection
    from loader.reader.known_schemas import Known


class Format(Enum):
    """The format of the output."""

    text = "text"
    json = "json"
    csv = "csv"


class Bigint(Enum):
    """How 64-bit integers are written in JSON."""

    number = "number"
    string = "string"


_MIB = 1024 * 1024


def inspect(
    context: typer.Context,
    uri: Annotated[
        str, typer.Argument(help="file:///folder, file:///folder/binlog.000054, my.cnf, or mysql://user@host/")
    ],
    start: Annotated[
        str, typer.Option("--from", help="begin, end, binlog.000054:123, 54:123, a seqno, a GTID set, or a time.")
    ] = "begin",
    stop: Annotated[str, typer.Option("--to", help="Stop before this place; it has the same forms.")] = "end",
    limit: Annotated[
        int, typer.Option(help="List at most this number of transactions.", min=0, show_default=False)
    ] = 0,
    form: Annotated[Format, typer.Option("--format", "-f", help="How to print events.")] = Format.text,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Folder for the files of --format csv.")] = None,
    threads: Annotated[
        int,
        typer.Option(help="Threads for --format csv and --stats; by default one per core.", min=0, show_default=False),
    ] = 0,
    part_mib: Annotated[int, typer.Option(help="MiB of log per file of --format csv.", min=1)] = 64,
    headers: Annotated[bool, typer.Option("--headers", help="Show the header of every event.")] = False,
    table: Annotated[
        list[str],
        typer.Option("--table", "-t", metavar="PATTERN", help="Only rows of tables like shop.*; repeatable."),
    ] = [],  # noqa: B006
    op: Annotated[str, typer.Option("--op", help="Only rows of these operations: I, U, D, separated by commas.")] = "",
    stats: Annotated[
        bool, typer.Option("--stats", help="Count events and rows, and show the largest transactions.")
    ] = False,
    schema: Annotated[
        str,
        typer.Option(
            metavar="FILE|URI",
            help="Columns, keys and character sets that the log lacks: from mysqldump --no-data, or mysql://...",
        ),
    ] = "",
    bigint: Annotated[
        Bigint, typer.Option("--json-bigint", help="How --format json writes integers of 64 bits.")
    ] = Bigint.number,
    wait: Annotated[
        bool, typer.Option("--wait", help="If --from or --to is a time in the future, wait for it.")
    ] = False,
) -> None:
    """List the events of a binary log, stage its rows as CSV, or count them."""
    out: Output = context.obj.output
    if out.as_json and form is Format.text:
        form = Format.json
    operations = _operations(op)
    _check_patterns(table)
    known = _known(schema)
    if stats or form is Format.csv:
        from loader.cli.listing.bulk import count_rows, segments_between, stage_rows
        from loader.extract.local_extraction import StagingOptions

        wanted = StagingOptions(
            tuple(table) or ("*.*",), operations, part_mib * _MIB, threads or os.cpu_count() or 1, known
        )
        files, segments = segments_between(uri, start, stop, limit)
        if stats:
            count_rows(out, files, segments, wanted, as_json=form is Format.json)
        else:
            stage_rows(out, files, segments, output, wanted)
        return
    if output:
        raise UsageError("--output needs --format csv", hint="add --format csv", key="--output")
    from loader.cli.listing.selection import Selection

    selection = Selection(bool(table) or operations != "IUD", operations, limit)
    shown = _form(form, headers, bigint_as_text=bigint is Bigint.string)
    _list(out, uri, (start, stop), tuple(table), selection, shown, wait, known)


def _operations(text: str) -> str:
    letters = [letter.strip().upper() for letter in text.split(",") if letter.strip()]
    if not set(letters) <= set("IUD"):
        raise UsageError(
            f"{text!r} is not a list of operations",
            hint="write I, U, D or several of them, separated by commas",
            key="--op",
        )
    return "".join(letters) or "IUD"


def _check_patterns(patterns: list[str]) -> None:
    """Refuse a pattern that no table can match: a name without a schema."""
    if wrong := [pattern for pattern in patterns if not set(".*?[") & set(pattern)]:
        raise UsageError(
            f"{wrong[0]!r} matches no table",
            why="the name of a table is schema.table",
            hint=f"write --table '*.{wrong[0]}'",
            key="--table",
        )


def _known(schema: str) -> Known:
    """Return the schemas that --schema gives."""
    if not schema:
        from loader.reader.known_schemas import knows_nothing

        return knows_nothing
    from loader.reader.given_schemas import read_schemas

    return read_schemas(schema)


def _form(form: Format, headers: bool, *, bigint_as_text: bool) -> Form:
    if form is Format.json:
        from loader.cli.listing.json_lines import JsonLines

        return JsonLines(headers, bigint_as_text=bigint_as_text)
    from loader.cli.listing.text import Listing

    return Listing(headers)


def _list(
    out: Output, uri: str, span: tuple[str, str], tables: tuple[str, ...], selection: Selection, form: Form,
    wait: bool, known: Known,
) -> None:  # fmt: skip
    from loader.cli.listing.blocks import BlockListing
    from loader.cli.listing.progress import show_bytes
    from loader.cli.listing.unreadable_values import UnreadableCount, note_assumed
    from loader.reader.log import open_log

    unreadable = UnreadableCount()
    opened = open_log(uri, start=span[0], stop=span[1], tables=tables, wait=wait, lenient=True, known=known)
    with opened as log, _piped() as write:
        if wait:
            BlockListing(form, selection, write, unreadable, lambda _: None).follow(log)
        else:
            with show_bytes(out, log.size(), lists=True) as advance:
                BlockListing(form, selection, write, unreadable, advance).list(log)
    note_assumed(out, log.assumed)
    unreadable.check()


@contextmanager
def _piped() -> Iterator[Callable[[bytes], object]]:
    """Yield what writes UTF-8 to stdout. End quietly if the reader of a pipe, such as `head`, closes it."""
    sys.stdout.flush()
    try:
        yield sys.stdout.buffer.write
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # The interpreter flushes stdout again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
