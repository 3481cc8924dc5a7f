"""Which intervals a table needs, and what stops it: without Spark."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loader.errors import GapError, UnsupportedError
from loader.materialise.plan.ddl_events import collect_events
from loader.materialise.plan.merge_plan import EmptyTable, Merge, RecordRange, find_covering_intervals, plan_stages
from loader.materialise.plan.timeline import TableState, build_timeline
from loader.materialise.rules import DEFAULT
from loader.model.identity import Identity
from loader.model.position import Position
from loader.model.table import Column, TableName, TableSchema
from loader.schema.evolution import ColumnOrigin, ConstantOrigin
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
    found = find_covering_intervals(intervals.get, sorted(intervals), seqno(applied), seqno(target))
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
    for applied in (10, 25):  # 25: a table that was loaded inside the interval
        with pytest.raises(GapError) as caught:
            find_covering_intervals(intervals.get, starts, seqno(applied), seqno(30))
        assert f"loader extract --interval {seqno(20)};" in caught.value.hint


def test_a_run_goes_over_generations_as_over_one_chain() -> None:
    older, newer = chain(10, 20, 30), chain(100, 110, 120)
    intervals = older | newer
    joins = {seqno(100): seqno(30)}

    def found(applied: int, target: int) -> list[str]:
        run = find_covering_intervals(intervals.get, sorted(intervals), seqno(applied), seqno(target), joins)
        return [one.start.rpartition(":")[2] for one in run]

    assert found(10, 120) == ["10", "20", "100", "110"]
    assert found(30, 120) == ["100", "110"]
    assert found(110, 120) == ["110"]
    assert found(20, 30) == ["20"]
    with pytest.raises(GapError):
        find_covering_intervals(intervals.get, sorted(intervals), seqno(10), seqno(120))
    del intervals[seqno(20)]
    with pytest.raises(GapError):
        found(10, 120)


def test_a_run_goes_over_generations_in_which_nothing_was_staged() -> None:
    intervals = chain(10, 20, 30) | chain(300, 310, 320)
    # From 30 the log goes on at 100, from there at 200, and from there at 300: nothing was staged between.
    joins = {seqno(100): seqno(30), seqno(200): seqno(100), seqno(300): seqno(200)}

    def found(applied: int, target: int) -> list[str]:
        run = find_covering_intervals(intervals.get, sorted(intervals), seqno(applied), seqno(target), joins)
        return [one.start.rpartition(":")[2] for one in run]

    assert found(10, 320) == ["10", "20", "300", "310"]
    assert found(15, 310) == ["10", "20", "300"]
    assert found(30, 320) == ["300", "310"]
    assert found(100, 320) == found(200, 320) == found(300, 320) == ["300", "310"]  # loaded there
    assert found(310, 320) == ["310"]
    del joins[seqno(200)]
    with pytest.raises(GapError):
        found(10, 320)


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
    found = find_covering_intervals(intervals.get, sorted(intervals), seqno(applied), seqno(target))
    for before, after in pairwise(found):
        assert before.stop_seqno == after.start_seqno
    if needed:
        assert found[0].start_seqno <= seqno(applied) < found[0].stop_seqno
        assert found[-1].stop_seqno == seqno(target)


def planned(applied: int, *manifests: Manifest, standing: TableState | None = None) -> Merge:
    stands = standing or TableState(SCHEMA, seqno(applied))
    target = manifests[-1].stop_seqno
    events = collect_events(NAME, manifests, stands.applied, target)
    timeline = build_timeline(NAME, stands, target, manifests, events, lambda _: "fresh", lambda *_: False)
    return plan_stages(NAME, timeline, manifests, DEFAULT, new=stands.schema is None)


def test_a_table_can_be_brought_to_right_before_each_statement() -> None:
    texts = {"ADD y INT": 12, "DROP y": 12, "RENAME COLUMN v TO w": 13, "ADD v INT": 14}
    barriers = tuple(barrier(at, statement=f"ALTER TABLE orders {text}") for text, at in texts.items())
    one = manifest(10, 20, file(11, 11), barriers=barriers)
    stands, stops = TableState(SCHEMA, seqno(10)), []
    while stands.applied < one.stop_seqno:
        events = collect_events(NAME, [one], stands.applied, one.stop_seqno)
        timeline = build_timeline(
            NAME, stands, one.stop_seqno, [one], events, lambda _: "fresh", lambda *_: False, stop_at_events=True
        )
        assert timeline.target > stands.applied
        stops.append(timeline.target - seqno(0))
        stands = TableState(timeline.epochs[-1].schema, timeline.target)
    assert stops == [11, 12, 13, 20]
    assert planned(10, one).schema == stands.schema
    # Nothing is known of a new table before its first record.
    new = manifest(10, 20, barriers=(barrier(11, statement="CREATE TABLE orders (x INT)"), *barriers))
    events = collect_events(NAME, [new], seqno(10), seqno(20))
    fresh = build_timeline(
        NAME,
        TableState(None, seqno(10), "gone"),
        seqno(20),
        [new],
        events,
        lambda _: "fresh",
        lambda *_: False,
        stop_at_events=True,
    )
    assert (fresh.target, fresh.state) == (seqno(20), "fresh")


def test_files_that_are_applied_whole_are_left_out() -> None:
    other = TableSchema(TableName("shop", "other"), SCHEMA.columns, SCHEMA.key)
    (work,) = planned(
        15, manifest(10, 20, file(11, 15), file(14, 16), file(12, 18, other)), manifest(20, 30, file(22, 29))
    ).works
    assert [one.key for one in work.files] == ["part-14-16", "part-22-29"]
    assert (work.rows, work.ops) == (2, {"I": 2, "U": 0, "D": 0})
    assert (work.target, work.position) == (seqno(30), "binlog.000003:30")
    assert str(work.position_of(seqno(25))) == "binlog.000003:25"


def test_nothing_for_a_table_is_no_work() -> None:
    for merge in (
        planned(15, manifest(10, 20, file(11, 15)), manifest(20, 30)),
        planned(10, manifest(10, 20, file(11, 15, rows=0))),
    ):
        assert (merge.stages, merge.schema, merge.state) == ((), SCHEMA, "")


def barrier(at: int, *tables: str, statement: str = "ALTER TABLE orders ADD x INT") -> Barrier:
    return Barrier(
        seqno=seqno(at),
        position=f"binlog.000003:{at}",
        statement=statement,
        database="shop",
        sql_mode=1 << 21,
        mariadb=False,
        tables=tables,
    )


@pytest.mark.parametrize(
    ("at", "tables", "concerns"),
    [(16, ("shop.orders",), True), (16, (), True), (15, ("shop.orders",), False), (15, (), False)],
)
def test_a_statement_counts_after_the_applied_position(at: int, tables: tuple[str, ...], concerns: bool) -> None:
    merge = planned(15, manifest(10, 20, barriers=(barrier(at, *tables),)))
    names = ("id", "v", "x") if concerns else ("id", "v")
    assert merge.schema is not None
    assert tuple(column.name for column in merge.schema.columns) == names


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE IF NOT EXISTS orders (id INT)", "ALTER TABLE orders ADD UNIQUE (v), COMMENT 'x'",
        "CREATE UNIQUE INDEX i ON orders (v)", "ALTER TABLE other ADD x INT", "TRUNCATE other",
        "RENAME TABLE other TO another, another TO other",
    ],
)  # fmt: skip
def test_statements_that_leave_rows_and_columns_as_they_are(statement: str) -> None:
    merge = planned(15, manifest(10, 20, barriers=(barrier(16, "shop.orders", statement=statement),)))
    assert (merge.stages, merge.schema, merge.state) == ((), SCHEMA, "")


def test_a_statement_that_cannot_be_read_stops_the_table() -> None:
    with pytest.raises(UnsupportedError, match="cannot be read: ALTER TABLE orders FROBNICATE") as caught:
        planned(15, manifest(10, 20, barriers=(barrier(16, "shop.orders", statement="ALTER TABLE orders FROBNICATE"),)))
    assert caught.value.where == {"table": "shop.orders", "position": "binlog.000003:16"}


ALTERED = TableSchema(NAME, (*SCHEMA.columns, Column("x", "int")), ("id",))


def kinds(merge: Merge) -> list[str]:
    return [type(stage).__name__ for stage in merge.stages]


def schemas(*found: TableSchema) -> dict[str, Any]:
    return {"schemas": {one.schema_id: one.as_dict() for one in found}}


def test_records_around_a_new_column_are_one_work() -> None:
    files = (file(11, 14), file(17, 19, ALTERED))
    one = manifest(10, 20, *files, barriers=(barrier(16),)).model_copy(update=schemas(SCHEMA, ALTERED))
    merge = planned(10, one)
    (work,) = merge.works
    assert (work.schema, merge.schema, merge.aliases["x"]) == (ALTERED, ALTERED, "_loader_2_int__x")
    early, late = work.file_groups
    assert early.ranges == (
        RecordRange(
            seqno(10), seqno(16) - 1, {"id": ColumnOrigin("id"), "v": ColumnOrigin("v"), "x": ConstantOrigin(None)}
        ),
    )
    assert (late.ranges[0].after_seqno, late.ranges[0].last_seqno) == (seqno(16) - 1, seqno(20))


def test_records_of_another_schema_without_a_statement_are_refused() -> None:
    one = manifest(10, 20, file(11, 19, ALTERED)).model_copy(update=schemas(SCHEMA, ALTERED))
    with pytest.raises(UnsupportedError) as caught:
        planned(10, one)
    assert caught.value.where["table"] == "shop.orders"
    both = manifest(10, 20, file(11, 15), file(14, 19, ALTERED)).model_copy(update=schemas(SCHEMA, ALTERED))
    with pytest.raises(UnsupportedError, match="two schemas with no statement between"):
        planned(10, both)


def test_a_file_over_a_statement_counts_where_its_schema_fits() -> None:
    dropped = barrier(17, statement="ALTER TABLE orders DROP x")
    one = manifest(10, 20, file(11, 19), barriers=(barrier(13), dropped)).model_copy(update=schemas(SCHEMA, ALTERED))
    (work,) = planned(10, one).works
    (source,) = work.file_groups
    assert [(seqno(10), seqno(13) - 1), (seqno(17) - 1, seqno(20))] == [
        (w.after_seqno, w.last_seqno) for w in source.ranges
    ]


def test_after_a_truncate_earlier_records_do_not_count() -> None:
    emptied = barrier(15, statement="TRUNCATE orders")
    merge = planned(10, manifest(10, 20, file(11, 12), file(13, 18), barriers=(emptied,)))
    assert kinds(merge) == ["EmptyTable", "Work"]
    (work,) = merge.works
    assert [one.key for one in work.files] == ["part-13-18"]
    assert work.applied == seqno(15) - 1
    assert kinds(planned(10, manifest(10, 20, file(11, 12), barriers=(emptied,)))) == ["EmptyTable"]


def test_a_table_that_is_dropped_keeps_its_rows_until_it_is_made_again() -> None:
    gone, made = barrier(12, statement="DROP TABLE orders"), barrier(15, statement="CREATE TABLE orders (x INT)")
    merge = planned(10, manifest(10, 20, file(11, 11), barriers=(gone,)))
    assert (kinds(merge), merge.state) == (["Work"], "gone")
    again = planned(10, manifest(10, 20, file(11, 11), barriers=(gone, made)))
    assert (kinds(again), again.state, again.schema) == (["EmptyTable"], "fresh", SCHEMA)
    with pytest.raises(UnsupportedError, match="dropped or renamed away"):
        planned(10, manifest(10, 20, file(13, 13), barriers=(gone,)))


def test_another_key_makes_another_work() -> None:
    other = TableSchema(NAME, SCHEMA.columns, ("v",))
    keyed = barrier(15, statement="ALTER TABLE orders DROP PRIMARY KEY, ADD PRIMARY KEY (v)")
    one = manifest(10, 20, file(11, 14), file(16, 19, other), barriers=(keyed,)).model_copy(
        update=schemas(SCHEMA, other)
    )
    assert [work.schema.key for work in planned(10, one).works] == [("id",), ("v",)]


def test_another_tables_rows_are_taken_when_all_before_is_done() -> None:
    renamed = barrier(15, statement="RENAME TABLE orders TO old, ghost TO orders")
    merge = planned(10, manifest(10, 20, file(11, 14), barriers=(renamed,)))
    assert (kinds(merge), merge.target, merge.state) == (["Work"], seqno(15) - 1, "")
    at_once = planned(15, manifest(10, 20, barriers=(renamed,)), standing=TableState(SCHEMA, seqno(15) - 1))
    assert (kinds(at_once), at_once.target, at_once.state) == (["EmptyTable"], seqno(20), "fresh")


@pytest.mark.parametrize("mariadb", [False, True])
def test_a_rename_to_the_same_name_is_no_event(mariadb: bool) -> None:
    """Servers log it. Otherwise CREATE TABLE IF NOT EXISTS after it would empty the table."""
    texts = ("ALTER TABLE orders RENAME TO orders", "CREATE TABLE IF NOT EXISTS orders (id INT PRIMARY KEY)")
    barriers = tuple(
        Barrier(
            seqno=seqno(at), position=f"binlog.000003:{at}", statement=text, database="shop", sql_mode=0,
            mariadb=mariadb, tables=("shop.orders",),
        )
        for at, text in zip((20, 30), texts, strict=True)
    )  # fmt: skip
    one = manifest(4, 50, file(40, 45), barriers=barriers)
    events = collect_events(NAME, [one], seqno(4), one.stop_seqno)
    assert [type(event).__name__ for event in events] == ["TableCreated"]
    timeline = build_timeline(
        NAME, TableState(SCHEMA, seqno(4)), one.stop_seqno, [one], events, lambda _: "fresh", lambda *_: True
    )
    merge = plan_stages(NAME, timeline, [one], DEFAULT, new=False)
    assert not any(isinstance(stage, EmptyTable) for stage in merge.stages)
