"""The last record of each key in three steps of tasks, beside a plain look at all records."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loader.errors import StagedDataError
from loader.model.table import Column, TableName, TableSchema
from loader.native_collapse import key_buckets
from loader.native_collapse.exchanged_keys import Counts, KeyCounts, KeyPart, Piece, PieceCounts, PieceSummary
from loader.native_collapse.key_buckets import (
    choose_lines,
    ignore_summary,
    index_keys,
    keep_all_columns,
    pack_only_piece,
    pack_records,
    unpack_records,
)
from loader.native_collapse.key_ends import KeyEnds
from loader.staging.documents import StagedFile

SCHEMA = TableSchema(TableName("shop", "t"), (Column("k", "int"), Column("v", "varchar", charset="utf8mb4")), ("k",))
WINDOW = AFTER, THROUGH = 3, 8
SECRET = bytes(range(16))
NONE = Counts(*(dict.fromkeys("IUD", 0) for _ in range(2)))
FOLDER = "source/0001/00000000000000000001/attempt/shop/t"
AT = "2026-01-01 00:00:00"
Record = tuple[str, int, int, int, str]
RECORDS = st.tuples(
    st.sampled_from("IUD"), st.integers(0, 10), st.integers(0, 5), st.integers(0, 6), st.sampled_from(["", "a", "é,b"])
)


def staged(folder: Path, number: int, records: Sequence[Record]) -> StagedFile:
    lines = "".join(f'{op},{seqno},{offset},{AT},,{key},"{text}"\n' for op, seqno, offset, key, text in records)
    data, ops = lines.encode(), Counter(op for op, *_ in records)
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    (folder / FOLDER / f"{number}.csv").write_bytes(data)
    return StagedFile(
        key=f"{FOLDER}/{number}.csv",
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


class Shuffled(NamedTuple):
    """What the steps give to each other, and what the last one returns.

    Attributes:
        parts: of the first step.
        numbers: of lines, from the second step.
        last: counted by the second step.
        summaries: of the pieces.
        rows: the last records.
    """

    parts: list[tuple[int, KeyPart | PieceCounts]]
    numbers: list[tuple[int, bytes | PieceCounts]]
    last: KeyCounts
    summaries: list[PieceSummary]
    rows: list[dict[str, Any]]


def shuffled(tasks: Sequence[Sequence[Record]], buckets: int) -> Shuffled:
    """Do the three steps. The first has a task for each piece, a file each; the second one for each bucket."""
    with TemporaryDirectory() as name:
        pieces = [Piece(number, [staged(Path(name), number, records)]) for number, records in enumerate(tasks)]
        root = f"file://{name}"
        parts = [part for piece in pieces for part in index_keys(root, SCHEMA, WINDOW, SECRET, buckets, piece)]
        parts.reverse()
        last = list[KeyCounts]()
        of_bucket = [[part for part in parts if part[0] == number] for number in range(buckets)]
        numbers = [some for each in of_bucket for some in choose_lines(WINDOW, last.append, each)]
        summaries, packed = list[PieceSummary](), list[bytes]()
        for piece in pieces:
            of_piece = [some for some in numbers if some[0] == piece.number]
            packed += pack_records(root, SCHEMA, ["c0"], summaries.append, keep_all_columns, of_piece)
        return Shuffled(parts, numbers, reduce(KeyCounts.plus, last), summaries, rows_of(packed))


def rows_of(packed: Iterable[bytes]) -> list[dict[str, Any]]:
    columns = ["c1", "c0", "_op", "_seqno", "_row_offset"]
    unpacked = list(unpack_records(columns, map(pa.py_buffer, packed)))
    assert all(batch.schema.names == columns for batch in unpacked)
    return [found for batch in unpacked for found in batch.to_pylist()]


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


@given(TASKS, st.integers(1, 5), st.sampled_from([1, 3, 1 << 20]))
def test_each_key_has_its_last_record_of_all_pieces(tasks: list[list[Record]], buckets: int, size: int) -> None:
    last = last_of(tasks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_buckets, "_PART_ROWS", size)
        patch.setattr(key_buckets, "_PACKED_BYTES", size)
        found = shuffled(tasks, buckets)
    assert len(found.rows) == len(last)
    assert {row["c0"]: (row["_seqno"], row["_row_offset"], row["_op"]) for row in found.rows} == last
    assert [summary.counts for summary in found.summaries] == [counts_of([records]) for records in tasks]
    counted = KeyCounts(len(last), sum(op == "D" for *_, op in last.values()))
    assert found.last == reduce(KeyCounts.plus, (summary.last for summary in found.summaries)) == counted
    lows, highs = zip(*(summary.ends for summary in found.summaries), strict=True)
    assert min((low for low in lows if low is not None), default=None) == min(last, default=None)
    assert max((high for high in highs if high is not None), default=None) == max(last, default=None)


@given(st.lists(RECORDS, max_size=12))
def test_one_task_finds_the_last_records_of_the_only_piece(records: list[Record]) -> None:
    summaries = list[PieceSummary]()
    with TemporaryDirectory() as name:
        piece = Piece(0, [staged(Path(name), number, each) for number, each in enumerate((records[:5], records[5:]))])
        packed = list(
            pack_only_piece(f"file://{name}", SCHEMA, ["c0"], WINDOW, summaries.append, keep_all_columns, piece)
        )
    last = last_of([records])
    assert {row["c0"]: (row["_seqno"], row["_row_offset"], row["_op"]) for row in rows_of(packed)} == last
    deleted = sum(op == "D" for *_, op in last.values())
    ends = KeyEnds(min(last, default=None), max(last, default=None))
    assert summaries == [PieceSummary(counts_of([records]), KeyCounts(len(last), deleted), ends)]


@given(TASKS, st.integers(1, 5))
def test_buckets_share_no_key_and_lose_none(tasks: list[list[Record]], buckets: int) -> None:
    """All records of a key are in one bucket. So each key is chosen once."""
    found = shuffled(tasks, buckets)
    hashes = [
        {part.hashes for number, part in found.parts if number == each and isinstance(part, KeyPart)}
        for each in range(buckets)
    ]
    whole = [{joined[at : at + 16] for joined in each for at in range(0, len(joined), 16)} for each in hashes]
    assert sum(map(len, whole)) == len(set().union(*whole)) == len(last_of(tasks))
    assert sorted(row["c0"] for row in found.rows) == sorted(last_of(tasks))


@given(TASKS)
def test_the_order_of_the_parts_does_not_matter(tasks: list[list[Record]]) -> None:
    """Spark may repeat a task with its parts in another order, also if two records are equally late."""
    parts = shuffled(tasks, 1).parts
    chosen = [{some for some in choose_lines(WINDOW, [].append, each) if isinstance(some[1], bytes)} for each in
              (parts, parts[::-1])]  # fmt: skip
    assert chosen[0] == chosen[1]


def test_values_are_those_of_the_last_record() -> None:
    tasks = [[("I", 5, 0, 1, "old"), ("I", 5, 1, 2, "é,b")], [("U", 6, 0, 1, "new")], [("D", 7, 0, 3, "")]]
    assert sorted((row["c0"], row["_op"], row["c1"]) for row in shuffled(tasks, 3).rows) == [
        (1, "U", "new"),
        (2, "I", "é,b"),
        (3, "D", ""),
    ]


def test_what_spark_shuffles_and_keeps_is_small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A key takes 48 bytes, once for each piece that has it. Records are kept in parts of bounded size."""
    monkeypatch.setattr(key_buckets, "_PART_ROWS", 2)
    monkeypatch.setattr(key_buckets, "_PACKED_BYTES", 100)
    records: list[Record] = [("I", 5, offset, offset // 2, "x" * 300) for offset in range(10)]
    found = shuffled([records], 1)
    sizes = [len(part.records + part.hashes) for _, part in found.parts if isinstance(part, KeyPart)]
    assert sorted(sizes) == [48, 96, 96]
    assert sorted(len(some) for _, some in found.numbers if isinstance(some, bytes)) == [4, 8, 8]
    piece = Piece(0, [staged(tmp_path, 0, records)])
    assert (
        len(
            list(pack_only_piece(f"file://{tmp_path}", SCHEMA, ["c0"], WINDOW, ignore_summary, keep_all_columns, piece))
        )
        == 5
    )


def test_a_piece_without_last_records_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[StagedFile]()
    once = key_buckets.read_verified
    monkeypatch.setattr(key_buckets, "read_verified", lambda store, files: once(store, read.extend(files) or files))
    found = shuffled([[("I", 5, 0, 1, "old")], [("U", 6, 0, 1, "new")]], 2)
    assert [file.key for file in read] == [f"{FOLDER}/{number}.csv" for number in (0, 1, 1)]
    assert [summary.last.keys for summary in found.summaries] == [0, 1]


def test_lines_that_no_manifest_counts_are_left_to_spark_sql(tmp_path: Path) -> None:
    file = staged(tmp_path, 0, [("I", 5, 0, 1, "a"), ("I", 5, 1, 2, "b")])
    fewer = file.model_copy(update={"inserts": 1})
    with pytest.raises(RuntimeError, match="left to Spark SQL: the lines are not in the format"):
        list(index_keys(f"file://{tmp_path}", SCHEMA, WINDOW, SECRET, 2, Piece(0, [fewer])))


@pytest.mark.parametrize("data", [b"", b"I,5,0", b"more\n" * 100], ids=["missing", "shorter", "longer"])
def test_changed_files_are_refused(tmp_path: Path, data: bytes) -> None:
    file = staged(tmp_path, 0, [("I", 5, 0, 1, "a")])
    if data:
        (tmp_path / file.key).write_bytes(data)
    else:
        (tmp_path / file.key).unlink()
    with pytest.raises(StagedDataError, match=r"a staged file (has changed|is missing)"):
        list(index_keys(f"file://{tmp_path}", SCHEMA, WINDOW, SECRET, 2, Piece(0, [file])))


@pytest.mark.parametrize("changed", [[("I", 5, 0, 2, "a"), ("I", 5, 1, 2, "b")], [("I", 5, 0, 1, "a")] * 3, []],
                         ids=["as many lines", "more lines", "missing"])  # fmt: skip
def test_files_that_change_between_the_steps_are_refused(tmp_path: Path, changed: list[Record]) -> None:
    """The numbers of lines would be those of other records."""
    files = [
        staged(tmp_path, 0, [("I", 5, 0, 1, "a"), ("I", 5, 1, 2, "b")]),
        staged(tmp_path, 1, [("I", 6, 0, 3, "c")]),
    ]
    root = f"file://{tmp_path}"
    numbers = list(choose_lines(WINDOW, [].append, index_keys(root, SCHEMA, WINDOW, SECRET, 1, Piece(0, files))))
    if changed:
        staged(tmp_path, 0, changed)
    else:
        (tmp_path / files[0].key).unlink()
    with pytest.raises(StagedDataError, match=r"a staged file (has changed|is missing)"):
        list(pack_records(root, SCHEMA, ["c0"], ignore_summary, keep_all_columns, numbers))


def test_a_value_that_does_not_fit_is_left_to_spark_sql() -> None:
    with pytest.raises(RuntimeError, match=r"left to Spark SQL: .*2147483648"):
        shuffled([[("I", 5, 0, 1 << 31, "a")]], 2)
