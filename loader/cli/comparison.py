"""What commands print of tables that were compared with the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loader.cli.lazy import lazily
from loader.cli.output import Output
from loader.model.table import TableName

if TYPE_CHECKING:
    from loader import pipeline
    from loader.cli import jobs
else:
    jobs = lazily("loader.cli.jobs")


def print_comparison(output: Output, verified: pipeline.Verified) -> None:
    """Print the comparisons for people."""
    output.line(f"compared at {verified.position}")
    output.rows(
        ("table", "status", "rows on the server", "rows in the warehouse", "compared", "differences"),
        [
            (
                table.table,
                table.status,
                f"{table.server_rows:,}",
                f"{table.warehouse_rows:,}",
                f"{table.compared_rows:,}",
                f"{'at least ' if table.at_least else ''}{table.differences:,}",
            )
            for table in verified.tables
        ],
    )
    for table in verified.tables:
        if table.skipped_at:
            output.next_step(
                f"{table.table}: lacks rows that an operator skipped at {table.skipped_at} (see: loader status); "
                f"to bring them: {TableName.parse(table.table).load_again}"
            )
        if table.uncompared:
            output.line(f"{table.table}: not compared: {', '.join(table.uncompared)}")
        for sample in table.samples:
            output.line(f"{table.table}: {sample}")
        if error := jobs.error_of(table.error):
            output.error(error)
