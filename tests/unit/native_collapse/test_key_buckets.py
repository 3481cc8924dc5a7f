"""The last record of each key in two steps of tasks, beside a plain look at all records."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loader.model.table import Column, TableName, TableSchema
from loader.native_collapse import key_buckets
from loader.native_collapse.key_buckets import (
    BucketPart,
    BucketSummary,
    Counts,
    pack_last_records,
    read_buckets,
    unpack_records,
)
from loader.native_collapse.key_ends import KeyEnds
from loader.native_collapse.staged_lines import fill_buckets
from loader.staging.documents import StagedFile

SCHEMA = TableSchema(TableName("shop", "t"), (Column("k", "int"), Column("v", "varchar", charset="utf8mb4")), ("k",))
WINDOW = AFTER, THROUGH = 3, 8
SECRET = bytes(range(16))
NONE = Counts(*(dict.fromkeys("IUD", 0) for _ in range(2)))
AT = "2026-01-01 00:00:00"
Record = tuple[str, int, int, int, str]
RECORDS = st.tuples(
    st.sampled_from("IUD"), st.integers(0, 10), st.integers(0, 5), st.integers(0, 6), st.sampled_from(["", "a", "é,b"])
)


def staged(folder: Path, number: int, records: Sequence[Record]) -> StagedFile:
    lines = "".join(f'{op},{seqno},{offset},{AT},,{key},"{text}"\n' for op, seqno, offset, key, text in records)
    data, ops = lines.encode(), Counter(op for op, *_ in records)
    (folder / f"{number}.csv").write_bytes(data)
    return StagedFile(
        key=f"{number}.csv",
        schema_name="shop",
        table="t",
        schema_id=SCHEMA.schema_id,
        inserts=ops["I"],
        updates=ops["U"],
        deletes=ops["D"],
        bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        min_seqno=0,
        max_seqno=10,
    )


def buckets_of(tasks: Sequence[Sequence[Record]], buckets: int) -> list[tuple[int, BucketPart]]:
    """What the tasks of the first step return, one file each."""
    with TemporaryDirectory() as name:
        files = [staged(Path(name), number, records) for number, records in enumerate(tasks)]
        root = f"file://{name}"
        return [part for file in files for part in read_buckets(root, SCHEMA, WINDOW, SECRET, buckets, [file])]


def packed(parts: Iterable[tuple[int, BucketPart]]) -> tuple[BucketSummary, list[dict[str, Any]]]:
    """Return the summary of a partition and its records."""
    reports = list[BucketSummary]()
    records = list(pack_last_records(SCHEMA, ["c0"], WINDOW, reports.append, parts))
    (summary,) = reports
    columns = ["c1", "c0", "_op", "_seqno", "_row_offset"]
    unpacked = list(unpack_records(columns, map(pa.py_buffer, records)))
    assert all(batch.schema.names == columns for batch in unpacked)
    return summary, [found for batch in unpacked for found in batch.to_pylist()]


def counts_of(tasks: Sequence[Sequence[Record]]) -> Counts:
    every = Counter(op for records in tasks for op, *_ in records)
    new = Counter(op for records in tasks for op, seqno, *_ in records if AFTER < seqno <= THROUGH)
    return Counts(*({op: found[op] for op in "IUD"} for found in (every, new)))


def last_of(tasks: Sequence[Sequence[Record]]) -> dict[int, tuple[int, int, str]]:
    by_key: dict[int, list[tuple[int, int, str]]] = {}
    for op, seqno, offset, key, _ in (record for records in tasks for record in records):
        if AFTER < seqno <= THROUGH:
            by_key.setdefault(key, []).append((seqno, offset, op))
    return {key: max(found) for key, found in by_key.items()}


TASKS = st.lists(st.lists(RECORDS, max_size=12), min_size=1, max_size=4)


@given(TASKS, st.integers(1, 5), st.sampled_from([1, 100, 1 << 20]))
def test_each_key_has_its_last_record_of_all_tasks(tasks: list[list[Record]], buckets: int, size: int) -> None:
    last = last_of(tasks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_buckets, "_PART_BYTES", size)
        summary, rows = packed(reversed(buckets_of(tasks, buckets)))
    assert len(rows) == len(last)
    assert {row["c0"]: (row["_seqno"], row["_row_offset"], row["_op"]) for row in rows} == last
    ends = KeyEnds(min(last, default=None), max(last, default=None))
    assert summary == BucketSummary(counts_of(tasks), len(last), sum(op == "D" for *_, op in last.values()), ends)


@given(TASKS, st.integers(1, 5))
def test_buckets_share_no_key_and_lose_none(tasks: list[list[Record]], buckets: int) -> None:
    """A partition gets any buckets whole, and the counts are in one of them."""
    found = buckets_of(tasks, buckets)
    parts = [packed(pair for pair in found if pair[0] == each) for each in range(buckets)]
    assert sorted(row["c0"] for _, rows in parts for row in rows) == sorted(last_of(tasks))
    assert [summary.counts for summary, _ in parts] == [counts_of(tasks), *[NONE] * (buckets - 1)]


def test_values_are_those_of_the_last_record() -> None:
    tasks = [[("I", 5, 0, 1, "old"), ("I", 5, 1, 2, "é,b")], [("U", 6, 0, 1, "new")], [("D", 7, 0, 3, "")]]
    _, rows = packed(buckets_of(tasks, 3))
    assert sorted((row["c0"], row["_op"], row["c1"]) for row in rows) == [
        (1, "U", "new"),
        (2, "I", "é,b"),
        (3, "D", ""),
    ]


def test_what_spark_shuffles_and_keeps_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_buckets, "_PART_BYTES", 100)
    tasks = [[("I", 5, offset, offset, "x" * size) for offset, size in enumerate((1, 300, 2, 3, 4, 5))]]
    found = buckets_of(tasks, 1)
    assert [len(part.lines) for _, part in found] == [33, 332, 69, 73, 0]
    assert len(list(pack_last_records(SCHEMA, ["c0"], WINDOW, lambda _: None, found))) == 6


def test_a_partition_without_rows_is_empty() -> None:
    assert packed([]) == (BucketSummary(NONE, 0, 0, KeyEnds(None, None)), [])


def test_lines_that_no_manifest_counts_are_left_to_spark_sql(tmp_path: Path) -> None:
    file = staged(tmp_path, 0, [("I", 5, 0, 1, "a"), ("I", 5, 1, 2, "b")])
    fewer = file.model_copy(update={"inserts": 1})
    with pytest.raises(RuntimeError, match="left to Spark SQL: the lines are not in the format"):
        list(read_buckets(f"file://{tmp_path}", SCHEMA, WINDOW, SECRET, 2, [fewer]))


def test_a_value_that_does_not_fit_is_left_to_spark_sql() -> None:
    with pytest.raises(RuntimeError, match=r"left to Spark SQL: .*2147483648"):
        packed(buckets_of([[("I", 5, 0, 1 << 31, "a")]], 2))


def test_lines_that_are_missing_are_noticed() -> None:
    bounds, rows = np.zeros(2, np.int32), np.zeros(1, np.int64)
    lines, hashes = np.frombuffer(b"I\nU\n", np.uint8).copy(), np.zeros((3, 2), np.uint64)
    assert fill_buckets(lines, np.ones(3, np.uint8), hashes, bounds, rows, lines.copy()) == -1
