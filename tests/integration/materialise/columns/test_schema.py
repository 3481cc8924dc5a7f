"""Statements that change a table as a whole, in their order among its records: the warehouse follows them exactly."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from loader.materialise.rules import TableRule
from loader.model.table import Column, TableName, TableSchema
from loader.staging.documents import Barrier
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import Change, number, position, table
from tests.support.sweep import IN_SWEEP

pytestmark = pytest.mark.integration

P0 = position(1, 1000)
STRICT = 1 << 21
ID, NAME = Column("id", "int"), Column("name", "varchar", charset="utf8mb4")
SIZE, WIDE = Column("size", "int"), Column("size", "bigint")
KIND = Column("kind", "varchar", charset="utf8mb4")


@dataclass(frozen=True)
class Story:
    """A table, what happens to it, and what it is in the end.

    `events`: at each offset a statement, or a schema with an op and a row.
    """

    schema: TableSchema
    rows: tuple[tuple[Any, ...], ...]
    events: tuple[tuple[int, Any], ...]
    columns: tuple[str, ...]
    expected: tuple[tuple[Any, ...], ...]


def schema(name: str, *columns: Column, key: tuple[str, ...] = ("id",)) -> TableSchema:
    return table(name, columns, key)


def story(name, start, rows, *events, columns, expected) -> Story:
    """Events of the table `name`; a tuple is (columns or schema, op, row)."""
    made = []
    for offset, event in enumerate(events):
        if isinstance(event, tuple):
            there, op, row = event
            found = (there if isinstance(there, TableSchema) else schema(name, *there), op, row)
        else:
            found = event
        made.append((1100 + 100 * offset, found))
    start = start if isinstance(start, TableSchema) else schema(name, *start)
    return Story(start, rows, tuple(made), columns, expected)


TWO = ((1, "one"), (2, "two"))
STORIES = [
    story(
        "added",
        (ID, NAME),
        TWO,
        "ALTER TABLE added ADD size INT, ADD kind VARCHAR(9) NOT NULL DEFAULT 'pla\\\\in'",
        ((ID, NAME, SIZE, KIND), "U", (2, "two", 7, "new")),
        ((ID, NAME, SIZE, KIND), "I", (3, "three", None, "x")),
        columns=("id", "name", "size", "kind"),
        expected=((1, "one", None, "pla\\in"), (2, "two", 7, "new"), (3, "three", None, "x")),
    ),
    story(
        "added_later",
        (ID, NAME),
        TWO,
        ((ID, NAME), "U", (1, "changed")),
        ((ID, NAME), "I", (3, "three")),
        "ALTER TABLE added_later ADD size BIGINT NOT NULL FIRST",
        columns=("size", "id", "name"),
        expected=((0, 1, "changed"), (0, 2, "two"), (0, 3, "three")),
    ),
    story(
        "dropped_column",
        (ID, NAME, SIZE),
        ((1, "one", 1), (2, "two", 2)),
        ((ID, NAME, SIZE), "U", (1, "uno", 5)),
        "ALTER TABLE dropped_column DROP name",
        ((ID, SIZE), "U", (2, 9)),
        columns=("id", "size"),
        expected=((1, 5), (2, 9)),
    ),
    story(
        "swapped_columns",
        (ID, Column("a", "int"), Column("b", "int")),
        ((1, 10, 20), (2, 11, 21)),
        ((ID, Column("a", "int"), Column("b", "int")), "U", (2, 12, 22)),
        "ALTER TABLE swapped_columns CHANGE a b INT, CHANGE b a INT",
        ((ID, Column("b", "int"), Column("a", "int")), "I", (3, 13, 23)),
        columns=("id", "b", "a"),
        expected=((1, 10, 20), (2, 12, 22), (3, 13, 23)),
    ),
    story(
        "widened",
        (ID, SIZE),
        ((1, 1), (2, 2)),
        ((ID, SIZE), "U", (1, -5)),
        "ALTER TABLE widened MODIFY size BIGINT",
        ((ID, WIDE), "U", (2, 2**40)),
        columns=("id", "size"),
        expected=((1, -5), (2, 2**40)),
    ),
    story(
        "another_of_the_name",
        (ID, NAME),
        TWO,
        ((ID, NAME), "U", (1, "uno")),
        "ALTER TABLE another_of_the_name DROP name",
        "ALTER TABLE another_of_the_name ADD name VARCHAR(9)",
        ((ID, NAME), "U", (2, "dos")),
        columns=("id", "name"),
        expected=((1, None), (2, "dos")),
    ),
    story(
        "there_and_back",
        (ID, NAME),
        TWO,
        ((ID, NAME), "U", (1, "before")),
        "ALTER TABLE there_and_back ADD size INT DEFAULT 4",
        ((ID, NAME, SIZE), "U", (2, "between", 5)),
        ((ID, NAME, SIZE), "I", (3, "three", 5)),
        "ALTER TABLE there_and_back DROP size",
        ((ID, NAME), "I", (4, "after")),
        ((ID, NAME), "U", (3, "last")),
        columns=("id", "name"),
        expected=((1, "before"), (2, "between"), (3, "last"), (4, "after")),
    ),
    story(
        "other_key",
        (ID, SIZE, NAME),
        ((1, 100, "one"), (2, 200, "two")),
        ((ID, SIZE, NAME), "U", (1, 101, "uno")),
        "ALTER TABLE other_key DROP PRIMARY KEY, ADD PRIMARY KEY (size), MODIFY id INT NULL",
        (schema("other_key", ID, SIZE, NAME, key=("size",)), "D", (1, 101, "uno")),
        (schema("other_key", ID, SIZE, NAME, key=("size",)), "I", (2, 300, "three")),
        columns=("id", "size", "name"),
        expected=((2, 200, "two"), (2, 300, "three")),
    ),
    story(
        "truncated",
        (ID, NAME),
        TWO,
        ((ID, NAME), "I", (3, "three")),
        "TRUNCATE truncated",
        ((ID, NAME), "I", (1, "again")),
        columns=("id", "name"),
        expected=((1, "again"),),
    ),
    story("emptied", (ID, NAME), TWO, "TRUNCATE TABLE shop.emptied", columns=("id", "name"), expected=()),
    story(
        "made_again",
        (ID, NAME, SIZE),
        ((1, "one", 1), (2, "two", 2)),
        ((ID, NAME, SIZE), "I", (3, "three", 3)),
        "DROP TABLE IF EXISTS made_again",
        "CREATE TABLE made_again (size VARCHAR(9) PRIMARY KEY, id INT, name TEXT)",
        (
            schema("made_again", Column("size", "varchar", charset="utf8mb4"), ID, NAME, key=("size",)),
            "I",
            ("big", 1, "one"),
        ),
        columns=("size", "id", "name"),
        expected=(("big", 1, "one"),),
    ),
    story(
        "left",
        (ID, NAME),
        TWO,
        ((ID, NAME), "D", (1, "one")),
        "DROP TABLE `left`",
        columns=("id", "name"),
        expected=((2, "two"),),
    ),
    story(
        "untouched",
        (ID, NAME),
        TWO,
        "ALTER TABLE untouched ADD INDEX (name), COMMENT 'nothing'",
        "CREATE TABLE IF NOT EXISTS untouched (x INT)",
        ((ID, NAME), "U", (1, "uno")),
        columns=("id", "name"),
        expected=((1, "uno"), (2, "two")),
    ),
]
MADE = [
    story(
        "born",
        (ID, NAME),
        (),
        "CREATE TABLE born (id INT PRIMARY KEY, name VARCHAR(20))",
        ((ID, NAME), "I", (1, "first")),
        "ALTER TABLE born ADD size INT DEFAULT 3",
        ((ID, NAME, SIZE), "I", (2, "second", 4)),
        columns=("id", "name", "size"),
        expected=((1, "first", 3), (2, "second", 4)),
    ),
]
END = 3000


def staged(lake: Lake, stories: list[Story], cuts: list[int]) -> None:
    """The stories' records and statements in intervals that end at `cuts`; each table's records in one file of each."""
    edges = [1000, *cuts]
    for low, high in pairwise(edges):
        tables: dict[TableSchema, list[Change]] = {}
        barriers = []
        for told in stories:
            for offset, event in told.events:
                if not low < offset <= high:
                    continue
                if isinstance(event, str):
                    barriers.append(
                        Barrier(
                            seqno=number(1, offset),
                            position=position(1, offset - 50),
                            statement=event,
                            database="shop",
                            sql_mode=STRICT,
                            mariadb=False,
                            tables=(str(told.schema.name),),
                        )
                    )
                else:
                    there, op, row = event
                    tables.setdefault(there, []).append(Change(op, number(1, offset), 5, row))
        barriers.sort(key=lambda barrier: barrier.seqno)
        lake.staging.interval(position(1, low), position(1, high), list(tables.items()), barriers)


def rows_of(lake: Lake, name: TableName) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]:
    frame = lake.warehouse.session.table(lake.warehouse.name(name)).drop("_seqno", "_committed_at")
    return tuple(frame.columns), tuple(sorted((tuple(row) for row in frame.collect()), key=repr))


@pytest.fixture(scope="module", params=["at once", "one by one"] if IN_SWEEP else ["at once"])
def followed(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """All stories, merged in one run or interval by interval."""
    folder: Path = tmp_path_factory.mktemp("lake")
    lake = Lake(spark, folder)
    keys = [lake.staging.load(told.schema, told.rows, P0) for told in STORIES]
    assert {one.status for one in lake.loaded(*keys).tables} == {"applied"}
    stories = [*STORIES, *MADE]
    if request.param == "at once":
        staged(lake, stories, [END])
    else:
        staged(lake, stories, [*range(1150, 2050, 300), END])
        for cut in range(1150, 2050, 300):
            assert not [one.error for one in lake.merged(number(1, cut)).tables if one.error]
    result = lake.merged()
    assert {one.table: one.error for one in result.tables if one.error} == {}
    return lake


@pytest.mark.parametrize("told", [*STORIES, *MADE], ids=lambda told: told.schema.name.table)
def test_rows_and_columns_are_those_of_the_source(followed: Lake, told: Story) -> None:
    columns, rows = rows_of(followed, told.schema.name)
    assert columns == told.columns
    assert rows == tuple(sorted(told.expected, key=repr))


def test_another_run_changes_nothing(followed: Lake) -> None:
    heads = {told.schema.name: followed.metadata(told.schema.name).head for told in [*STORIES, *MADE]}
    assert {one.status for one in followed.merged().tables} <= {"already", "unchanged"}
    assert {name: followed.metadata(name).head for name in heads} == heads


def test_every_snapshot_of_the_loader_shows_the_columns_of_then(followed: Lake) -> None:
    """Also to who asks for it by its id."""
    for told in STORIES:
        name = followed.warehouse.name(told.schema.name)
        for snapshot in followed.metadata(told.schema.name).ancestry(followed.metadata(told.schema.name).head):
            if "loader.applied" in snapshot.summary:
                frame = followed.warehouse.session.sql(f"SELECT * FROM {name} VERSION AS OF {snapshot.id}")
                assert [column for column in frame.columns if column.startswith("_loader")] == []


KEPT = [
    story(
        "keeps",
        (ID, NAME, SIZE),
        ((1, "one", 1), (2, "two", 2), (3, "three", 3)),
        ((ID, NAME, SIZE), "U", (1, "uno", 1)),
        ((ID, NAME, SIZE), "U", (2, "dos", 2)),
        "ALTER TABLE keeps DROP name",
        ((ID, SIZE), "U", (2, 9)),
        columns=("id", "size", "name"),
        expected=((1, 1, "uno"), (2, 9, None), (3, 3, "three")),
    ),
    story(
        "keeps_two",
        (ID, NAME, SIZE),
        ((1, "one", 1), (2, "two", 2)),
        "ALTER TABLE keeps_two DROP name",
        "ALTER TABLE keeps_two ADD name VARCHAR(9) DEFAULT 'new'",
        ((ID, SIZE, NAME), "I", (3, 3, "three")),
        "ALTER TABLE keeps_two DROP name, CHANGE size Name INT",
        columns=("id", "Name", "name__dropped1", "name__dropped"),
        expected=((1, 1, "new", "one"), (2, 2, "new", "two"), (3, 3, "three", None)),
    ),
    story(
        "keeps_brief",
        (ID, NAME),
        TWO,
        "ALTER TABLE keeps_brief ADD size INT DEFAULT 7, ADD kind VARCHAR(9)",
        "ALTER TABLE keeps_brief DROP size, DROP kind",
        ((ID, NAME), "I", (3, "three")),
        columns=("id", "name", "size", "kind"),
        expected=((1, "one", 7, None), (2, "two", 7, None), (3, "three", None, None)),
    ),
    story(
        "keeps_renamed",
        (ID, NAME),
        TWO,
        "ALTER TABLE keeps_renamed RENAME COLUMN name TO label",
        "ALTER TABLE keeps_renamed DROP label",
        "ALTER TABLE keeps_renamed ADD label INT DEFAULT 1",
        "ALTER TABLE keeps_renamed DROP label",
        columns=("id", "label", "label__dropped"),
        expected=((1, 1, "one"), (2, 1, "two")),
    ),
    story(
        "keeps_swapped",
        (ID, NAME, SIZE),
        ((1, "one", 1), (2, "two", 2)),
        "ALTER TABLE keeps_swapped DROP size",
        "ALTER TABLE keeps_swapped RENAME COLUMN name TO size",
        "ALTER TABLE keeps_swapped DROP size",
        "TRUNCATE keeps_swapped",
        ((ID,), "I", (3,)),
        columns=("id", "size", "size__dropped"),
        expected=((3, None, None),),
    ),
]


@pytest.mark.parametrize(
    "cuts",
    [
        pytest.param([END], marks=pytest.mark.sweep),
        [1150, 1250, 1350, END],
        pytest.param([1250, END], marks=pytest.mark.sweep),
    ],
    ids=["at once", "one by one", "by two"],
)
def test_columns_that_went_are_kept_by_rule(lake: Lake, cuts: list[int]) -> None:
    lake.rules = (TableRule(tables=("shop.keeps*",), on_drop="keep"),)
    lake.loaded(*[lake.staging.load(told.schema, told.rows, P0) for told in KEPT])
    staged(lake, KEPT, cuts)
    for cut in cuts:
        assert {one.error for one in lake.merged(number(1, cut)).tables} == {None}
    for told in KEPT:
        assert rows_of(lake, told.schema.name) == (told.columns, tuple(sorted(told.expected, key=repr)))
    assert {one.status for one in lake.merged().tables} == {"already"}


STAMP = Column("at", "timestamp")
DOUBTFUL = {
    "MODIFY name VARCHAR(5)": (NAME, "longer     ", "shorter"),
    "MODIFY name VARCHAR(6)": (NAME, "longer\t\n", "shorter"),
    "MODIFY at TIMESTAMP NOT NULL": (STAMP, None, "2024-01-02 03:04:05"),
    "MODIFY size INT AUTO_INCREMENT": (SIZE, 0, 7),
}


def test_rows_that_the_server_may_have_changed_without_a_word_stop_their_table(lake: Lake) -> None:
    stories, keys = [], []
    for place, (text, (column, changed, kept)) in enumerate(DOUBTFUL.items()):
        for name, value in ((f"changed{place}", changed), (f"kept{place}", kept)):
            there = schema(name, ID, column)
            stories.append(Story(there, (), ((1100, f"ALTER TABLE {name} {text}"),), (), ()))
            keys.append(lake.staging.load(there, [(1, value)], P0))
    lake.loaded(*keys)
    staged(lake, stories, [END])
    found = {one.table: one for one in lake.merged().tables}
    assert {name for name, one in found.items() if one.error} == {f"shop.changed{n}" for n in range(4)}
    for place, what in enumerate(("removed trailing whitespace",) * 2 + ("replaced 0 or NULL", "replaced 0 or NULL")):
        error = found[f"shop.changed{place}"].error
        assert error is not None
        assert what in error["what"]
