"""Which intervals a table needs, and what stops it: without Spark."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loader.errors import GapError, UnsupportedError
from loader.materialise.plan import Work, covering, difference, plan_table
from loader.model.identity import Identity
from loader.model.position import Position
from loader.model.table import Column, TableName, TableSchema
from loader.staging.documents import Barrier, Manifest, StagedFile

NAME = TableName("shop", "orders")
SCHEMA = TableSchema(NAME, (Column("id", "int"), Column("v", "varchar", charset="utf8mb4")), ("id",))
SHIFT = 7


def seqno(offset: int) -> int:
    return Position("binlog", 3, offset).seqno(SHIFT)


def manifest(start: int, stop: int, *files: StagedFile, barriers: tuple[Barrier, ...] = ()) -> Manifest:
    return Manifest(
        source="shop",
        generation="g1",
        identity=Identity(kind="mysql", version="9", server_id=1),
        start=f"binlog.000003:{start}",
        stop=f"binlog.000003:{stop}",
        start_seqno=seqno(start),
        stop_seqno=seqno(stop),
        files=files,
        schemas={SCHEMA.schema_id: SCHEMA.as_dict()},
        barriers=barriers,
        loader_version="0",
    )


def file(low: int, high: int, schema: TableSchema = SCHEMA, rows: int = 1) -> StagedFile:
    return StagedFile(
        key=f"part-{low}-{high}",
        schema_name=schema.name.schema,
        table=schema.name.table,
        schema_id=schema.schema_id,
        inserts=rows,
        updates=0,
        deletes=0,
        bytes=1,
        sha256="",
        min_seqno=seqno(low),
        max_seqno=seqno(high),
    )


def chain(*edges: int) -> dict[int, Manifest]:
    return {seqno(low): manifest(low, high) for low, high in pairwise(edges)}


def run(intervals: dict[int, Manifest], applied: int, target: int) -> list[str]:
    found = covering(intervals.get, sorted(intervals), seqno(applied), seqno(target))
    return [one.start.rpartition(":")[2] for one in found]


def test_the_run_begins_with_the_interval_that_holds_the_applied_position() -> None:
    intervals = chain(10, 20, 30, 40)
    assert run(intervals, 10, 40) == ["10", "20", "30"]
    assert run(intervals, 15, 30) == ["10", "20"]
    assert run(intervals, 20, 30) == ["20"]
    assert run(intervals, 40, 40) == []
    assert run(intervals, 39, 40) == ["30"]


@pytest.mark.parametrize(
    ("applied", "hole"),
    [(5, 5), (10, 20), (25, 25), (20, 20)],
    ids=["before the chain", "in the chain", "inside the hole", "at the hole"],
)
def test_a_hole_is_named(applied: int, hole: int) -> None:
    intervals = chain(10, 20, 30, 40)
    del intervals[seqno(20)]
    with pytest.raises(GapError) as caught:
        run(intervals, applied, 40)
    assert caught.value.where["seqno"] == str(seqno(hole))


def test_an_interval_that_is_planned_only_is_a_hole() -> None:
    intervals = chain(10, 20, 30)
    starts = sorted(intervals)
    del intervals[seqno(20)]
    with pytest.raises(GapError):
        covering(intervals.get, starts, seqno(10), seqno(30))


def test_a_run_goes_over_generations_as_over_one_chain() -> None:
    older, newer = chain(10, 20, 30), chain(100, 110, 120)
    intervals = older | newer
    joins = {seqno(100): seqno(30)}

    def found(applied: int, target: int) -> list[str]:
        run = covering(intervals.get, sorted(intervals), seqno(applied), seqno(target), joins)
        return [one.start.rpartition(":")[2] for one in run]

    assert found(10, 120) == ["10", "20", "100", "110"]
    assert found(30, 120) == ["100", "110"]
    assert found(110, 120) == ["110"]
    assert found(20, 30) == ["20"]
    with pytest.raises(GapError):
        covering(intervals.get, sorted(intervals), seqno(10), seqno(120))
    del intervals[seqno(20)]
    with pytest.raises(GapError):
        found(10, 120)


@given(
    edges=st.sets(st.integers(0, 40), min_size=2).map(sorted),
    missing=st.sets(st.integers(0, 40)),
    applied=st.integers(0, 40),
)
def test_a_run_has_every_offset_once_or_is_refused(edges: list[int], missing: set[int], applied: int) -> None:
    intervals = {start: one for start, one in chain(*edges).items() if start - seqno(0) not in missing}
    target = edges[-1]
    held = {offset for low, high in pairwise(edges) if low not in missing for offset in range(low, high)}
    needed = set(range(applied, target))
    if not needed <= held:
        with pytest.raises(GapError):
            run(intervals, applied, target)
        return
    found = covering(intervals.get, sorted(intervals), seqno(applied), seqno(target))
    for before, after in pairwise(found):
        assert before.stop_seqno == after.start_seqno
    if needed:
        assert found[0].start_seqno <= seqno(applied) < found[0].stop_seqno
        assert found[-1].stop_seqno == seqno(target)


def planned(applied: int, *manifests: Manifest) -> Work | None:
    return plan_table(NAME, SCHEMA, seqno(applied), manifests[-1].stop_seqno, manifests)


def test_files_that_are_applied_whole_are_left_out() -> None:
    other = TableSchema(TableName("shop", "other"), SCHEMA.columns, SCHEMA.key)
    work = planned(
        15, manifest(10, 20, file(11, 15), file(14, 16), file(12, 18, other)), manifest(20, 30, file(22, 29))
    )
    assert work is not None
    assert [one.key for one in work.files] == ["part-14-16", "part-22-29"]
    assert (work.rows, work.ops) == (2, {"I": 2, "U": 0, "D": 0})
    assert (work.target, work.position) == (seqno(30), "binlog.000003:30")
    assert str(work.position_of(seqno(25))) == "binlog.000003:25"


def test_nothing_for_a_table_is_no_work() -> None:
    assert planned(15, manifest(10, 20, file(11, 15)), manifest(20, 30)) is None
    assert planned(10, manifest(10, 20, file(11, 15, rows=0))) is None


def barrier(at: int, *tables: str, statement: str = "ALTER TABLE orders ADD x INT") -> Barrier:
    return Barrier(
        seqno=seqno(at),
        position=f"binlog.000003:{at}",
        statement=statement,
        database="shop",
        sql_mode=0,
        mariadb=False,
        tables=tables,
    )


@pytest.mark.parametrize(
    ("at", "tables", "stops"),
    [
        (16, ("shop.orders",), True),
        (16, ("shop.other", "shop.orders"), True),
        (16, (), True),
        (15, ("shop.orders",), False),
        (15, (), False),
        (16, ("shop.other",), False),
        (16, ("shop.order",), False),
    ],
)
def test_barriers(at: int, tables: tuple[str, ...], stops: bool) -> None:
    one = manifest(10, 20, barriers=(barrier(at, *tables),))
    if not stops:
        assert planned(15, one) is None
        return
    with pytest.raises(UnsupportedError, match="changes the table as a whole") as caught:
        planned(15, one)
    assert caught.value.why == "ALTER TABLE orders ADD x INT"
    assert caught.value.where == {"table": "shop.orders", "position": "binlog.000003:16"}


@pytest.mark.parametrize(
    ("statement", "stops"),
    [
        ("CREATE TABLE IF NOT EXISTS orders (id INT)", False), ("CREATE TABLE orders LIKE items", False),
        ("CREATE OR REPLACE TABLE orders (id INT)", True), ("ALTER TABLE orders ADD UNIQUE (v), COMMENT 'x'", False),
        ("ALTER TABLE orders ADD UNIQUE (v), DROP x", True), ("CREATE UNIQUE INDEX i ON orders (v)", False),
    ],
)  # fmt: skip
def test_statements_that_leave_rows_and_columns_as_they_are_stop_nothing(statement: str, stops: bool) -> None:
    one = manifest(10, 20, barriers=(barrier(16, "shop.orders", statement=statement),))
    if not stops:
        assert planned(15, one) is None
        return
    with pytest.raises(UnsupportedError, match="changes the table as a whole"):
        planned(15, one)


def test_difference_names_columns_and_key() -> None:
    new = TableSchema(NAME, (Column("id", "int", unsigned=True), Column("w", "date")), ("id", "w"))
    assert difference(SCHEMA, new) == (
        "column v varchar was dropped; column w date was added; column id was int, is int unsigned;"
        " the key was (id), is (id, w)"
    )
    other_charset = TableSchema(NAME, (SCHEMA.columns[0], Column("v", "varchar", charset="latin1")), ("id",))
    assert difference(SCHEMA, other_charset) == "column v was varchar utf8mb4, is varchar latin1"
    turned = TableSchema(NAME, SCHEMA.columns[::-1], ("id",))
    assert difference(SCHEMA, turned) == "the columns changed their order"
