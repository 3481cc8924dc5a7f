"""The last record of each key on a cluster, in three steps of Spark tasks. Spark shuffles hashes of keys, no records.

A task of the first step indexes a piece: some staged files. It puts the hashes of its keys and the numbers of
the lines with their last records into buckets by the hash. A task of the second step gets whole buckets, and finds the
last record of each key among all pieces. A task of the third step gets the numbers of these lines in a piece. It reads
the piece again, converts only these lines, and packs all or some of their columns as Arrow streams. It can also write
the records elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from operator import attrgetter

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from loader.binlog.native.buffer import Bytes
from loader.model.table import TableSchema
from loader.native_collapse.arrow_columns import read_columns
from loader.native_collapse.exchanged_keys import (
    Counts,
    KeyCounts,
    KeyPart,
    LineNumbers,
    Piece,
    PieceCounts,
    PieceSummary,
    Window,
)
from loader.native_collapse.key_ends import count_deleted, key_ends
from loader.native_collapse.last_records import (
    NotSupportedNatively,
    choose_last,
    count_records,
    index_lines,
    read_verified,
)
from loader.native_collapse.siphash import Words
from loader.native_collapse.staged_lines import ABSENT, HIGH, OP, Ints, keep
from loader.native_collapse.task_records import BATCH_ROWS, report_unsupported
from loader.store.registry import open_store

_PART_ROWS = 128 * 1024
"""Most records of a part. Each takes 48 bytes."""
_PACKED_BYTES = 8 * 1024 * 1024
"""Bytes of records of average size that Spark keeps as one object."""


def index_keys(
    root: str, schema: TableSchema, window: Window, secret: bytes, buckets: int, piece: Piece
) -> Iterator[tuple[int, KeyPart | PieceCounts]]:
    """Yield the last record of each key of a piece, in parts with the number of their bucket, and the piece's counts.

    Args:
        root: address of the store.
        schema: of the files, which has a key.
        window: the records that count.
        secret: 16 bytes, the same for all tasks. Nobody else can find keys that fall into one bucket.
        buckets: their number.
        piece: what to read.

    Raises:
        StagedDataError: a file is missing or changed.
        RuntimeError: kernels cannot read it, see `why_not_native`.
    """
    with report_unsupported():
        records, hashes = _index(read_verified(open_store(root), piece.files), piece, schema, secret)
        yield piece.number % buckets, PieceCounts(piece, Counts(*count_records(records, window)))
        last = np.flatnonzero(_last(records, hashes, window))
        records[:, ABSENT] = np.arange(len(records))
        for bucket, some in _by_bucket(last, hashes, buckets):
            yield bucket, KeyPart(piece.number, records[some].tobytes(), hashes[some].tobytes())


def choose_lines(
    window: Window, report: Callable[[KeyCounts], None], parts: Iterable[tuple[int, KeyPart | PieceCounts]]
) -> Iterator[tuple[int, LineNumbers | PieceCounts]]:
    """Yield the numbers of the lines with the last record of each key in some buckets, with the number of their piece.

    The counts of pieces are passed on.

    Args:
        window: as for `index_keys`.
        report: gets the numbers of last records.
        parts: all parts of these buckets, from all tasks of the first step, in any order.

    Raises:
        RuntimeError: kernels cannot find the last records, see `why_not_native`.
    """
    with report_unsupported():
        found = list[KeyPart]()
        for _, part in parts:
            if isinstance(part, KeyPart):
                found.append(part)
            else:
                yield part.piece.number, part
        # A repeated task must choose the same lines, in whatever order Spark gives it the parts.
        found.sort(key=attrgetter("piece"))
        records = np.frombuffer(bytearray().join(part.records for part in found), np.int64).reshape(-1, 4)
        hashes = np.frombuffer(bytearray().join(part.hashes for part in found), np.uint64).reshape(-1, 2)
        chosen = _last(records, hashes, window)
        last = records[chosen == 1, OP]
        report(KeyCounts(len(last), int(np.count_nonzero(last == ord("D")))))
        begin = 0
        for part in found:
            end = begin + len(part.records) // records.strides[0]
            numbers = records[begin:end, ABSENT][chosen[begin:end] == 1]
            begin = end
            yield part.piece, numbers.astype(np.uint32).tobytes()


def pack_records(
    root: str,
    schema: TableSchema,
    key: Sequence[str],
    report: Callable[[PieceSummary], None],
    take: Callable[[int, pa.Table], pa.Table],
    numbers: Iterable[tuple[int, LineNumbers | PieceCounts]],
) -> Iterator[bytes]:
    """Yield the last records in one piece, packed.

    Args:
        root: address of the store.
        schema: of the files.
        key: the key columns in the records.
        report: gets a summary of the records.
        take: gets the number of the piece and the records. Returns the records with the columns to pack.
        numbers: of lines of the piece, from all tasks of the second step, in any order.

    Raises:
        StagedDataError: a file is missing or changed.
        RuntimeError: kernels cannot read it, see `why_not_native`.
    """
    with report_unsupported():
        found = [each for _, each in numbers]
        (counted,) = (each for each in found if isinstance(each, PieceCounts))
        wanted = np.zeros(counted.piece.rows, np.uint8)
        for each in found:
            if isinstance(each, bytes):
                wanted[np.frombuffer(each, np.uint32)] = 1
        # Verified again: the numbers are those of other lines if the files have changed.
        files = counted.piece.files if wanted.any() else ()
        records = _read_records(read_verified(open_store(root), files), wanted, schema)
        report(_summary(records, key, counted.counts))
        yield from _packed(take(counted.piece.number, records))


def pack_only_piece(
    root: str,
    schema: TableSchema,
    key: Sequence[str],
    window: Window,
    report: Callable[[PieceSummary], None],
    take: Callable[[int, pa.Table], pa.Table],
    piece: Piece,
) -> Iterator[bytes]:
    """Yield the last records of the only piece, packed. All steps are one task.

    Args:
        root: address of the store.
        schema: of the files.
        key: the key columns in the records.
        window: the records that count.
        report: gets a summary of the records.
        take: as for `pack_records`.
        piece: what to read.

    Raises:
        StagedDataError: a file is missing or changed.
        RuntimeError: kernels cannot read it, see `why_not_native`.
    """
    with report_unsupported():
        counts, records = _read_only_piece(root, schema, window, piece)
        report(_summary(records, key, counts))
        yield from _packed(take(piece.number, records))


def keep_all_columns(_: int, records: pa.Table) -> pa.Table:
    """Return the records, as `take` of `pack_records`."""
    return records


def ignore_summary(_: PieceSummary) -> None:
    """Do nothing, as `report` of `pack_records`."""


def unpack_records(columns: Sequence[str], packed: Iterable[pa.Buffer]) -> Iterator[pa.RecordBatch]:
    """Yield records that `pack_records` packed, with some of their columns."""
    for records in packed:
        with pa.ipc.open_stream(records) as stream:
            yield from (found.select(columns) for found in stream)


def _read_only_piece(root: str, schema: TableSchema, window: Window, piece: Piece) -> tuple[Counts, pa.Table]:
    """Return the numbers of all records, and the last records."""
    lines = read_verified(open_store(root), piece.files)
    records, hashes = _index(lines, piece, schema, os.urandom(16))
    return Counts(*count_records(records, window)), _read_records(lines, _last(records, hashes, window), schema)


def _read_records(lines: Bytes, wanted: Bytes, schema: TableSchema) -> pa.Table:
    """Return the records in the flagged lines. The lines are overwritten."""
    size = keep(lines, wanted) if wanted.any() else 0
    if size < 0:
        raise AssertionError("the files have fewer lines than before")
    try:
        return read_columns(lines[:size], schema)
    except pa.ArrowInvalid as error:
        raise NotSupportedNatively(str(error)) from error


def _summary(records: pa.Table, key: Sequence[str], counts: Counts) -> PieceSummary:
    return PieceSummary(counts, KeyCounts(len(records), count_deleted(records)), key_ends(records, key))


def _packed(records: pa.Table) -> Iterator[bytes]:
    for batch in records.to_batches(max_chunksize=_rows_of_part(records)):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        yield bytes(sink.getvalue())


def _index(lines: Bytes, piece: Piece, schema: TableSchema, secret: bytes) -> tuple[Ints, Words]:
    records, hashes = np.empty((piece.rows, 4), np.int64), np.empty((piece.rows, 2), np.uint64)
    if not index_lines(lines, schema, np.frombuffer(secret, np.uint64).copy(), records, hashes):
        raise NotSupportedNatively("the lines are not in the format")
    return records, hashes


def _last(records: Ints, hashes: Words, window: Window) -> Bytes:
    chosen = np.zeros(len(records), np.uint8)
    choose_last(records, hashes, window, (0, 1), chosen)
    return chosen


def _by_bucket(lines: NDArray[np.int64], hashes: Words, buckets: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield the numbers of lines of each bucket, in parts of bounded size."""
    bucket = (hashes[lines, HIGH] % np.uint64(buckets)).astype(np.int64)
    order = np.argsort(bucket, kind="stable")
    ends = np.cumsum(np.bincount(bucket, minlength=buckets)).tolist()
    for number, (begin, end) in enumerate(pairwise([0, *ends])):
        for first in range(begin, end, _PART_ROWS):
            yield number, lines[order[first : min(first + _PART_ROWS, end)]]


def _rows_of_part(records: pa.Table) -> int:
    return max(1, min(BATCH_ROWS, _PACKED_BYTES * len(records) // max(1, int(records.nbytes))))
