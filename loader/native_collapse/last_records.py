"""The last record of each key, for staged files that fit into the memory of this machine."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from itertools import accumulate, pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from loader.binlog.native.buffer import Bytes
from loader.model.table import TableSchema
from loader.native_collapse.arrow_columns import read_columns
from loader.native_collapse.key_index import choose
from loader.native_collapse.siphash import Words
from loader.native_collapse.staged_lines import ABSENT, OP, SEQNO, Ints, keep, scan
from loader.staging.documents import StagedFile
from loader.staging.file_verification import compare_digest, missing_error
from loader.store.base import BLOCK_BYTES, ObjectNotFound, Store

_OPS = "IUD"
_AT_ONCE = 4
"""Files that are read at the same time: of small files, opening them in a store takes most of the time."""
_HELD_BYTES = 512 * 1024 * 1024
"""Files up to this total size are kept in memory between the two passes over them."""


class NotSupportedNatively(Exception):
    """Spark SQL must collapse the records."""


class LastRecords:
    """The last record of each key with `after_seqno` < seqno <= `last_seqno`. Keys are equal if their staged bytes are.

    Attributes:
        count: the number of these records.
        all: by op, the number of all records.
        new: by op, the number of records in the range.

    Args:
        store: the store of the files.
        files: staged files of one schema.
        schema: their schema, which has a key.
        after_seqno, last_seqno: the range of seqnos, see above.
        pool: threads. The kernels release the interpreter's lock.
        lanes: the number of threads that share the keys.

    Raises:
        StagedDataError: a file is missing or changed.
        NotSupportedNatively: a line is not in the format, or a record in the range leaves out columns.
    """

    def __init__(
        self,
        store: Store,
        files: Sequence[StagedFile],
        schema: TableSchema,
        after_seqno: int,
        last_seqno: int,
        pool: Executor,
        lanes: int,
    ) -> None:
        self._store, self._schema, self.files = store, schema, files
        self._held: dict[str, Bytes] | None = {} if sum(file.bytes for file in files) <= _HELD_BYTES else None
        rows = sum(file.rows for file in files)
        records, hashes = np.empty((rows, 4), np.int64), np.empty((rows, 2), np.uint64)
        places = [slice(*ends) for ends in pairwise(accumulate((file.rows for file in files), initial=0))]
        secret = np.frombuffer(os.urandom(16), np.uint64).copy()
        for _ in pool.map(lambda file, at: self._scan(file, secret, records[at], hashes[at]), files, places):
            pass
        self.all, self.new = count_records(records, (after_seqno, last_seqno))
        chosen = np.zeros(rows, np.uint8)
        self.count = sum(
            pool.map(
                lambda lane: choose_last(records, hashes, (after_seqno, last_seqno), (lane, lanes), chosen),
                range(lanes),
            )
        )
        self._chosen = {file.key: chosen[at] for file, at in zip(files, places, strict=True)}

    def table(self, file: StagedFile) -> pa.Table:
        """Return the last records in a file: see `loader.native_collapse.arrow_columns.read_columns`.

        It may be called once per file, since that frees the file's memory.

        Raises:
            StagedDataError: the file is missing or changed.
            NotSupportedNatively: a value does not fit its column.
        """
        lines = read_verified(self._store, [file]) if self._held is None else self._held.pop(file.key)
        size = keep(lines, self._chosen[file.key])
        if size < 0:
            raise AssertionError(f"{file.key} has fewer lines than before")
        try:
            return read_columns(lines[:size], self._schema)
        except pa.ArrowInvalid as error:
            raise NotSupportedNatively(str(error)) from error

    def _scan(self, file: StagedFile, secret: Words, records: Ints, hashes: Words) -> None:
        lines = read_verified(self._store, [file])
        if not index_lines(lines, self._schema, secret, records, hashes):
            raise NotSupportedNatively(f"{file.key} is not in the format")
        if self._held is not None:
            self._held[file.key] = lines


def read_verified(store: Store, files: Sequence[StagedFile]) -> Bytes:
    """Return the lines of staged files.

    Raises:
        StagedDataError: a file is missing or changed.
    """
    lines = np.empty(sum(file.bytes for file in files), np.uint8)
    places = pairwise(accumulate((file.bytes for file in files), initial=0))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for _ in pool.map(lambda file, place: _read_verified(store, file, lines[slice(*place)]), files, places):
            pass
    return lines


def _read_verified(store: Store, file: StagedFile, lines: Bytes) -> None:
    sha256, size = hashlib.sha256(), 0
    try:
        with store.reading(file.key) as stream:
            while block := stream.read(BLOCK_BYTES):
                sha256.update(block)
                kept = block[: max(0, file.bytes - size)]
                lines[size : size + len(kept)] = np.frombuffer(kept, np.uint8)
                size += len(block)
    except ObjectNotFound:
        raise missing_error(store, file) from None
    if fault := compare_digest(file, size, sha256.hexdigest()):
        raise fault


def index_lines(lines: Bytes, schema: TableSchema, secret: Words, records: Ints, hashes: Words) -> bool:
    """Index staged lines, see `scan`. Return whether there is one for each record, and all are in the format."""
    key = np.array([column.name in schema.key for column in schema.columns], np.uint8)
    return scan(lines, key, secret, records, hashes) == len(records)


def count_records(records: Ints, window: tuple[int, int]) -> tuple[dict[str, int], dict[str, int]]:
    """Return by op the number of all records, and of those in a window: after the first seqno, up to the second.

    Raises:
        NotSupportedNatively: a record in the window leaves out columns.
    """
    ops, seqnos = records[:, OP], records[:, SEQNO]
    new = (seqnos > window[0]) & (seqnos <= window[1])
    if (records[:, ABSENT] * new).any():
        raise NotSupportedNatively("records leave columns out")
    return _by_op(ops), _by_op(ops[new])


def check_keys(records: pa.Table, key: Sequence[str]) -> None:
    """Check that every record has its key.

    Raises:
        NotSupportedNatively: a column of `key` has a NULL.
    """
    if any(records[name].null_count for name in key):
        raise NotSupportedNatively("a key has a NULL")


def _by_op(ops: NDArray[np.int64]) -> dict[str, int]:
    counts = np.bincount(ops, minlength=256)
    return {op: int(counts[ord(op)]) for op in _OPS}


def choose_last(records: Ints, hashes: Words, window: tuple[int, int], share: tuple[int, int], chosen: Bytes) -> int:
    """Flag the last record of each key in a window of seqnos, for one lane of several. Return the number of keys.

    Raises:
        NotSupportedNatively: too many keys fall into the lane.
    """
    # The lanes have equal shares of the keys, except of very few keys. The minimum size has room for these.
    slots = np.zeros(max(1024, 1 << (4 * len(records) // share[1]).bit_length()), np.uint32)
    count = choose(records, hashes, *window, np.uint64(share[0]), np.uint64(share[1]), slots, chosen)
    if count < 0:
        raise NotSupportedNatively("too many keys fall into one lane")
    return count
