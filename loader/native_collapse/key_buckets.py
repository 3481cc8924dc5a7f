"""The last record of each key on a cluster, in two steps of Spark tasks. Spark shuffles staged lines between them.

A task of the first step finds the last records of its files and puts their lines into buckets by the hash of the key.
A task of the second step gets whole buckets. It finds the last records among their lines, converts only these, and
packs them as Arrow streams, which Spark can keep without conversion to its own rows.
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
    read_files,
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
PACKED_DDL = "_counts array<bigint>, keys bigint, deleted bigint, low {type}, high {type}, records binary"
"""The columns of `pack_last_records`. The type is that of the first key column."""
_PART_BYTES = 8 * 1024 * 1024
"""Most bytes of the lines or records in a row of Spark, unless a single one is larger."""
_NEWLINE = ord("\n")
_COUNTS_FIELD = pa.field("_counts", pa.list_(pa.int64()))
_BUCKET_SCHEMA = pa.schema([("bucket", pa.int32()), ("line_count", pa.int64()), ("lines", pa.binary()), _COUNTS_FIELD])

Window = tuple[int, int]
"""Two seqnos. Records after the first one, up to the second one, are in the window."""


def read_buckets(
    root: str, schema: TableSchema, window: Window, secret: bytes, buckets: Sequence[int], files: Sequence[StagedFile]
) -> Iterator[pa.RecordBatch]:
    """Yield the lines of the last record of each key in staged files by bucket, then a row of counts.

    In the row of counts, the other columns are NULL, and in the other rows `_counts` is.

    Args:
        root: address of the store.
        schema: of the files, which has a key.
        window: the records that count.
        secret: 16 bytes, the same for all tasks. Nobody else can find keys that fall into one bucket.
        buckets: the numbers of the buckets.
        files: of one schema. They are in memory together.

    Raises:
        RuntimeError: the store fails, see `carried`; or kernels cannot read the files, see `why_not_native`.
    """
    with carried_or_left():
        lines = read_files(open_store(root), files)
        rows = sum(file.rows for file in files)
        records, hashes = _index(lines, rows, schema, secret)
        counted = count_records(records, window)
        wanted = _last(records, hashes, window)
        for part, places in _parts(lines):
            yield _bucket_batch(part, wanted[places], hashes[places], buckets)
        yield _row_of_counts([*counted[0].values(), *counted[1].values()])


def pack_last_records(
    schema: TableSchema, key: Sequence[str], window: Window, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the last record of each key in some buckets, packed, and a summary of them in the first row.

    The columns are those of PACKED_DDL. `_counts` are the sums of the rows of counts among the batches, `keys` the
    number of records, `deleted` the number of those whose op is D, and `low` and `high` the ends of the first key
    column, or NULL. In the other rows only `records` is not NULL.

    Args:
        schema: of the files.
        key: the key columns in the records.
        window: as for the buckets.
        batches: all batches of these buckets, from all tasks of the first step, in any order.

    Raises:
        RuntimeError: kernels cannot read the lines, see `why_not_native`.
    """
    with carried_or_left():
        lines, rows, counts = _joined(batches)
        records = _last_records(lines, rows, schema, key, window)
        ends = pc.min_max(records[key[0]])
        summary = pa.RecordBatch.from_pydict(
            {
                "_counts": pa.array([counts], _COUNTS_FIELD.type),
                "keys": pa.array([len(records)]),
                "deleted": pa.array([pc.sum(pc.equal(records["_op"], "D")).as_py() or 0]),
                "low": pa.repeat(ends["min"], 1),  # also values that Python does not have, such as dates of the year 0
                "high": pa.repeat(ends["max"], 1),
                "records": pa.nulls(1, pa.binary()),
            }
        )
        yield summary
        for batch in records.to_batches(max_chunksize=_rows_of_part(records)):
            nulls = [pa.nulls(1, field.type) for field in summary.schema][:-1]
            packed = pa.array([_packed(batch)], pa.binary())
            yield pa.RecordBatch.from_arrays([*nulls, packed], schema=summary.schema)


