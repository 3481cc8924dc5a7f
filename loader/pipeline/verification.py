"""Verification: all rows of tables on the server and in the warehouse, compared at one position of the log.

A transaction on the server keeps its rows as they are at the position. The log is applied up to that position, and not
further. So the comparison is exact although others write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, computed_field
from pymysql.connections import Connection
from pymysql.err import MySQLError

from loader.delta.spec import DeltaSpec
from loader.errors import LoaderError, RetryableError, UnsupportedError
from loader.initial_load.consistent_snapshot import SNAPSHOT_ENGINE, open_snapshot, read_engine
from loader.initial_load.run import captured_tables
from loader.model.position import Position
from loader.model.table import TableName, TableSchema
from loader.pipeline.chain.chain_begin import chain_of
from loader.pipeline.chain.planning import plan_interval
from loader.pipeline.job_kinds import Job
from loader.pipeline.jobs import delta_job, verify_job
from loader.settings import SourceSettings
from loader.source.schemas import read_schemas
from loader.source.table_sizes import read_sizes
from loader.transport.server.connection import connected
from loader.types.column_type import Comparison
from loader.verify.expressions import Row, comparison_of
from loader.verify.server_rows import server_rows, server_sums
from loader.verify.spec import SAMPLED_BUCKETS, TableDifference, TableSums, VerifyResult

_BUCKET_ROWS = 1000
_MOST_BUCKETS = 8192
_SAMPLES = 10


class TableVerification(BaseModel):
    """The comparison of a table.

    Attributes:
        status: `failed`: the table could not be compared, and `error` says why.
        server_rows, warehouse_rows: numbers of rows.
        differences: the number of rows that one side has and the other lacks. A row with other values counts twice.
        at_least: more rows differ than were counted.
        samples: some of these rows, as texts.
        uncompared: columns that were not compared.
        error: in the form of `LoaderError.as_dict()`.
    """

    model_config = ConfigDict(frozen=True)

    table: str
    status: Literal["equal", "different", "failed"]
    server_rows: int = 0
    warehouse_rows: int = 0
    differences: int = 0
    at_least: bool = False
    samples: tuple[str, ...] = ()
    uncompared: tuple[str, ...] = ()
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
    """A verification whose rows on the server are known. `job` brings the warehouse to their position."""

    job: Job
    position: Position
    _connection: Connection[Any]
    _sums: dict[TableName, TableSums]
    _failed: tuple[TableVerification, ...]

    def finish(self, result: dict[str, Any]) -> Verified:
        """Return the comparisons, given the result of the job. Rows that differ are read again from the snapshot."""
        compared = [self._judge(difference) for difference in VerifyResult.model_validate(result).tables]
        tables = sorted((*compared, *self._failed), key=lambda table: table.table)
        return Verified(position=str(self.position), tables=tuple(tables))

    def _judge(self, difference: TableDifference) -> TableVerification:
        table = self._sums[TableName.parse(difference.table)]
        schema = TableSchema.from_dict(table.definition)
        verification = TableVerification(
            table=difference.table,
            status="equal",
            server_rows=sum(count for count, _ in table.sums.values()),
            warehouse_rows=difference.rows,
            uncompared=_uncompared(schema),
        )
        if difference.error:
            return verification.model_copy(update={"status": "failed", "error": difference.error})
        if not difference.buckets:
            return verification
        wanted = set(difference.buckets[:SAMPLED_BUCKETS])
        ours = Counter(difference.samples)
        theirs = Counter(server_rows(self._connection, schema, table.buckets, wanted))
        missing, extra = theirs - ours, ours - theirs
        return verification.model_copy(
            update={
                "status": "different",
                "differences": missing.total() + extra.total(),
                "at_least": len(difference.buckets) > SAMPLED_BUCKETS,
                "samples": (*_samples("server", missing, schema), *_samples("warehouse", extra, schema)),
            }
        )


@contextmanager
def verification(settings: SourceSettings, tables: tuple[str, ...] = ()) -> Iterator[Verification]:
    """Open a snapshot of the server, sum the rows of the tables, and plan the log up to the snapshot.

    Args:
        settings: of the source.
        tables: names as `schema.table`; empty for all captured tables.

    Raises:
        UsageError: the source has no such captured table.
        RetryableError: no snapshot could be opened, or another run has planned later log.
        LoaderError: the server does not answer, or its log does not continue the chain.
    """
    chain = chain_of(settings)
    chain.require_generation()
    with connected(settings.server) as asking, connected(settings.server) as reading:
        names = captured_tables(asking, settings.tables, tables)
        position = open_snapshot(reading)
        sizes = {name: size.rows for name, size in read_sizes(asking).items()}
        found = [_sums(asking, reading, name, sizes.get(name, 0)) for name in names]
        sums = {TableSchema.from_dict(one.definition).name: one for one in found if isinstance(one, TableSums)}
        job = _job(settings, position, tuple(sums.values()))
        failed = tuple(one for one in found if isinstance(one, TableVerification))
        yield Verification(job, position, reading, sums, failed)


def _job(settings: SourceSettings, position: Position, tables: tuple[TableSums, ...]) -> Job:
    chosen = plan_interval(settings, until=position)
    generation = chain_of(settings).require_generation()
    delta = delta_job(settings, chosen.start_seqno, chosen.through_seqno).spec if chosen else None
    return verify_job(settings, cast("DeltaSpec | None", delta), position.seqno(generation.shift), tables)


def _sums(
    asking: Connection[Any], reading: Connection[Any], table: TableName, rows: int
) -> TableSums | TableVerification:
    """Return the sums of a table, or why it cannot be compared."""
    try:
        if (engine := read_engine(asking, table)) != SNAPSHOT_ENGINE:
            raise UnsupportedError(
                f"a table of engine {engine} cannot be read as of one position of the log",
                hint=f"ALTER TABLE {table} ENGINE = InnoDB; or name the other tables: loader verify --table ...",
                table=table,
            )
        (schema,) = read_schemas(asking, [table])
        buckets = max(1, min(_MOST_BUCKETS, rows // _BUCKET_ROWS))
        return TableSums(definition=schema.as_dict(), buckets=buckets, sums=server_sums(reading, schema, buckets))
    except MySQLError as error:
        altered = RetryableError("the table cannot be read", why=str(error), hint="loader verify", table=table)
        return TableVerification(table=str(table), status="failed", error=altered.as_dict())
    except LoaderError as error:
        return TableVerification(table=str(table), status="failed", error=error.as_dict())


def _uncompared(schema: TableSchema) -> tuple[str, ...]:
    return tuple(column.name for column in schema.columns if comparison_of(column) is Comparison.VECTOR)


def _samples(side: str, rows: Counter[Row], schema: TableSchema) -> list[str]:
    names = [column.name for column in schema.columns]
    return [f"only in the {side}: {dict(zip(names, row, strict=True))}" for row in list(rows)[:_SAMPLES]]
