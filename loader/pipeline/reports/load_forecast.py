"""What an initial load would read, how long that takes, and which tables it would refuse. Nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, computed_field
from pymysql.connections import Connection

from loader.errors import LoaderError
from loader.initial_load.chunks import suggest_rows
from loader.initial_load.documents import LoadPlan
from loader.initial_load.loads import Loads
from loader.initial_load.run import captured_tables
from loader.initial_load.server.consistent_snapshot import check_engine
from loader.materialise.plan.table_layout import Layout
from loader.materialise.rules import rule_of
from loader.model.table import TableName
from loader.pipeline.chain.plan_chain import chain_of
from loader.pipeline.reports.load_duration import ReadRate, chunks_per_second, estimate_seconds, sample_rate
from loader.settings import SourceSettings
from loader.source.loadable import check_loadable
from loader.source.schemas import read_schemas
from loader.source.table_sizes import TableSize, read_sizes
from loader.store.registry import open_store
from loader.transport.server.connection import connected


class TableForecast(BaseModel):
    """What an initial load would do with a table.

    Attributes:
        status: a `new` table is read as a whole. Of an `unfinished` load, the missing chunks are read. A `staged` table
            is not read again. A `refused` table stops with `error`.
        rows, bytes: estimates of the server.
        chunks: an estimate; all chunks of the table, also those that are staged.
        staged: the number of chunks that are staged.
        seconds: an estimate of the time to read what is missing, if no other table is read.
        key: the columns of the key by which the table is cut into chunks. Without them it is one chunk.
        error: in the form of `LoaderError.as_dict()`.
    """

    model_config = ConfigDict(frozen=True)

    table: str
    status: Literal["new", "unfinished", "staged", "refused"]
    rows: int
    bytes: int
    chunks: int
    staged: int = 0
    seconds: float = 0.0
    key: tuple[str, ...] = ()
    error: dict[str, Any] | None = None

    @property
    def bytes_left(self) -> float:
        """The estimated bytes that are not staged."""
        return 0.0 if self.error else self.bytes * (self.chunks - self.staged) / self.chunks


class LoadForecast(BaseModel):
    """All tables of an initial load, by name.

    Attributes:
        rate: by which times are estimated; None if all tables are small.
    """

    model_config = ConfigDict(frozen=True)

    tables: tuple[TableForecast, ...]
    rate: ReadRate | None = None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def seconds(self) -> float:
        """An estimate of the time to read all tables. Waits for a busy server are not in it."""
        return round(sum(table.seconds for table in self.tables), 1)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def exit_code(self) -> int:
        """0, or the highest exit code of a refused table."""
        return max((int(table.error["exit_code"]) for table in self.tables if table.error), default=0)


def forecast_load(settings: SourceSettings, tables: tuple[str, ...] = (), *, again: bool = False) -> LoadForecast:
    """Return what an initial load of the captured tables, or only of these, would do.

    Args:
        settings: of the source.
        tables: names as `schema.table`; empty for all captured tables.
        again: tables that are staged would be read again.

    Raises:
        LoaderError: the server does not answer, or a requested table does not exist.
    """
    generation = chain_of(settings).generation()
    loads = Loads(open_store(settings.staging_root), settings.name, generation.name) if generation else None
    with connected(settings.server) as connection:
        sizes = read_sizes(connection)
        names = captured_tables(connection, settings.tables, tables)
        found = [_forecast(connection, settings, None if again else loads, name, sizes) for name in names]
    rates = _measured_rates(loads, found)
    rate = _common_rate(settings, found, rates, sizes)
    return LoadForecast(tables=tuple(_timed(table, rates.get(table.table, rate)) for table in found), rate=rate)


def _measured_rates(loads: Loads | None, tables: Sequence[TableForecast]) -> dict[str, ReadRate]:
    """Return the rates of unfinished loads that have staged chunks, by table."""
    found = {}
    for table in tables:
        plan = _newest_plan(loads, TableName.parse(table.table)) if table.status == "unfinished" else None
        speed = chunks_per_second(loads.chunk_times(plan)) if loads and plan else None
        if speed:
            found[table.table] = ReadRate(
                bytes_per_second=speed * table.bytes / table.chunks,
                measured_by="chunks",
                table=table.table,
                readers=1,
            )
    return found


def _common_rate(
    settings: SourceSettings,
    tables: Sequence[TableForecast],
    rates: dict[str, ReadRate],
    sizes: dict[TableName, TableSize],
) -> ReadRate | None:
    """Return the rate of the largest unfinished load, else of a sample of the largest table that is to be read."""
    largest = sorted(tables, key=lambda table: -table.bytes_left)
    for table in largest:
        if table.table in rates:
            return rates[table.table]
    name = TableName.parse(largest[0].table) if largest and largest[0].bytes_left else None
    return sample_rate(settings, name, sizes[name]) if name else None


def _timed(table: TableForecast, rate: ReadRate | None) -> TableForecast:
    """Return the forecast with the time to read the table."""
    if table.status in {"staged", "refused"}:
        return table
    return table.model_copy(
        update={"seconds": estimate_seconds(table.bytes_left, rate.bytes_per_second if rate else None)}
    )


def _forecast(
    connection: Connection[Any],
    settings: SourceSettings,
    loads: Loads | None,
    table: TableName,
    sizes: dict[TableName, TableSize],
) -> TableForecast:
    size = sizes.get(table, TableSize(0, 0))
    about = TableForecast(table=str(table), status="new", rows=size.rows, bytes=size.bytes, chunks=1)
    try:
        key = _checked_key(connection, settings, table)
    except LoaderError as error:
        return about.model_copy(update={"status": "refused", "error": error.as_dict()})
    chunks = -(-size.rows // (settings.chunk_rows or suggest_rows(size))) if key else 1
    about = about.model_copy(update={"key": key, "chunks": max(1, chunks)})
    plan = _newest_plan(loads, table)
    if loads is None or plan is None:
        return about
    if loads.manifest(plan):
        return about.model_copy(update={"status": "staged", "chunks": plan.chunks, "staged": plan.chunks})
    return about.model_copy(update={"status": "unfinished", "chunks": plan.chunks, "staged": len(loads.chunks(plan))})


def _newest_plan(loads: Loads | None, table: TableName) -> LoadPlan | None:
    return (loads.newest(table, 0) or loads.newest_followed(table)) if loads else None


def _checked_key(connection: Connection[Any], settings: SourceSettings, table: TableName) -> tuple[str, ...]:
    """Return the key by which a table is read in chunks; empty if it is read in one piece.

    Raises:
        LoaderError: the load would refuse the table.
    """
    (schema,) = read_schemas(connection, [table])
    check_loadable(connection, schema)
    rule = rule_of(settings.rules, table)
    Layout(schema, rule).check()
    key = () if rule.mode == "history" else schema.key
    if not key:
        check_engine(connection, table)
    return key
