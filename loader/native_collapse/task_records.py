"""What a Spark task reads from staged files with kernels, and how it leaves files to Spark SQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from loader.model.table import TableSchema
from loader.native_collapse.last_records import NotSupportedNatively, check_keys
from loader.native_collapse.staged_batches import read_batches
from loader.staging.documents import StagedFile
from loader.store.registry import open_store

_MARK = "left to Spark SQL: "
BATCH_ROWS = 64 * 1024
"""Records in a batch that a task returns."""


def read_records(
    root: str, schema: TableSchema, key: Sequence[str], files: Sequence[StagedFile]
) -> Iterator[pa.RecordBatch]:
    """Yield all records of staged files in order, with the columns of `read_columns`.

    Args:
        root: address of the store.
        schema: of the files.
        key: the key columns in the records; empty without a key.
        files: of one schema.

    Raises:
        StagedDataError: a file is missing or changed.
        RuntimeError: kernels cannot read it, see `why_not_native`.
    """
    with report_unsupported():
        store = open_store(root)
        for file in files:
            for records in read_batches(store, file, schema):
                check_keys(records, key)
                yield from records.to_batches(max_chunksize=BATCH_ROWS)


def why_not_native(error: BaseException) -> str | None:
    """Return why kernels cannot read the records of a task, from its exception on the driver; None for others."""
    _, mark, text = str(error).partition(_MARK)
    return text.splitlines()[0] if mark else None


@contextmanager
def report_unsupported() -> Iterator[None]:
    """Report to the driver why kernels cannot read the records of a task: see `why_not_native`."""
    try:
        yield
    except NotSupportedNatively as unusual:
        raise RuntimeError(f"{_MARK}{unusual}") from unusual
