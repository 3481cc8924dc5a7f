"""The files of one part appear together, hashed as they were written, or not at all."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from loader.model.table import Column, TableName, TableSchema
from loader.staging.parts import PartWriter
from loader.store.local import LocalStore

A, B = (TableSchema(TableName("shop", name), (Column("id", "int"),), ("id",)) for name in "ab")


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(f"file://{tmp_path}")


def test_each_table_has_its_file_and_its_entry(store: LocalStore) -> None:
    with PartWriter(store, "shop/0001/1", "try", "000001-000000") as writer:
        for schema, lines in ((A, b"one\n"), (B, b"two\n"), (A, b"three\n")):
            writer.write(schema, memoryview(lines))
    entry = writer.staged(A, (1, 2, 3), (7, 9))
    assert store.get(entry.key) == b"one\nthree\n"
    assert entry.key == f"shop/0001/1/try/shop/a/{A.schema_id}/part-000001-000000.csv"
    assert (entry.bytes, entry.sha256) == (10, hashlib.sha256(b"one\nthree\n").hexdigest())
    assert (entry.inserts, entry.updates, entry.deletes, entry.rows) == (1, 2, 3, 6)
    assert (entry.min_seqno, entry.max_seqno, entry.name) == (7, 9, A.name)
    assert store.get(writer.staged(B, (1, 0, 0), (7, 7)).key) == b"two\n"


def test_nothing_is_visible_before_the_end_nor_after_an_error(store: LocalStore) -> None:
    with pytest.raises(RuntimeError, match="stop here"), PartWriter(store, "f", "try", "1") as writer:
        writer.write(A, memoryview(b"one\n"))
        writer.write(B, memoryview(b"two\n"))
        assert list(store.list("f/")) == []
        raise RuntimeError("stop here")
    assert list(store.list("f/")) == []


def test_a_part_without_lines_makes_no_file(store: LocalStore) -> None:
    with PartWriter(store, "f", "try", "1"):
        pass
    assert list(store.list("f/")) == []
