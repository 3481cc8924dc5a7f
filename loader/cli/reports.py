"""What commands print of the tables of a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from loader.cli.lazy import lazily

if TYPE_CHECKING:
    from loader.cli import jobs
    from loader.cli.output import Output
    from loader.pipeline import SkipState
else:
    jobs = lazily("loader.cli.jobs")

_COLUMNS = ("table", "status", "inserts", "updates", "deletes", "position")


def report_tables(output: Output, result: dict[str, Any]) -> None:
    """Print what a job did to each table.

    Raises:
        typer.Exit: tables failed; with the worst of their exit codes, after their errors were printed.
    """
    if output.as_json:
        output.document(result)
    else:
        print_tables(output, result)
    jobs.fail_on_tables(result, output)


def print_tables(output: Output, result: dict[str, Any]) -> None:
    """Print what a job did to each table for people, without errors."""
    notes = [_shortfall(table, result) for table in result["tables"]]
    columns = (*_COLUMNS, *(["note"] if any(notes) else []))
    rows = [[*(table[name] for name in _COLUMNS), note] for table, note in zip(result["tables"], notes, strict=True)]
    output.rows(columns, [row[: len(columns)] for row in rows])
    for table in result["tables"]:
        for column, count in table["misfits"].items():
            output.line(f"{table['table']}.{column}: {count:,} invalid dates or times were replaced by NULL")


def _shortfall(table: dict[str, Any], result: dict[str, Any]) -> str:
    """Return a mark for a table that does not hold everything up to the stop of the job, and why, if on purpose."""
    stop = result["stop_seqno"]
    short = stop is not None and (table["complete_through"] or 0) < stop
    return "; ".join([*([f"short of {result['stop']}"] if short else []), *filter(None, [table["note"]])])


def print_skips(output: Output, skips: Sequence[SkipState]) -> None:
    """Print what operators skipped."""
    columns = ("skipped transaction", "rows of", "rows", "state", "by", "since", "reason")
    rows = [
        (
            f"{one.start} {one.gtid}".rstrip(),
            one.table_text,
            one.rows,
            f"{one.state}: {one.why}" if one.why else one.state,
            one.by,
            f"{one.since:%F %T}",
            one.reason,
        )
        for one in skips
    ]
    output.rows(columns, rows)
