"""The command that skips one transaction, or the rows of tables in it."""

from __future__ import annotations

import getpass
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from loader.cli.lazy import lazily
from loader.cli.reports import print_skips
from loader.cli.session import Session, SourceOption
from loader.model.table import TableName

if TYPE_CHECKING:
    from loader import pipeline
    from loader.cli.output import Output
else:
    pipeline = lazily("loader.pipeline")


def skip(
    context: typer.Context,
    transaction: Annotated[
        str,
        typer.Argument(
            metavar="TRANSACTION",
            help="Its GTID, a position in it such as binlog.000054:123, or its seqno.",
            show_default=False,
        ),
    ],
    source: SourceOption = "",
    table: Annotated[
        list[str],
        typer.Option(
            "--table",
            "-t",
            metavar="SCHEMA.TABLE",
            help="Skip only the rows of this table; repeat the option for more.",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - typer copies it
    reason: Annotated[
        str,
        typer.Option(
            metavar="TEXT",
            help="Why; it is kept with your name. Without a reason, nothing is skipped.",
            show_default=False,
        ),
    ] = "",
    withdraw: Annotated[
        bool,
        typer.Option("--withdraw", help="Withdraw a skip that no plan has yet, so that its rows are staged."),
    ] = False,
) -> None:
    """Show the rows of a transaction that is not staged yet; with --reason, skip them forever.

    The tables then lack these rows, until they are loaded again. A statement that changes tables cannot be skipped.
    """
    session: Session = context.obj
    settings, output = session.settings(source), session.output
    if withdraw:
        _withdraw(output, pipeline.withdraw_skip(settings, transaction, tuple(table), reason=reason, by=_user()))
        return
    if reason:
        found = pipeline.skip_transaction(settings, transaction, tuple(table), reason=reason, by=_user())
    else:
        found = pipeline.find_skippable(settings, transaction, tuple(table))
    if output.as_json:
        output.document(found)
    else:
        _report(output, found)


def _withdraw(output: Output, states: Sequence[pipeline.SkipState]) -> None:
    if output.as_json:
        output.document(states)
        return
    print_skips(output, states)
    output.next_step("the rows are staged as if they had never been skipped; next: loader run")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        return f"user {os.getuid()}"


def _report(output: Output, found: pipeline.TransactionRows) -> None:
    gtid = f", GTID {found.gtid}" if found.gtid else ""
    output.line(f"transaction from {found.start} to {found.stop}{gtid}{output.seqno(found.seqno)}")
    columns = ("table", "events", "inserts", "updates", "deletes")
    output.rows(columns, [[getattr(one, name) for name in columns] for one in found.tables])
    if any(not (one.inserts or one.updates or one.deletes) for one in found.tables):
        output.line("the rows of some tables cannot be decoded, so only their row events are counted")
    if not found.records:
        output.line("nothing is skipped; to skip these rows, give a reason: --reason TEXT")
        return
    print_skips(output, found.records)
    if any(one.state == "not used" for one in found.records):
        return
    output.next_step("the tables lack these rows until they are loaded again: loader status marks them")
    if all(one.state == "used" for one in found.records):
        output.line("the interval is staged without these rows already")
    elif found.staged:
        output.next_step(f"next, stage the other rows: loader extract --interval {found.interval}")
        tables = " and ".join(f"loader release {TableName.parse(one.table).argument}" for one in found.tables)
        output.next_step(f"then let the tables continue: {tables}")
    else:
        output.next_step("next: loader run")
