"""Durable documents: one canonical text each, and nothing else is read as one."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loader.errors import DataError, StagedDataError
from loader.model.identity import Identity
from loader.model.table import Column, TableName, TableSchema
from loader.staging.chain import RunRecord
from loader.staging.document import Document
from loader.staging.documents import Barrier, Generation, Manifest, Plan, StagedFile, TableFilter
from loader.staging.entries import Balance
from loader.staging.layout import interval_folder, part_key
from loader.staging.published import Published, PublishedTable
from tests.unit.model.test_table import SCHEMAS

IDENTITY = Identity(kind="mariadb", version="10.11.19-MariaDB", server_id=7)
TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
NUMBER = st.integers(0, 2**63 - 1)
POSITIONS = st.tuples(st.integers(1, 10**7), st.integers(4, 10**12 - 1)).map(lambda p: f"binlog.{p[0]:06d}:{p[1]}")
COUNTS = ("inserts", "updates", "deletes", "bytes", "min_seqno", "max_seqno")


BARRIERS = st.builds(
    Barrier, seqno=NUMBER, position=POSITIONS, statement=TEXT, database=TEXT, sql_mode=NUMBER, mariadb=st.booleans(),
    tables=st.lists(TEXT, max_size=3).map(tuple),
)  # fmt: skip
BALANCES = st.builds(
    Balance, events=NUMBER, bytes=NUMBER, transactions=NUMBER, event_types=st.dictionaries(TEXT, NUMBER, max_size=3),
    row_events_staged=NUMBER, skipped=st.dictionaries(TEXT, NUMBER, max_size=3),
)  # fmt: skip


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    """Of one interval, with files of its schemas in its folder."""
    source, generation, start = draw(TEXT), draw(TEXT), draw(NUMBER)
    schemas = draw(st.lists(SCHEMAS, max_size=3, unique_by=lambda schema: schema.schema_id))
    files = []
    for number, schema in enumerate(schemas):
        key = part_key(interval_folder(source, generation, start), "a1", schema.name, schema.schema_id, f"1-{number}")
        names = {"schema_name": schema.name.schema, "table": schema.name.table, "schema_id": schema.schema_id}
        files.append(StagedFile(key=key, sha256="", **names, **{name: draw(NUMBER) for name in COUNTS}))
    return Manifest(
        source=source, generation=generation, identity=IDENTITY, start=draw(POSITIONS), stop=draw(POSITIONS),
        start_seqno=start, stop_seqno=draw(NUMBER), files=tuple(files),
        schemas={schema.schema_id: schema.as_dict() for schema in schemas},
        barriers=draw(st.lists(BARRIERS, max_size=2).map(tuple)), balance=draw(st.none() | BALANCES), loader_version="1",
    )  # fmt: skip


def key_of(document: Document) -> str:
    """Where the document lies; of all but manifests it does not matter."""
    if not isinstance(document, Manifest):
        return "key"
    return f"{interval_folder(document.source, document.generation, document.start_seqno)}/manifest.json"


DOCUMENTS: dict[type[Document], st.SearchStrategy[Document]] = {
    Generation: st.builds(
        Generation, source=TEXT, name=TEXT, identity=st.just(IDENTITY), start=POSITIONS, shift=NUMBER
    ),
    Plan: st.builds(
        Plan, source=TEXT, generation=TEXT, identity=st.just(IDENTITY), start=POSITIONS, stop=POSITIONS, shift=NUMBER,
        tables=st.builds(TableFilter, include=st.lists(TEXT, max_size=3).map(tuple), exclude=st.just(())),
    ),
    Manifest: manifests(),
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
    again = kind.read(stored, key_of(document))
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
    with pytest.raises(
        StagedDataError, match=f"the object is not a {kind.__name__.lower()} document of staging format 1"
    ) as caught:
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


NAME = TableName("shop", "or*ders")
SCHEMA = TableSchema(NAME, (Column("id", "int"), Column("price", "decimal", size=10, scale=2)), ("id",))
FOLDER = interval_folder("shop", "0001", 54)
PART = part_key(FOLDER, "a1", NAME, SCHEMA.schema_id, "000054-0001")
OTHER = TableName("shop", "other")


def manifest(key: str = PART, schemas: object = None, **changed: object) -> bytes:
    file = {
        "key": key, "schema_name": "shop", "table": "or*ders", "schema_id": SCHEMA.schema_id, "inserts": 1, "updates": 0,
        "deletes": 0, "bytes": 10, "sha256": "ab", "min_seqno": 55, "max_seqno": 56,
    }  # fmt: skip
    whole = {
        "source": "shop", "generation": "0001", "identity": IDENTITY.model_dump(mode="json"), "start": "binlog.000001:4",
        "stop": "binlog.000001:99", "start_seqno": 54, "stop_seqno": 99, "loader_version": "1", "files": [file | changed],
        "schemas": {SCHEMA.schema_id: SCHEMA.as_dict()} if schemas is None else schemas,
    }  # fmt: skip
    return json.dumps(whole).encode()


def test_a_manifest_as_the_loader_writes_it() -> None:
    found = Manifest.read(manifest(), f"{FOLDER}/manifest.json")
    assert Manifest.read(found.canonical(), f"{FOLDER}/manifest.json") == found
    assert found.files[0].name == NAME


@pytest.mark.parametrize(
    "key",
    [
        PART.replace("0001/", "0002/", 1),
        part_key(interval_folder("shop", "0001", 55), "a1", NAME, SCHEMA.schema_id, "000054-0001"),
        part_key(FOLDER, "a1", OTHER, SCHEMA.schema_id, "000054-0001"),
        part_key(FOLDER, "a1", NAME, "0" * 16, "000054-0001"),
        part_key(FOLDER, "*", NAME, SCHEMA.schema_id, "000054-0001"),
        part_key(FOLDER, "a1", NAME, SCHEMA.schema_id, "{000054,000055}-0001"),
        PART.replace("or!2aders", "or*ders"),
        PART.replace("a1/", "a1/../a1/"),
        PART.replace("a1/", ""),
        f"x{PART}",
        f"{PART}x",
        "",
        "/etc/passwd",
        f"{FOLDER}/plan.json",
    ],
)
def test_a_file_that_is_not_in_its_place_is_refused(key: str) -> None:
    with pytest.raises(StagedDataError, match="the loader did not write this staging document"):
        Manifest.read(manifest(key), f"{FOLDER}/manifest.json")


def test_a_manifest_that_was_moved_is_refused() -> None:
    with pytest.raises(StagedDataError, match="the loader did not write this staging document"):
        Manifest.read(manifest(), f"{interval_folder('shop', '0001', 55)}/manifest.json")


def test_a_file_that_is_named_twice_would_be_applied_twice() -> None:
    data = json.loads(manifest())
    data["files"] *= 2
    with pytest.raises(StagedDataError, match="the loader did not write this staging document") as caught:
        Manifest.read(json.dumps(data).encode(), f"{FOLDER}/manifest.json")
    assert "twice" in caught.value.why


INJECTED = SCHEMA.as_dict()
INJECTED["columns"][1]["scale"] = "0) LOCATION 's3a://elsewhere/' -- "


@pytest.mark.parametrize(
    "schemas",
    [
        {SCHEMA.schema_id: INJECTED},
        {SCHEMA.schema_id: replace(SCHEMA, key=()).as_dict()},
        {"0" * 16: SCHEMA.as_dict()},
        {SCHEMA.schema_id: replace(SCHEMA, name=OTHER).as_dict()},
        {SCHEMA.schema_id: {}},
    ],
)
def test_schemas_that_are_not_of_their_ids_are_refused(schemas: object) -> None:
    with pytest.raises(StagedDataError):
        Manifest.read(manifest(schemas=schemas), f"{FOLDER}/manifest.json")


@pytest.mark.parametrize(
    "changed", [{"inserts": "1"}, {"inserts": -1}, {"bytes": 1.5}, {"bytes": True}, {"max_seqno": 2**63}]
)
def test_numbers_are_numbers_in_their_range(changed: dict[str, object]) -> None:
    with pytest.raises(StagedDataError, match="the object is not a manifest document"):
        Manifest.read(manifest(**changed), f"{FOLDER}/manifest.json")


PLAN = Plan(
    source="s", generation="0001", identity=IDENTITY, start="binlog.000054:123", stop="binlog.000055:4", shift=2,
    tables=TableFilter(include=("*.*",)), ambiguous=(INJECTED,),
)  # fmt: skip


def test_the_schemas_in_a_plan_are_checked_too() -> None:
    with pytest.raises(StagedDataError, match="the schema of a table in a document is invalid"):
        Plan.read(PLAN.canonical(), "plan.json")


def test_a_plan_has_only_the_stored_name_of_a_field() -> None:
    stored = PLAN.canonical().replace(b'"untold":', b'"ambiguous":')
    with pytest.raises(StagedDataError, match="the object is not a plan document"):
        Plan.read(stored, "plan.json")
