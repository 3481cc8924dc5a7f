"""The columns beside dates that are none keep their texts while the columns and names of their tables change."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from loader.materialise.rules import TableRule
from loader.model.table import Column, TableSchema
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.renames.test_renames import barrier, change, rows
from tests.integration.materialise.staged_writer import position, table

pytestmark = pytest.mark.integration

ID, A, B = Column("id", "int"), Column("a", "date"), Column("b", "date")
N, AT, FINE = Column("n", "int"), Column("at", "datetime"), Column("at", "datetime", size=3)
NONE, PART = "0000-00-00", "2024-00-01"
MIDNIGHT = NONE + " 00:00:00"
P0, P1, P2 = position(1, 1000), position(1, 3000), position(1, 4000)


def schema(name: str, *columns: Column, key: tuple[str, ...] = ("id",)) -> TableSchema:
    return table(name, columns, key)


LOADED = {
    "renamed": (ID, A, [(1, NONE), (2, None)]),
    "swapped": (ID, A, B, [(1, NONE, None), (2, PART, "2024-01-01")]),
    "dropped": (ID, A, N, [(1, NONE, 5)]),
    "kept": (ID, A, N, [(1, NONE, 5)]),
    "another": (ID, A, [(1, NONE)]),
    "added": (ID, [(1,), (2,)]),
    "moved": (ID, A, B, [(1, NONE, PART)]),
    "finer": (ID, AT, [(1, MIDNIGHT)]),
    "one": (ID, A, [(1, NONE)]),
    "other": (ID, B, [(1, PART)]),
    "strict": (ID, A, [(1, "2024-01-01")]),
    "loose": (ID, A, [(1, NONE)]),
}
STATEMENTS = {
    "renamed": ["CHANGE a c DATE"],
    "swapped": ["CHANGE a b DATE, CHANGE b a DATE"],
    "dropped": ["DROP a"],
    "kept": ["DROP a"],
    "another": ["DROP a", "ADD a DATE"],
    "added": ["ADD a DATE NOT NULL, ADD at DATETIME(3) NOT NULL"],
    "moved": ["MODIFY b DATE FIRST"],
    "finer": ["MODIFY at DATETIME(3)"],
}
RECORDS = [
    (schema("renamed", ID, Column("c", "date")), (3, PART)),
    (schema("swapped", ID, B, A), (3, NONE, PART)),
    (schema("dropped", ID, N), (3, 7)),
    (schema("kept", ID, N), (3, 7)),
    (schema("another", ID, A), (3, PART)),
    (schema("added", ID, A, FINE), (3, PART, None)),
    (schema("moved", B, ID, A), (NONE, 3, None)),
    (schema("finer", ID, FINE), (3, MIDNIGHT + ".500")),
    (schema("one", ID, B), (3, NONE)),
    (schema("other", ID, A), (3, PART)),
]
EXPECTED: dict[str, tuple[list[str], list[tuple[Any, ...]]]] = {
    "renamed": (["id", "c", "c__text"], [(1, None, NONE), (2, None, None), (3, None, PART)]),
    "swapped": (
        ["id", "b", "a", "b__text", "a__text"],
        [(1, None, None, NONE, None), (2, None, datetime.date(2024, 1, 1), PART, None), (3, None, None, NONE, PART)],
    ),
    "finer": (["id", "at", "at__text"], [(1, None, MIDNIGHT), (3, None, MIDNIGHT + ".500")]),  # as they were staged
    "dropped": (["id", "n"], [(1, 5), (3, 7)]),
    "kept": (["id", "n", "a", "a__text"], [(1, 5, None, NONE), (3, 7, None, None)]),
    "another": (["id", "a", "a__text"], [(1, None, None), (3, None, PART)]),
    "added": (
        ["id", "a", "at", "a__text", "at__text"],
        [
            (1, None, None, NONE, MIDNIGHT + ".000"),
            (2, None, None, NONE, MIDNIGHT + ".000"),
            (3, None, None, PART, None),
        ],
    ),
    "moved": (["b", "id", "a", "b__text", "a__text"], [(None, 1, None, PART, NONE), (None, 3, None, NONE, None)]),
    "one": (["id", "b", "b__text"], [(1, None, PART), (3, None, NONE)]),
    "other": (["id", "a", "a__text"], [(1, None, NONE), (3, None, PART)]),
}
AGAIN = {
    "renamed": (["id", "a", "b", "a__text", "b__text"], [(1, None, None, PART, None), (2, None, None, None, NONE)]),
    "dropped": (["id", "n", "a", "a__text"], [(1, 5, None, NONE)]),
    "moved": (["id", "a"], [(1, NONE)]),
    "added": (["id", "at", "at__text"], [(1, None, MIDNIGHT)]),
    "strict": (["id", "a"], [(1, datetime.date(2024, 1, 1))]),
}


@pytest.mark.sweep
def test_texts_stay_beside_their_columns(lake: Lake) -> None:
    lake.rules = (
        TableRule(tables=("*.strict",)),
        TableRule(tables=("*.loose",), on_misfit="null"),
        TableRule(tables=("*.kept",), on_misfit="text", on_drop="keep"),
        TableRule(tables=("*",), on_misfit="text"),
    )
    keys = [lake.staging.load(schema(name, *columns), there, P0) for name, (*columns, there) in LOADED.items()]
    assert {one.status for one in lake.loaded(*keys).tables} == {"applied"}
    barriers = [
        barrier(1100 + 100 * place, f"ALTER TABLE {name} {text}", name)
        for name, texts in STATEMENTS.items()
        for place, text in enumerate(texts)
    ]
    swap = "RENAME TABLE {0} TO spare, {1} TO {0}, spare TO {1}"
    barriers += [barrier(1500, swap.format(*pair), *pair, "spare") for pair in (("one", "other"), ("strict", "loose"))]
    records = [(found, [change("I", 2000, *row)]) for found, row in RECORDS]
    lake.staging.interval(P0, P1, records, sorted(barriers, key=lambda one: one.seqno))
    result = {one.table.removeprefix("shop."): one for one in lake.merged().tables}
    assert {name: str(one.error) for name, one in result.items() if one.error and name != "strict"} == {}
    assert "on_misfit = 'null', not 'error'" in str(result["strict"].error)
    found = {name: rows(lake, name) for name in EXPECTED}
    assert found == EXPECTED

    again = [
        lake.staging.load(schema("renamed", ID, A, B), [(1, PART, None), (2, None, NONE)], P2),
        lake.staging.load(schema("dropped", ID, N, A), [(1, 5, NONE)], P2),
        lake.staging.load(schema("moved", ID, Column("a", "varchar", charset="utf8mb4")), [(1, NONE)], P2),
        lake.staging.load(schema("added", ID, AT), [(1, MIDNIGHT)], P2),
        lake.staging.load(schema("strict", ID, A), [(1, "2024-01-01")], P2),
    ]
    assert [str(one.error) for one in lake.loaded(*again).tables if one.error] == []
    assert {name: rows(lake, name) for name in AGAIN} == AGAIN
