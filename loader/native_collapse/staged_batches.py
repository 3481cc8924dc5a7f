"""Reads staged files as Arrow tables, in batches of bounded size, and verifies the files on the way."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from loader.model.table import TableSchema
from loader.native_collapse.arrow_columns import read_columns
from loader.native_collapse.last_records import NotSupportedNatively
from loader.staging.documents import StagedFile
from loader.staging.file_verification import compare_digest, missing_error
from loader.store.base import BLOCK_BYTES, ObjectNotFound, Store

_BATCH_BYTES = 8 * 1024 * 1024
"""The size of a batch of staged lines. A batch is larger if a line is longer."""


def read_batches(store: Store, file: StagedFile, schema: TableSchema) -> Iterator[pa.Table]:
    """Yield all records of a staged file in order, with the columns of `read_columns`.

    The digest of the file is known only after its last batch. So nothing made from the batches may be published before
    the iteration has ended.

    Raises:
        StagedDataError: the file is missing, or differs from its entry in the manifest.
        NotSupportedNatively: a line is not in the staging format, or a value does not fit its column.
    """
    rows = 0
    for lines in _read_lines(store, file):
        try:
            batch = read_columns(np.frombuffer(lines, np.uint8), schema)
        except pa.ArrowInvalid as error:
            raise NotSupportedNatively(str(error)) from error
        rows += len(batch)
        yield batch
    if rows != file.rows:
        raise NotSupportedNatively(f"{file.key} has {rows} records, and {file.rows} in its manifest")


def _read_lines(store: Store, file: StagedFile) -> Iterator[bytearray]:
    """Yield whole lines. Verify the size and the SHA-256 before the last ones.

    Raises:
        StagedDataError: the file is missing or changed.
    """
    sha256, size, kept, pending = hashlib.sha256(), 0, 0, list[bytes]()
    try:
        with store.reading(file.key) as stream:
            while block := stream.read(BLOCK_BYTES):
                sha256.update(block)
                size, kept = size + len(block), kept + len(block)
                end = block.rfind(b"\n") + 1
                if kept < _BATCH_BYTES or not end:
                    pending.append(block)
                    continue
                yield bytearray().join((*pending, block[:end]))
                pending, kept = [block[end:]], len(block) - end
    except ObjectNotFound:
        raise missing_error(store, file) from None
    if fault := compare_digest(file, size, sha256.hexdigest()):
        raise fault
    if kept:
        yield bytearray().join(pending)