def unpack_records(columns: Sequence[str], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield records that `pack_last_records` packed.

    Args:
        columns: of the records.
        batches: their column is `records`.
    """
    for batch in batches:
        for packed in batch["records"].drop_null():
            with pa.ipc.open_stream(packed.as_buffer()) as stream:
                yield from (found.select(columns) for found in stream)


def _packed(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


def _joined(batches: Iterable[pa.RecordBatch]) -> tuple[Bytes, int, list[int]]:
    """Return all lines of buckets, their number, and the sums of the rows of counts."""
    pieces, rows, counts = list[bytes](), 0, np.zeros(len(COUNTS), np.int64)
    for batch in batches:
        pieces += batch["lines"].drop_null().to_pylist()
        rows += sum(batch["line_count"].drop_null().to_pylist())
        counts += np.array(batch["_counts"].drop_null().to_pylist(), np.int64).reshape(-1, len(COUNTS)).sum(axis=0)
    return np.frombuffer(bytearray().join(pieces), np.uint8), rows, counts.tolist()


def _last_records(lines: Bytes, rows: int, schema: TableSchema, key: Sequence[str], window: Window) -> pa.Table:
    """Return the last record of each key, with the columns of `read_columns`. The lines are overwritten."""
    records, hashes = _index(lines, rows, schema, os.urandom(16))
    size = _checked(keep(lines, _last(records, hashes, window)))
    try:
        found = read_columns(lines[:size], schema)
    except pa.ArrowInvalid as error:
        raise NotSupportedNatively(str(error)) from error
    check_keys(found, key)
    return found


def _index(lines: Bytes, rows: int, schema: TableSchema, secret: bytes) -> tuple[Ints, Words]:
    records, hashes = np.empty((rows, 4), np.int64), np.empty((rows, 2), np.uint64)
    if not index_lines(lines, schema, np.frombuffer(secret, np.uint64).copy(), records, hashes):
        raise NotSupportedNatively("the lines are not in the format")
    return records, hashes


def _last(records: Ints, hashes: Words, window: Window) -> Bytes:
    chosen = np.zeros(len(records), np.uint8)
    choose_last(records, hashes, window, (0, 1), chosen)
    return chosen


def _checked(size: int) -> int:
    if size < 0:
        raise AssertionError("lines were indexed that are not there")
    return size


def _parts(lines: Bytes) -> Iterator[tuple[Bytes, slice]]:
    """Yield whole lines of bounded size, and their places among all lines."""
    begin, first = 0, 0
    while begin < len(lines):
        newlines = np.flatnonzero(lines[begin : begin + _PART_BYTES] == _NEWLINE)
        last = newlines[-1] if len(newlines) else np.argmax(lines[begin:] == _NEWLINE)  # a line can be longer
        end, count = begin + int(last) + 1, max(1, len(newlines))
        yield lines[begin:end], slice(first, first + count)
        begin, first = end, first + count


def _rows_of_part(records: pa.Table) -> int:
    return max(1, min(BATCH_ROWS, _PART_BYTES * len(records) // max(1, int(records.nbytes))))


def _bucket_batch(lines: Bytes, wanted: Bytes, hashes: Words, buckets: Sequence[int]) -> pa.RecordBatch:
    bounds, rows = np.zeros(len(buckets) + 1, np.int32), np.zeros(len(buckets), np.int64)
    out = np.empty(len(lines), np.uint8)
    size = _checked(fill_buckets(lines, wanted, hashes, bounds, rows, out))
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(out[:size])]
    columns = [
        pa.array(buckets, pa.int32()),
        pa.array(rows),
        pa.Array.from_buffers(pa.binary(), len(buckets), buffers),
        pa.nulls(len(buckets), _COUNTS_FIELD.type),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_BUCKET_SCHEMA)


def _row_of_counts(counts: list[int]) -> pa.RecordBatch:
    nulls = [pa.nulls(1, field.type) for field in _BUCKET_SCHEMA][:-1]
    return pa.RecordBatch.from_arrays([*nulls, pa.array([counts], _COUNTS_FIELD.type)], schema=_BUCKET_SCHEMA)
