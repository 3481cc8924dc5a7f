"""The last record of each key on a cluster, in two steps of Spark tasks. Spark shuffles staged lines between them.

A task of the first step finds the last records of its files and puts their lines into buckets by the hash of the key.
A task of the second step gets whole buckets. It finds the last records among their lines, converts only these, and
packs them as Arrow streams. Spark shuffles and keeps bytes, without conversion to its own rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from loader.binlog.native.buffer import Bytes
from loader.model.table import TableSchema
from loader.native_collapse.arrow_columns import read_columns
from loader.native_collapse.key_ends import KeyEnds, count_deleted, key_ends
from loader.native_collapse.last_records import (
    NotSupportedNatively,
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

_PART_BYTES = 8 * 1024 * 1024
"""Most bytes of the lines or records that Spark handles as one object, unless a single one is larger."""
_NEWLINE = ord("\n")

Window = tuple[int, int]
"""Two seqnos. Records after the first one, up to the second one, are in the window."""


class Counts(NamedTuple):
    """Numbers of records by op: of all records of some files, and of those in the window of seqnos."""

    all: dict[str, int]
    new: dict[str, int]

    def plus(self, other: Counts) -> Counts:
        """Return the sums."""
        return Counts(*({op: ours[op] + theirs[op] for op in ours} for ours, theirs in zip(self, other, strict=True)))


class BucketPart(NamedTuple):
    """Lines of one bucket from one task.

    Attributes:
        rows: the number of lines.
        lines: the lines.
        counts: of the task's files; None in all parts of a task but one.
    """

    rows: int
    lines: bytes
    counts: Counts | None = None


class BucketSummary(NamedTuple):
    """What the last records in some buckets are.

    Attributes:
        counts: the sum of the counts among the parts.
        keys: the number of records.
        deleted: the number of records whose op is D.
        ends: of the first key column.
    """

    counts: Counts
    keys: int
    deleted: int
    ends: KeyEnds


def read_buckets(
    root: str, schema: TableSchema, window: Window, secret: bytes, buckets: int, files: Sequence[StagedFile]
) -> Iterator[tuple[int, BucketPart]]:
    """Yield the lines of the last record of each key in staged files, each part with the number of its bucket.

    Args:
        root: address of the store.
        schema: of the files, which has a key.
        window: the records that count.
        secret: 16 bytes, the same for all tasks. Nobody else can find keys that fall into one bucket.
        buckets: their number.
        files: of one schema. They are in memory together.

    Raises:
        RuntimeError: the store fails, see `carried`; or kernels cannot read the files, see `why_not_native`.
    """
    with carried_or_left():
        lines = read_files(open_store(root), files)
        rows = sum(file.rows for file in files)
        records, hashes = _index(lines, rows, schema, secret)
        counted = Counts(*count_records(records, window))
        wanted = _last(records, hashes, window)
        for part, places in _parts(lines):
            yield from _bucket_parts(part, wanted[places], hashes[places], buckets)
        yield 0, BucketPart(0, b"", counted)


def pack_last_records(
    schema: TableSchema,
    key: Sequence[str],
    window: Window,
    report: Callable[[BucketSummary], None],
    parts: Iterable[tuple[int, BucketPart]],
) -> Iterator[bytes]:
    """Yield the last record of each key in some buckets, packed.

    Args:
        schema: of the files.
        key: the key columns in the records.
        window: as for the buckets.
        report: gets a summary of the records.
        parts: all parts of these buckets, from all tasks of the first step, in any order.

    Raises:
        RuntimeError: kernels cannot read the lines, see `why_not_native`.
    """
    with carried_or_left():
        lines, rows, counts = _joined(parts)
        records = _last_records(lines, rows, schema, window)
        report(BucketSummary(counts, len(records), count_deleted(records), key_ends(records, key)))
        for batch in records.to_batches(max_chunksize=_rows_of_part(records)):
            yield _packed(batch)


def unpack_records(columns: Sequence[str], packed: Iterable[pa.Buffer]) -> Iterator[pa.RecordBatch]:
    """Yield records that `pack_last_records` packed, with some of their columns."""
    for records in packed:
        with pa.ipc.open_stream(records) as stream:
            yield from (found.select(columns) for found in stream)


def _packed(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


def _joined(parts: Iterable[tuple[int, BucketPart]]) -> tuple[Bytes, int, Counts]:
    """Return all lines of buckets, their number, and the sum of the counts."""
    pieces, rows, counts = list[bytes](), 0, Counts(*(dict.fromkeys("IUD", 0) for _ in range(2)))
    for _, part in parts:
        pieces.append(part.lines)
        rows += part.rows
        counts = counts.plus(part.counts) if part.counts else counts
    return np.frombuffer(bytearray().join(pieces), np.uint8), rows, counts


def _last_records(lines: Bytes, rows: int, schema: TableSchema, window: Window) -> pa.Table:
    """Return the last record of each key, with the columns of `read_columns`. The lines are overwritten."""
    records, hashes = _index(lines, rows, schema, os.urandom(16))
    size = _checked(keep(lines, _last(records, hashes, window)))
    try:
        return read_columns(lines[:size], schema)
    except pa.ArrowInvalid as error:
        raise NotSupportedNatively(str(error)) from error


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


def _bucket_parts(lines: Bytes, wanted: Bytes, hashes: Words, buckets: int) -> Iterator[tuple[int, BucketPart]]:
    bounds, rows = np.zeros(buckets + 1, np.int32), np.zeros(buckets, np.int64)
    out = np.empty(len(lines), np.uint8)
    _checked(fill_buckets(lines, wanted, hashes, bounds, rows, out))
    for bucket in np.flatnonzero(rows).tolist():
        yield bucket, BucketPart(int(rows[bucket]), out[bounds[bucket] : bounds[bucket + 1]].tobytes())
