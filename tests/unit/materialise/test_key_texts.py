"""Where a merge ends because the next records were staged with another `undecodable`, and when keys are checked."""

from __future__ import annotations

import pytest

from loader.materialise.plan.key_texts import KeyTexts, ambiguous_key_columns, last_staged_alike, read_key_texts
from loader.materialise.plan.merge_plan import CheckRows, plan_stages
from loader.materialise.plan.timeline import TableState, build_timeline
from loader.materialise.rules import DEFAULT
from loader.model.table import Column, TableName, TableSchema
from loader.staging.documents import Manifest
from tests.unit.materialise.test_merge_plan import NAME, file, manifest, seqno

KEYED = TableSchema(
    NAME,
    (
        Column("a", "varchar", charset="hebrew"),
        Column("b", "varchar", charset="latin1"),
        Column("c", "int"),
        Column("d", "varchar", charset="utf8mb4"),
    ),
    ("c", "b", "a"),
)
INTERVALS = (
    manifest(10, 20, file(12, 14)),
    manifest(20, 30),
    manifest(30, 40, file(32, 34)),
    manifest(40, 50, file(42, 44)),
)


def hexed_from(offset: int):
    return lambda start: start >= seqno(offset)


@pytest.mark.parametrize(
    ("hexed", "applied", "target", "end"),
    [
        (10, 10, 50, 50),
        (60, 10, 50, 50),
        (20, 10, 50, 30),
        (30, 10, 50, 30),
        (40, 10, 50, 40),
        (40, 10, 35, 35),
        (30, 14, 50, 50),
        (40, 34, 50, 50),
        (40, 33, 50, 40),
    ],
)
def test_a_merge_ends_before_records_that_were_staged_otherwise(
    hexed: int, applied: int, target: int, end: int
) -> None:
    found = last_staged_alike(NAME, INTERVALS, seqno(applied), seqno(target), hexed_from(hexed))
    assert found == seqno(end)
    assert last_staged_alike(TableName("s", "other"), INTERVALS, seqno(applied), seqno(50), hexed_from(30)) == seqno(50)


@pytest.mark.parametrize(
    ("before", "applied", "expected"),
    [
        (None, 10, KeyTexts(False, False)),
        (False, 10, KeyTexts(False, False)),
        (True, 10, KeyTexts(False, True)),
        (None, 14, KeyTexts(True, False)),
        (False, 14, KeyTexts(True, True)),
        (True, 14, KeyTexts(True, False)),
        (None, 44, KeyTexts(False, False)),
        (False, 44, KeyTexts(False, False)),
        (True, 44, KeyTexts(True, False)),
    ],
)
def test_the_first_records_decide(before: bool | None, applied: int, expected: KeyTexts) -> None:
    assert read_key_texts(NAME, INTERVALS, seqno(applied), hexed_from(30), before) == expected


def test_columns_whose_texts_depend_on_the_setting() -> None:
    assert ambiguous_key_columns(KEYED) == ("a",)


@pytest.mark.parametrize(
    ("new", "changed", "checked"), [(False, True, True), (False, False, False), (True, True, False)]
)
def test_keys_are_checked_before_the_first_records(new: bool, changed: bool, checked: bool) -> None:
    interval = manifest(10, 20, file(12, 14, KEYED))
    staged: Manifest = interval.model_copy(update={"schemas": {KEYED.schema_id: KEYED.as_dict()}})
    state = TableState(None if new else KEYED, seqno(10), "fresh" if new else "")
    timeline = build_timeline(NAME, state, seqno(20), [staged], [], lambda _: "fresh", lambda *_: True)
    merge = plan_stages(NAME, timeline, [staged], DEFAULT, new=new, texts=KeyTexts(True, changed))
    assert merge.hexed
    assert [stage for stage in merge.stages if isinstance(stage, CheckRows)] == (
        [CheckRows({}, (), (), ("a",))] if checked else []
    )
    assert not checked or isinstance(merge.stages[0], CheckRows)
