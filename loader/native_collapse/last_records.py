"""The last record of each key, for staged files that fit into the memory of this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Executor
from itertools import accumulate, pairwise

import numpy as np
import pyarrow as pa

from loader.binlog.native.buffer import Bytes
from loader.model.table import TableSchema
from loader.native_collapse.arrow_columns import read_columns
from loader.native_collapse.key_index import choose
from loader.native_collapse.siphash import Words
from loader.native_collapse.staged_lines import ABSENT, OP, SEQNO, Ints, keep, scan
from loader.staging.documents import StagedFile
from loader.store.base import BLOCK_BYTES, Store

_OPS = "IUD"
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
        new = (records[:, SEQNO] > after_seqno) & (records[:, SEQNO] <= last_seqno)
        if records[new, ABSENT].any():
            raise NotSupportedNatively("records leave columns out")
        self.all, self.new = _by_op(records), _by_op(records[new])
        chosen = np.zeros(rows, np.uint8)
        self.count = sum(
            pool.map(
                lambda lane: _choose(records, hashes, (after_seqno, last_seqno), (lane, lanes), chosen), range(lanes)
            )
        )
        self._chosen = {file.key: chosen[at] for file, at in zip(files, places, strict=True)}

    def table(self, file: StagedFile) -> pa.Table:
        """Return the last records in a file: see `loader.native_collapse.arrow_columns.read_columns`.

        It may be called once per file, since that frees the file's memory.

        Raises:
            NotSupportedNatively: a value does not fit its column.
        """
        lines = self._read(file) if self._held is None else self._held.pop(file.key)
        size = keep(lines, self._chosen[file.key])
        if size < 0:
            raise NotSupportedNatively(f"{file.key} was changed while it was read")
        try:
            return read_columns(lines[:size], self._schema)
        except pa.ArrowInvalid as error:
            raise NotSupportedNatively(str(error)) from error

    def _scan(self, file: StagedFile, secret: Words, records: Ints, hashes: Words) -> None:
        lines = self._read(file)
        key = np.array([column.name in self._schema.key for column in self._schema.columns], np.uint8)
        if scan(lines, key, secret, records, hashes) != file.rows:
            raise NotSupportedNatively(f"{file.key} is not in the format")
        if self._held is not None:
            self._held[file.key] = lines

    def _read(self, file: StagedFile) -> Bytes:
        lines, size = np.empty(file.bytes, np.uint8), 0
        with self._store.reading(file.key) as stream:
            while block := stream.read(BLOCK_BYTES):
                lines[size : size + len(block)] = np.frombuffer(block, np.uint8)
                size += len(block)
        return lines


def check_keys(records: pa.Table, key: Sequence[str]) -> None:
    """Check that every record has its key.

    Raises:
        NotSupportedNatively: a column of `key` has a NULL.
    """
    if any(records[name].null_count for name in key):
        raise NotSupportedNatively("a key has a NULL")


def _by_op(records: Ints) -> dict[str, int]:
    return {op: int(np.count_nonzero(records[:, OP] == ord(op))) for op in _OPS}


def _choose(records: Ints, hashes: Words, window: tuple[int, int], share: tuple[int, int], chosen: Bytes) -> int:
    # The lanes have equal shares of the keys, except of very few keys. The minimum size has room for these.
    slots = np.zeros(max(1024, 1 << (4 * len(records) // share[1]).bit_length()), np.uint32)
    count = choose(records, hashes, *window, np.uint64(share[0]), np.uint64(share[1]), slots, chosen)
    if count < 0:
        raise NotSupportedNatively("too many keys fall into one lane")
    return count
