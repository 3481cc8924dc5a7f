"""The schemas in an interval, from the document at its start and its statements."""

from __future__ import annotations

from pathlib import Path

from loader.binlog.events.statement import LogStatement
from loader.extract.interval_schemas import IntervalSchemas
from loader.extract.range_result import RangeResult
from loader.model.identity import Identity
from loader.model.table import Column, TableName, TableSchema
from loader.schema.history import KnownTable
from loader.staging.chain import Checkpoint
from loader.staging.documents import Plan, TableFilter
from loader.staging.schemas import Schemas, SchemaStore
from loader.store.local import LocalStore

NAME = TableName("shop", "t")
SCHEMA = TableSchema(NAME, (Column("id", "int"), Column("q", "int"), Column("p", "int")), ("id",))
SWAP = "ALTER TABLE t CHANGE p q INT, CHANGE q p INT"


def columns(folder: Path, *statements: LogStatement) -> list[list[str]]:
    """Return the columns of each version of a table without names in the log."""
    store = SchemaStore(LocalStore(f"file://{folder}"), "shop")
    digest = store.put(Schemas.of({NAME: KnownTable.of(SCHEMA, primary=True)}, {"shop": "utf8mb4"}, folds=False))
    plan = Plan(
        source="shop",
        generation="g1",
        identity=Identity(kind="mysql", version="9", server_id=1),
        start="binlog.000001:1000",
        stop="binlog.000001:5000",
        shift=0,
        tables=TableFilter(include=("shop.*",)),
    )
    schemas = IntervalSchemas(store, plan, Checkpoint(plan.interval.start, "", None, schemas=digest), ())
    found = schemas.versions([RangeResult(file="binlog.000001", statements=list(statements), nameless={NAME})])
    return [[column.name for column in one.schema.columns] for one in found.of(NAME) if one.schema]


def statement(*, skipped: bool = False, read_before: bool = False) -> LogStatement:
    return LogStatement(
        1_000_000_002_000, "binlog.000001:1990", "shop", SWAP, 0, False, False, skipped=skipped, read_before=read_before
    )


def test_a_statement_that_was_read_before_is_not_applied_again(tmp_path: Path) -> None:
    """The document at the start of the generation has it. Statements that are skipped otherwise count."""
    assert columns(tmp_path, statement(skipped=True, read_before=True)) == [["id", "q", "p"]]
    assert columns(tmp_path, statement(skipped=True)) == [["id", "q", "p"], ["id", "p", "q"]]
