"""Stages and counts ranges of a log with the kernels of the extraction."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from loader.cli.listing.progress import show_bytes
from loader.cli.listing.unreadable_values import note_assumed, refuse_unreadable
from loader.cli.output import Output
from loader.errors import UsageError
from loader.extract.local_extraction import StagingOptions, count, count_records, stage
from loader.model.table import TableName
from loader.reader.files.log_files import ListedFile, LogFiles
from loader.reader.files.window import opened
from loader.reader.locations.uri import resolve
from loader.reader.seek.position_spec import End, parse_place
from loader.reader.seek.seek import Locator, check_range
from loader.reader.stats import Tally
from loader.visible_text import exact_json

Segment = tuple[ListedFile, int, int]


def segments_between(uri: str, start: str, stop: str, limit: int) -> tuple[LogFiles, list[Segment]]:
    """Return the ranges of log files between two places. A file in use ends with its last whole transaction.

    Raises:
        UsageError: a place is not in the log, or the range ends before it begins.
        LoaderError: the log cannot be read.
    """
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


def stage_rows(
    out: Output, files: LogFiles, segments: list[Segment], folder: Path | None, wanted: StagingOptions
) -> None:
    """Stage the rows into a folder, and print how many there are by table.

    Raises:
        UsageError: no folder is given, or it cannot be used.
        DataError: some rows could not be read; all others are staged. Or the walk refuses the log.
    """
    if folder is None:
        raise UsageError("--format csv needs a folder", hint="give --output DIR", key="--output")
    with show_bytes(out, sum(end - begin for _, begin, end in segments)) as progress:
        results = stage(files, segments, folder, wanted, progress)
    found = count_records(results)
    if out.as_json:
        out.document({**found, "folder": str(folder)})
    else:
        _print_tables(out, found)
        if found["statements"]:
            out.line(f"the log also has {found['statements']:,} statements; the files only have changes of rows")
    note_assumed(out, results.assumed)
    refuse_unreadable(found["unreadable_values"], found["unreadable_row_events"])


def count_rows(out: Output, files: LogFiles, segments: list[Segment], wanted: StagingOptions, *, as_json: bool) -> None:
    """Print how many events, transactions and rows there are.

    Raises:
        LoaderError: as stage_rows.
    """
    tally = Tally()
    for file, begin, end in segments:
        tally.add(files, file, begin, end)
    largest = [{"seqno": t.seqno, "start": str(t.start), "end": str(t.end), "bytes": t.bytes} for t in tally.largest]
    events = [{"type": name, "events": n, "bytes": size} for name, (n, size) in sorted(tally.events.items())]
    if not as_json:
        out.rows(("type", "events", "bytes"), [list(one.values()) for one in events])
        out.line(f"{tally.transactions:,} transactions, the largest:")
        out.rows(("start", "end", "bytes"), [[one["start"], one["end"], one["bytes"]] for one in largest])
    with show_bytes(out, sum(end - begin for _, begin, end in segments)) as progress:
        results = count(files, segments, wanted, progress)
    counted = count_records(results)
    if as_json:
        unreadable = {name: counted[name] for name in ("unreadable_values", "unreadable_row_events")}
        found = {"events": events, "transactions": tally.transactions, "largest": largest, "tables": counted["tables"]}
        sys.stdout.write(exact_json(found | unreadable) + "\n")
    else:
        _print_tables(out, counted)
    note_assumed(out, results.assumed)
    refuse_unreadable(counted["unreadable_values"], counted["unreadable_row_events"])


def _print_tables(out: Output, found: dict[str, Any]) -> None:
    """Records by table; a schema with a point in its name is in backticks."""
    columns = ("inserts", "updates", "deletes", "bytes")
    rows = [[TableName(one["schema"], one["table"]), *(one[name] for name in columns)] for one in found["tables"]]
    out.rows(("table", *columns), rows)
