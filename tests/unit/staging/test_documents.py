"""Durable documents: one canonical text each, and nothing else is read as one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loader.errors import DataError, StagedDataError
from loader.model.identity import Identity
from loader.model.table import Column, TableName, TableSchema
from loader.staging.chain import RunRecord
from loader.staging.documents import (
    Balance,
    Barrier,
    Document,
    Generation,
    Manifest,
    Plan,
    Published,
    PublishedTable,
    StagedFile,
    TableFilter,
)

IDENTITY = Identity(kind="mariadb", version="10.11.19-MariaDB", server_id=7)
TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
NUMBER = st.integers(0, 2**63 - 1)
POSITIONS = st.tuples(st.integers(1, 10**7), st.integers(4, 10**12 - 1)).map(lambda p: f"binlog.{p[0]:06d}:{p[1]}")
FILES = st.builds(
    StagedFile,
    **dict.fromkeys(("key", "schema_name", "table", "schema_id", "sha256"), TEXT),
    **dict.fromkeys(("inserts", "updates", "deletes", "bytes", "min_seqno", "max_seqno"), NUMBER),
)
COLUMNS = st.builds(Column, TEXT, TEXT, st.booleans(), NUMBER, NUMBER, TEXT, st.lists(TEXT, max_size=3).map(tuple))
NAMES = st.builds(TableName, TEXT, TEXT)
KEYS = st.lists(TEXT, max_size=2).map(tuple)
SCHEMAS = st.builds(TableSchema, NAMES, st.lists(COLUMNS, max_size=4).map(tuple), KEYS)
BARRIERS = st.builds(
    Barrier, seqno=NUMBER, position=POSITIONS, statement=TEXT, database=TEXT, sql_mode=NUMBER, mariadb=st.booleans(),
    tables=st.lists(TEXT, max_size=3).map(tuple),
)  # fmt: skip
BALANCES = st.builds(
    Balance, events=NUMBER, bytes=NUMBER, transactions=NUMBER, event_types=st.dictionaries(TEXT, NUMBER, max_size=3),
    row_events_staged=NUMBER, skipped=st.dictionaries(TEXT, NUMBER, max_size=3),
)  # fmt: skip
DOCUMENTS: dict[type[Document], st.SearchStrategy[Document]] = {
    Generation: st.builds(
        Generation, source=TEXT, name=TEXT, identity=st.just(IDENTITY), start=POSITIONS, shift=NUMBER
    ),
    Plan: st.builds(
        Plan, source=TEXT, generation=TEXT, identity=st.just(IDENTITY), start=POSITIONS, stop=POSITIONS, shift=NUMBER,
        tables=st.builds(TableFilter, include=st.lists(TEXT, max_size=3).map(tuple), exclude=st.just(())),
    ),
    Manifest: st.builds(
        Manifest, source=TEXT, generation=TEXT, identity=st.just(IDENTITY), start=POSITIONS, stop=POSITIONS,
        start_seqno=NUMBER, stop_seqno=NUMBER, files=st.lists(FILES, max_size=3).map(tuple),
        schemas=st.dictionaries(TEXT, SCHEMAS.map(TableSchema.as_dict), max_size=2),
        barriers=st.lists(BARRIERS, max_size=2).map(tuple), balance=st.none() | BALANCES, loader_version=TEXT,
    ),
    Published: st.builds(
        Published, source=TEXT, generation=TEXT, stop=POSITIONS, stop_seqno=NUMBER,
        tables=st.dictionaries(TEXT, st.builds(PublishedTable, snapshot=NUMBER, applied=NUMBER), max_size=3),
    ),
    RunRecord: st.builds(RunRecord, start_seqno=NUMBER),
}  # fmt: skip


@pytest.mark.parametrize("kind", list(DOCUMENTS))
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_what_is_written_is_read_back_and_written_the_same(kind: type[Document], data: st.DataObject) -> None:
    document = data.draw(DOCUMENTS[kind])
    stored = document.canonical()
    again = kind.read(stored, "key")
    assert again == document
    assert again.canonical() == stored


@settings(deadline=None, max_examples=60)
@given(DOCUMENTS[Manifest])
def test_canonical_text_is_sorted_compact_utf8(document: Document) -> None:
    stored = document.canonical()
    plain = json.loads(stored)
    assert stored == json.dumps(plain, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


def test_the_text_of_a_plan_is_what_it_always_was() -> None:
    """Stored plans are compared byte by byte: another text would be another plan."""
    plan = Plan(
        source="shop", generation="0001", identity=IDENTITY, start="binlog.000001:4", stop="binlog.000002:99", shift=0,
        tables=TableFilter(include=("shop.*",)),
    )  # fmt: skip
    assert plan.canonical().decode() == (
        '{"format":1,"generation":"0001","identity":{"kind":"mariadb","server_id":7,"uuid":"","version":"10.11.19-MariaDB"},'
        '"part_bytes":67108864,"shift":0,"skip":{"marker_tables":[],"server_ids":[]},"source":"shop","start":"binlog.000001:4",'
        '"stop":"binlog.000002:99","tables":{"exclude":[],"include":["shop.*"]},"undecodable":"error","untold":[],"update_rows":"after"}'
    )


def test_a_plan_is_named_by_its_start_and_knows_its_interval() -> None:
    plan = Plan(
        source="s", generation="0001", identity=IDENTITY, start="binlog.000054:123", stop="binlog.000055:4", shift=2,
        tables=TableFilter(include=("*.*",)),
    )  # fmt: skip
    assert (plan.start_seqno, plan.stop_seqno) == (56_000_000_000_123, 57_000_000_000_004)
    assert str(plan.interval) == "[binlog.000054:123, binlog.000055:4)"
    backwards = plan.model_copy(update={"stop": plan.start})
    with pytest.raises(DataError, match="end after its start"):
        _ = backwards.interval


@pytest.mark.parametrize("kind", list(DOCUMENTS))
@pytest.mark.parametrize(
    "stored", [b"", b"{", b"[]", b"null", b"{}", b'{"format":2}', b"\xff", b'{"format":1,"unknown":1}'], ids=repr
)
def test_anything_else_is_refused_by_key(kind: type[Document], stored: bytes) -> None:
    with pytest.raises(StagedDataError, match=f"this is no {kind.__name__.lower()} of staging format 1") as caught:
        kind.read(stored, "shop/0001/plan.json")
    assert caught.value.where == {"key": "shop/0001/plan.json"}
    assert caught.value.exit_code == 4


def test_a_document_of_a_later_format_or_with_keys_of_later_versions_is_refused() -> None:
    stored = json.loads(RunRecord(start_seqno=5).canonical())
    for change in ({"format": 2}, {"more": 1}):
        with pytest.raises(StagedDataError):
            RunRecord.read(json.dumps({**stored, **change}).encode(), "key")


def test_documents_do_not_change() -> None:
    record = RunRecord(start_seqno=5)
    with pytest.raises(ValueError, match="frozen"):
        record.start_seqno = 6  # type: ignore[misc]
