"""The last record of each key of staged files that fit into this machine's memory."""

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
"""Of files up to here all bytes are kept between both looks at them."""


class NotSupportedNatively(Exception):
    """Records that Spark's SQL has to look at."""


class LastRecords:
    """The last record of each key with `after` < seqno <= `through`. Keys are the same if their staged bytes are.

    Attributes:
        count: of these records.
        all, new: counts of all records, and of those after `after`, by op.

    Args:
        store: of the files.
        files: of one schema.
        schema: theirs, with a key.
        after, through: see above.
        pool: of threads; kernels release the interpreter's lock.
        lanes: how many of them choose, of which each has a share of the keys.

    Raises:
        Unusual: a line is not in the format, or a record that counts leaves columns out.
    """

    def __init__(
        self,
        store: Store,
        files: Sequence[StagedFile],
        schema: TableSchema,
        after: int,
        through: int,
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
        new = (records[:, SEQNO] > after) & (records[:, SEQNO] <= through)
        if records[new, ABSENT].any():
            raise NotSupportedNatively("records leave columns out")
        self.all, self.new = _by_op(records), _by_op(records[new])
        chosen = np.zeros(rows, np.uint8)
        self.count = sum(
            pool.map(lambda lane: _choose(records, hashes, (after, through), (lane, lanes), chosen), range(lanes))
        )
        self._chosen = {file.key: chosen[at] for file, at in zip(files, places, strict=True)}

    def table(self, file: StagedFile) -> pa.Table:
        """Those of a file, once: see `loader.native_collapse.arrow_columns.read_columns`.

        Raises:
            Unusual: a value does not fit its column.
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


def _by_op(records: Ints) -> dict[str, int]:
    return {op: int(np.count_nonzero(records[:, OP] == ord(op))) for op in _OPS}


def _choose(records: Ints, hashes: Words, window: tuple[int, int], share: tuple[int, int], chosen: Bytes) -> int:
    # Shares are even but for very few keys, for which there is room in any case.
    slots = np.zeros(max(1024, 1 << (4 * len(records) // share[1]).bit_length()), np.uint32)
    count = choose(records, hashes, *window, np.uint64(share[0]), np.uint64(share[1]), slots, chosen)
    if count < 0:
        raise NotSupportedNatively("keys fall into one share")
    return count
