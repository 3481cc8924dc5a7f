"""The `inspect` command: what a log holds, for people, for programs, or as staged files. It needs no configuration."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loader.cli.output import Output
from loader.errors import UsageError
from loader.visible_text import exact_json

if TYPE_CHECKING:
    from loader.extract.local_staging import StagingOptions
    from loader.reader.events import Event
    from loader.reader.files.log_files import LogFiles, Named

    Segment = tuple[Named, int, int]


class Format(Enum):
    """How events are printed."""

    text = "text"
    json = "json"
    csv = "csv"


_MIB = 1024 * 1024


def inspect(
    context: typer.Context,
    uri: Annotated[
        str, typer.Argument(help="file:///folder, file:///folder/binlog.000054, my.cnf, or mysql://user@host/")
    ],
    start: Annotated[
        str, typer.Option("--from", help="begin, end, binlog.000054:123, 54:123, a seqno, a GTID set, or a time.")
    ] = "begin",
    stop: Annotated[str, typer.Option("--to", help="Stop before this place, of the same forms.")] = "end",
    limit: Annotated[int, typer.Option(help="At most so many transactions.", min=0, show_default=False)] = 0,
    form: Annotated[Format, typer.Option("--format", "-f", help="How to print events.")] = Format.text,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Folder for the files of --format csv.")] = None,
    threads: Annotated[
        int, typer.Option(help="Of --format csv and --stats; all cores by default.", min=0, show_default=False)
    ] = 0,
    part_mib: Annotated[int, typer.Option(help="MiB of log to a file of --format csv.", min=1)] = 64,
    headers: Annotated[bool, typer.Option("--headers", help="Show the header of every event.")] = False,
    table: Annotated[
        list[str],
        typer.Option("--table", "-t", metavar="PATTERN", help="Only rows of tables like shop.*; may repeat."),
    ] = [],  # noqa: B006
    op: Annotated[str, typer.Option("--op", help="Only rows of these operations: I, U, D with commas between.")] = "",
    stats: Annotated[
        bool, typer.Option("--stats", help="Count instead: events, rows, the largest transactions.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for a time of --from or --to in the future.")] = False,
) -> None:
    """List the events of a binary log, stage its rows as CSV, or count what is in it."""
    out: Output = context.obj.output
    if out.as_json and form is Format.text:
        form = Format.json
    operations = _operations(op)
    _check_patterns(table)
    if stats or form is Format.csv:
        from loader.extract.local_staging import StagingOptions

        wanted = StagingOptions(tuple(table) or ("*.*",), operations, part_mib * _MIB, threads or os.cpu_count() or 1)
        files, segments = _segments(uri, start, stop, limit)
        if stats:
            _count(out, form, files, segments, wanted)
        else:
            _stage(out, files, segments, output, wanted)
        return
    if output:
        raise UsageError("--output is of --format csv", key="--output")
    _list(uri, (start, stop), limit, (tuple(table), operations), _printer(form, headers), wait)


def _operations(text: str) -> str:
    letters = [letter.strip().upper() for letter in text.split(",") if letter.strip()]
    if not set(letters) <= set("IUD"):
        raise UsageError(f"{text!r} are not operations", hint="write some of I,U,D", key="--op")
    return "".join(letters) or "IUD"


def _check_patterns(patterns: list[str]) -> None:
    """Refuse what no table can be like: a name without its schema."""
    if wrong := [pattern for pattern in patterns if not set(".*?[") & set(pattern)]:
        raise UsageError(
            f"{wrong[0]!r} is not like any table",
            why="tables are called schema.table",
            hint=f"write --table '*.{wrong[0]}'",
            key="--table",
        )


def _printer(form: Format, headers: bool) -> Callable[[Event], Iterable[str]]:
    if form is Format.json:
        from loader.cli.listing.json_lines import json_line

        return lambda event: (json_line(event, headers),)
    from loader.cli.listing.text import Listing

    return Listing(headers).lines


def _list(
    uri: str,
    span: tuple[str, str],
    limit: int,
    filters: tuple[tuple[str, ...], str],
    lines: Callable[[Event], Iterable[str]],
    wait: bool,
) -> None:
    from loader.reader.events import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent
    from loader.reader.log import open_log

    tables, operations = filters
    wanted = tuple(
        kind for kind, op in ((WriteRowsEvent, "I"), (UpdateRowsEvent, "U"), (DeleteRowsEvent, "D")) if op in operations
    )
    shown, seqno = 0, -1
    with open_log(uri, start=span[0], stop=span[1], tables=tables, wait=wait) as log, _piped():
        events = iter(log) if not wait else iter(log.wait_for_next_event, None)
        for event in events:
            if (tables or operations != "IUD") and not (isinstance(event, wanted) and event.schema):
                continue
            if event.transaction and event.transaction.seqno != seqno:
                shown, seqno = shown + 1, event.transaction.seqno
                if 0 < limit < shown:
                    return
            for line in lines(event):
                sys.stdout.write(f"{line}\n")


@contextmanager
def _piped() -> Iterator[None]:
    """Names that are no UTF-8 are shown escaped; a reader that has enough, as `head` has, ends the command quietly."""
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes once more at its end, into nothing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _segments(uri: str, start: str, stop: str, limit: int) -> tuple[LogFiles, list[Segment]]:
    """The stretches of log files between two places; of a file that is in use, up to its last whole transaction."""
    from loader.reader.files.window import opened
    from loader.reader.seek.position_spec import End, parse_place
    from loader.reader.seek.seek import Locator, check_range
    from loader.reader.uri import resolve

    files = resolve(uri)
    locator = Locator(files)
    begin, until = locator.find(parse_place(start)), parse_place(stop)
    last = files.listed()[-1]
    end = None if until == End() else locator.find(until)
    if until == End() and files.at_hand:
        with opened(files, last) as log:
            in_use = log.form.in_use
        end = locator.find(until) if in_use else None
    if begin is None:
        raise UsageError("the log has not reached that time yet", hint="give a time in the past", key="--from")
    check_range(begin, end)
    return files, locator.segments(begin, end, limit)


def _stage(out: Output, files: LogFiles, segments: list[Segment], folder: Path | None, wanted: StagingOptions) -> None:
    from loader.extract.local_staging import count_records, stage

    if folder is None:
        raise UsageError("--format csv needs a folder", hint="give --output DIR", key="--output")
    with _progress(out, sum(end - begin for _, begin, end in segments)) as progress:
        results = stage(files, segments, folder, wanted, progress)
    found = count_records(results)
    if out.as_json:
        out.document({**found, "folder": str(folder)})
        return
    columns = ("table", "inserts", "updates", "deletes", "bytes")
    out.rows(columns, [[one[name] for name in columns] for one in found["tables"]])
    if found["statements"]:
        out.line(f"{found['statements']:,} statements are in the log; the files hold changes of rows only")


def _count(out: Output, form: Format, files: LogFiles, segments: list[Segment], wanted: StagingOptions) -> None:
    from loader.extract.local_staging import count, count_records
    from loader.reader.stats import Tally

    tally = Tally()
    for file, begin, end in segments:
        tally.add(files, file, begin, end)
    largest = [{"seqno": t.seqno, "start": str(t.start), "end": str(t.end), "bytes": t.bytes} for t in tally.largest]
    events = [{"type": name, "events": n, "bytes": size} for name, (n, size) in sorted(tally.events.items())]
    as_text = form is not Format.json
    if as_text:
        out.rows(("type", "events", "bytes"), [list(one.values()) for one in events])
        out.line(f"{tally.transactions:,} transactions, the largest:")
        out.rows(("start", "end", "bytes"), [[one["start"], one["end"], one["bytes"]] for one in largest])
    with _progress(out, sum(end - begin for _, begin, end in segments)) as progress:
        tables = count_records(count(files, segments, wanted, progress))["tables"]
    if as_text:
        columns = ("table", "inserts", "updates", "deletes", "bytes")
        out.rows(columns, [[one[name] for name in columns] for one in tables])
        return
    found = {"events": events, "transactions": tally.transactions, "largest": largest, "tables": tables}
    sys.stdout.write(exact_json(found) + "\n")


@contextmanager
def _progress(out: Output, total: int) -> Iterator[Callable[[int], object]]:
    """A bar of bytes on a terminal, nothing in a pipe."""
    if not sys.stderr.isatty():  # asked first: a pipe need not wait for the import of what draws
        yield lambda _: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = (BarColumn(bar_width=24), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=out.errors, transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda size: bar.advance(task, size)
