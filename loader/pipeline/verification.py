"""Verification: all rows of tables on the server and in the warehouse, compared at one position of the log.

A transaction on the server keeps its rows as they are at the position. The log is applied up to that position, and not
further. So the comparison is exact although others write. It is also exact if other runs apply later log meanwhile: the
warehouse keeps the snapshot of the position.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, computed_field

from loader.errors import LoaderError, RetryableError, UsageError
from loader.initial_load.run import captured_tables
from loader.materialise.plan.interval_chain import Chain
from loader.materialise.rules import rule_of
from loader.materialise.spec import TableResult
from loader.model.identity import Identity
from loader.model.position import Position
from loader.model.table import TableName, TableSchema
from loader.pipeline.chain.plan_chain import chain_of
from loader.pipeline.chain.planning import IntervalChosen, PlannedBeyond, plan_interval
from loader.pipeline.job_kinds import Job
from loader.pipeline.jobs import delta_job, verify_job
from loader.pipeline.skips.states import SkipStates, first_skip
from loader.settings import SourceSettings
from loader.spark.job import rebuild
from loader.transport.server.connection import connected
from loader.types.column_type import Comparison
from loader.verify.expressions import Row, comparison_of
from loader.verify.server_snapshot import ServerSnapshot, server_snapshot
from loader.verify.spec import TableDifference, TableSums, VerifyResult

_SAMPLES = 10


class TableVerification(BaseModel):
    """The comparison of a table.

    Attributes:
        status: `failed`: the table could not be compared, and `error` says why.
        server_rows, warehouse_rows: numbers of rows.
        compared_rows: the rows of the server whose values were compared: a sample, or all.
        differences: the number of rows that one side has and the other lacks. A row with other values counts twice.
        at_least: more rows may differ than were counted.
        samples: some of these rows, as texts.
        uncompared: columns that were not compared.
        skipped_at: the first transaction since the table's load in which an operator skipped its rows; empty if none.
        error: in the form of `LoaderError.as_dict()`.
    """

    model_config = ConfigDict(frozen=True)

    table: str
    status: Literal["equal", "different", "failed"]
    server_rows: int = 0
    warehouse_rows: int = 0
    compared_rows: int = 0
    differences: int = 0
    at_least: bool = False
    samples: tuple[str, ...] = ()
    uncompared: tuple[str, ...] = ()
    skipped_at: str = ""
    error: dict[str, Any] | None = None


class Verified(BaseModel):
    """All comparisons, at a position of the log."""

    model_config = ConfigDict(frozen=True)

    position: str
    tables: tuple[TableVerification, ...]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def exit_code(self) -> int:
        """4 if rows differ, else the highest exit code of a table that could not be compared, or 0."""
        if any(table.status == "different" for table in self.tables):
            return 4
        return max((int(table.error["exit_code"]) for table in self.tables if table.error), default=0)


@dataclass(frozen=True)
class Verification:
    """A verification at the position of an open snapshot of the server.

    Attributes:
        delta: the job that applies the log up to the position; None if no log was written since the source was begun.
        _present: the tables that the server has; None if not all tables are compared.
    """

    delta: Job | None
    _settings: SourceSettings
    _snapshot: ServerSnapshot
    _seqno: int
    _end: int  # the seqno up to which tables must have the log: nothing is logged between it and the position
    _sampled: bool
    _present: frozenset[TableName] | None = None
    _sums: dict[TableName, TableSums] = field(default_factory=dict)
    _failed: list[TableVerification] = field(default_factory=list)

    def comparison(self, applied: Mapping[str, Any] | None) -> Job:
        """Return the job that compares the warehouse with the rows of the server, which are summed here.

        Args:
            applied: the result of `delta`.

        Raises:
            LoaderError: the log could not be staged.
        """
        if applied and applied["failed"]:
            raise rebuild(applied["failed"])
        tables = applied["materialise"]["tables"] if applied else ()
        results = {table["table"]: TableResult.model_validate(table) for table in tables}
        for table in self._snapshot.tables:
            try:
                _check_result(table, results.get(str(table)), self._end)
                self._sums[table] = self._snapshot.sums(table, sampled=self._sampled)
            except LoaderError as error:
                failed = TableVerification(table=str(table), status="failed", error=error.as_dict())
                self._failed.append(failed)
        reached = {name: result.applied_seqno or 0 for name, result in results.items()}
        gone = tuple(map(str, self._find_gone(results)))
        return verify_job(self._settings, self._seqno, tuple(self._sums.values()), reached, gone)

    def _find_gone(self, results: Mapping[str, TableResult]) -> Iterator[TableName]:
        """Yield the tables in the warehouse that the server does not have. A history keeps the rows of such tables."""
        if self._present is None:
            return
        plans = chain_of(self._settings)
        chain = Chain(plans.store, plans.source, plans.require_generation().name)
        for name, result in results.items():
            table = TableName.parse(name)
            if table in self._present or rule_of(self._settings.rules, table).mode == "history":
                continue
            try:
                _check_result(table, result, self._end)
            except LoaderError as error:
                self._failed.append(TableVerification(table=name, status="failed", error=error.as_dict()))
            else:
                dropped = chain.find_drop_in_gap(table, result.applied_seqno or 0) is not None
                if result.snapshot is not None and not dropped:
                    yield table

    def finish(self, result: Mapping[str, Any]) -> Verified:
        """Return the comparisons, given the result of the job. Rows that differ are read again from the snapshot."""
        found = VerifyResult.model_validate(result)
        compared = [self._judge(difference) for difference in found.tables]
        compared += [_judge_gone(one) for one in found.gone if one.rows or one.error]
        if any(table.status == "different" for table in compared):
            compared = self._with_skips(compared)
        tables = sorted((*compared, *self._failed), key=lambda table: table.table)
        return Verified(position=str(self._snapshot.position), tables=tuple(tables))

    def _with_skips(self, compared: list[TableVerification]) -> list[TableVerification]:
        chain = chain_of(self._settings)
        skips, place = SkipStates(chain).all(), self._settings.catalog.place
        return [
            table.model_copy(update={"skipped_at": first_skip(chain, table.table, skips, place)})
            if table.status == "different"
            else table
            for table in compared
        ]

    def _judge(self, difference: TableDifference) -> TableVerification:
        table = self._sums[TableName.parse(difference.table)]
        verification = TableVerification(
            table=difference.table,
            status="equal",
            server_rows=table.rows,
            warehouse_rows=difference.rows,
            compared_rows=table.compared,
            uncompared=_uncompared(table.table_schema),
        )
        if difference.error:
            return verification.model_copy(update={"status": "failed", "error": difference.error})
        others = abs((table.rows - table.compared) - (difference.rows - difference.compared))
        if not difference.buckets and not others:
            return verification
        try:
            theirs = self._snapshot.rows(table, set(difference.shown))
        except LoaderError as error:
            return verification.model_copy(update={"status": "failed", "error": error.as_dict()})
        ours = Counter(difference.samples)
        missing, extra = theirs - ours, ours - theirs
        return verification.model_copy(
            update={
                "status": "different",
                "differences": missing.total() + extra.total() + others,
                "at_least": len(difference.buckets) > len(difference.shown) or table.sample is not None,
                "samples": (*_samples("server", missing, table), *_samples("warehouse", extra, table)),
            }
        )


def _judge_gone(left: TableDifference) -> TableVerification:
    """Return the comparison of a table that the server does not have."""
    if left.error:
        return TableVerification(table=left.table, status="failed", error=left.error)
    return TableVerification(
        table=left.table,
        status="different",
        warehouse_rows=left.rows,
        differences=left.rows,
        samples=("only in the warehouse: all rows; the server does not have the table, or the user may not see it",),
    )


@contextmanager
def verification(
    settings: SourceSettings, tables: tuple[str, ...] = (), *, sampled: bool = False
) -> Iterator[Verification]:
    """Open a snapshot of the server, and plan the log up to the snapshot.

    Args:
        settings: of the source.
        tables: names as `schema.table`; empty for all captured tables.
        sampled: compare samples of large tables, and the numbers of their rows.

    Raises:
        UsageError: the source has no such captured table.
        RetryableError: no snapshot could be opened, or another run has planned later log.
        LoaderError: the server does not answer, or its log does not continue the chain.
    """
    chain_of(settings).require_generation()
    with connected(settings.server) as connection:
        names = captured_tables(connection, settings.tables, tables)
    with server_snapshot(settings.server, names, settings.rules) as snapshot:
        present = None if tables else frozenset((*names, *_captured(settings)))
        chosen = _plan(settings, snapshot.position, snapshot.identity)
        delta = delta_job(settings, chosen.start_seqno, chosen.through_seqno, now=True) if chosen else None
        generation = chain_of(settings).require_generation()
        seqno = snapshot.position.seqno(generation.shift)
        # If another server is followed that has logged nothing since, the log ends with that of the server before.
        end = chosen.through_seqno if chosen and chosen.generation != generation.name else seqno
        yield Verification(delta, settings, snapshot, seqno, end, sampled, present)


def _captured(settings: SourceSettings) -> Sequence[TableName]:
    """List the captured tables again. A table may have been created since the first list, before the snapshot."""
    with connected(settings.server) as connection:
        return captured_tables(connection, settings.tables, ())


def _plan(settings: SourceSettings, position: Position, server: Identity) -> IntervalChosen | None:
    """Plan the log of a server up to a position. Return None if nothing was ever planned.

    Raises:
        RetryableError: another run has planned later log.
    """
    try:
        return plan_interval(settings, until=position, server=server)
    except PlannedBeyond as error:
        raise RetryableError(
            "another run has planned log after the snapshot of the server",
            why=error.what,
            hint="loader run; then: loader verify",
            source=settings.name,
        ) from error


def _check_result(table: TableName, result: TableResult | None, seqno: int) -> None:
    """Check that a table has every change before the position. Without a result, the log did not change the table.

    Raises:
        LoaderError: it failed, or it is at an earlier position.
    """
    if result is None:
        return
    if result.error:
        raise rebuild(result.error)
    if result.postponed and (result.complete_through or 0) < seqno:
        raise UsageError(
            "the table is not at the position of the server's rows, because it is not merged",
            why=result.note,
            hint=f"loader resume {TableName.parse(result.waits_for or result.table).argument}; then: loader verify",
            table=table,
            position=result.position,
        )
    if (result.complete_through or 0) < seqno:
        raise RetryableError(
            "the table is not at the position of the server's rows yet",
            why="intervals that were planned before are applied first, or run_minutes was over",
            hint="loader run; then: loader verify",
            table=table,
            position=result.position,
        )


def _uncompared(schema: TableSchema) -> tuple[str, ...]:
    return tuple(column.name for column in schema.columns if comparison_of(column) is Comparison.VECTOR)


def _samples(side: str, rows: Counter[Row], table: TableSums) -> list[str]:
    names = [one.name for one in table.compared_values]
    return [f"only in the {side}: {dict(zip(names, row, strict=True))}" for row in list(rows)[:_SAMPLES]]
