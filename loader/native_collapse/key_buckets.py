"""The last record of each key on a cluster, in two steps of Spark tasks. Spark shuffles staged lines between them.

A task of the first step finds the last records of its files and puts their lines into buckets by the hash of the key.
A task of the second step gets whole buckets. It finds the last records among their lines, and converts only these.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from loader.binlog.native.buffer import Bytes
from loader.model.table import TableSchema
from loader.native_collapse.arrow_columns import read_columns
from loader.native_collapse.last_records import (
    NotSupportedNatively,
    check_keys,
    choose_last,
    count_records,
    index_lines,
    read_file,
)
from loader.native_collapse.siphash import Words
from loader.native_collapse.staged_lines import Ints, fill_buckets, keep
from loader.native_collapse.task_records import BATCH_ROWS, carried_or_left
from loader.staging.documents import StagedFile
from loader.store.registry import open_store

COUNTS = tuple(f"{age}_{op}" for age in ("all", "new") for op in "IUD")
"""What `_counts` counts, in its order: by op, all records of the files, and those in the window of seqnos."""
BUCKET_DDL = "bucket int, line_count bigint, lines binary, _counts array<bigint>"
"""The columns of `read_buckets`."""
SUMMARY_DDL = "_counts array<bigint>, keys bigint, deleted bigint, low {type}, high {type}"
"""The columns of `summarise_last_records`. The type is that of the first key column."""
_COUNTS_FIELD = pa.field("_counts", pa.list_(pa.int64()))
_BUCKET_SCHEMA = pa.schema([("bucket", pa.int32()), ("line_count", pa.int64()), ("lines", pa.binary()), _COUNTS_FIELD])

Window = tuple[int, int]
"""Two seqnos. Records after the first one, up to the second one, are in the window."""


def read_buckets(
    root: str, schema: TableSchema, window: Window, secret: bytes, buckets: int, files: Sequence[StagedFile]
) -> Iterator[pa.RecordBatch]:
    """Yield the lines of the last record of each key in staged files by bucket, then a row of counts.

    In the row of counts, the other columns are NULL, and in the other rows `_counts` is.

    Args:
        root: address of the store.
        schema: of the files, which has a key.
        window: the records that count.
        secret: 16 bytes, the same for all tasks. Nobody else can find keys that fall into one bucket.
        buckets: the number of buckets.
        files: of one schema. They are in memory together.

    Raises:
        RuntimeError: the store fails, see `carried`; or kernels cannot read the files, see `why_not_native`.
    """
    with carried_or_left():
        store = open_store(root)
        lines = np.concatenate([read_file(store, file) for file in files])
        rows = sum(file.rows for file in files)
        records, hashes = _index(lines, rows, schema, secret)
        counted = count_records(records, window)
        yield _bucket_batch(lines, _last(records, hashes, window), hashes, buckets)
        counts = [*counted[0].values(), *counted[1].values()]
        yield _row_of_counts(counts)


def read_last_records(
    schema: TableSchema, key: Sequence[str], window: Window, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the last record of each key in some buckets, with the columns of `read_columns`.

    Args:
        schema: of the files.
        key: the key columns in the records.
        window: as for the buckets.
        batches: all batches of these buckets, from all tasks of the first step, in any order.

    Raises:
        RuntimeError: kernels cannot read the lines, see `why_not_native`.
    """
    with carried_or_left():
        records, _ = _last_records(schema, key, window, batches)
        yield from records.to_batches(max_chunksize=BATCH_ROWS)


def summarise_last_records(
    schema: TableSchema, key: Sequence[str], window: Window, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield one row about what `read_last_records` yields, with the columns of SUMMARY_DDL.

    `_counts` are the sums of the rows of counts among the batches, `keys` the number of records, `deleted` the number
    of those whose op is D, and `low` and `high` the ends of the first key column, or NULL.
    """
    with carried_or_left():
        records, counts = _last_records(schema, key, window, batches)
        ends = pc.min_max(records[key[0]])
        row = {
            "_counts": pa.array([counts], pa.list_(pa.int64())),
            "keys": pa.array([len(records)]),
            "deleted": pa.array([pc.sum(pc.equal(records["_op"], "D")).as_py() or 0]),
            "low": _of_one(ends["min"]),
            "high": _of_one(ends["max"]),
        }
        yield pa.RecordBatch.from_pydict(row)


def _of_one(value: pa.Scalar) -> pa.Array:
    """Return an array of one value, also of values that Python does not have, such as dates of the year 0."""
    return pa.repeat(value, 1)


def _last_records(
    schema: TableSchema, key: Sequence[str], window: Window, batches: Iterable[pa.RecordBatch]
) -> tuple[pa.Table, list[int]]:
    """Return the last records of the buckets, and the sums of their rows of counts."""
    pieces, rows, counts = list[bytes](), 0, np.zeros(len(COUNTS), np.int64)
    for batch in batches:
        pieces += batch["lines"].drop_null().to_pylist()
        rows += sum(batch["line_count"].drop_null().to_pylist())
        counts += np.array(batch["_counts"].drop_null().to_pylist(), np.int64).reshape(-1, len(COUNTS)).sum(axis=0)
    lines = np.frombuffer(bytearray().join(pieces), np.uint8)
    records, hashes = _index(lines, rows, schema, os.urandom(16))
    size = keep(lines, _last(records, hashes, window))
    try:
        found = read_columns(lines[:size], schema)
    except pa.ArrowInvalid as error:
        raise NotSupportedNatively(str(error)) from error
    check_keys(found, key)
    return found, counts.tolist()


def _index(lines: Bytes, rows: int, schema: TableSchema, secret: bytes) -> tuple[Ints, Words]:
    records, hashes = np.empty((rows, 4), np.int64), np.empty((rows, 2), np.uint64)
    if not index_lines(lines, schema, np.frombuffer(secret, np.uint64).copy(), records, hashes):
        raise NotSupportedNatively("the lines are not in the format")
    return records, hashes


def _last(records: Ints, hashes: Words, window: Window) -> Bytes:
    chosen = np.zeros(len(records), np.uint8)
    choose_last(records, hashes, window, (0, 1), chosen)
    return chosen


def _bucket_batch(lines: Bytes, wanted: Bytes, hashes: Words, buckets: int) -> pa.RecordBatch:
    bounds, rows = np.zeros(buckets + 1, np.int32), np.zeros(buckets, np.int64)
    out = np.empty(len(lines), np.uint8)
    size = fill_buckets(lines, wanted, hashes, bounds, rows, out)
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(out[:size])]
    columns = [
        pa.array(np.arange(buckets, dtype=np.int32)),
        pa.array(rows),
        pa.Array.from_buffers(pa.binary(), buckets, buffers),
        pa.nulls(buckets, _COUNTS_FIELD.type),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_BUCKET_SCHEMA)


def _row_of_counts(counts: list[int]) -> pa.RecordBatch:
    nulls = [pa.nulls(1, field.type) for field in _BUCKET_SCHEMA][:-1]
    return pa.RecordBatch.from_arrays([*nulls, pa.array([counts], _COUNTS_FIELD.type)], schema=_BUCKET_SCHEMA)
