"""What a Spark task reads from staged files with kernels: all records, or the last record of each key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pyarrow as pa

from loader.model.table import TableSchema
from loader.native_collapse.arrow_columns import read_columns
from loader.native_collapse.last_records import LastRecords, NotSupportedNatively, check_keys
from loader.native_collapse.staged_batches import read_batches
from loader.spark.job import carried
from loader.staging.documents import StagedFile
from loader.store.registry import open_store

COUNTS = tuple(f"{age}_{op}" for age in ("all", "new") for op in "IUD")
"""What `_counts` counts, in its order: by op, all records of the files, and those in the range of seqnos."""
_COUNTS_FIELD = pa.field("_counts", pa.list_(pa.int64()))
_MARK = "left to Spark SQL: "
_BATCH_ROWS = 64 * 1024


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
        RuntimeError: a file is missing or changed, see `carried`; or kernels cannot read it, see `why_not_native`.
    """
    with carried_or_left():
        store = open_store(root)
        for file in files:
            for records in read_batches(store, file, schema):
                check_keys(records, key)
                yield from records.to_batches(max_chunksize=_BATCH_ROWS)


def read_last_records(
    root: str, schema: TableSchema, key: Sequence[str], after_seqno: int, last_seqno: int, files: Sequence[StagedFile]
) -> Iterator[pa.RecordBatch]:
    """Yield the last record of each key in staged files, then one row of counts.

    The columns are those of `read_columns` and `_counts`, the numbers of COUNTS. In the row of counts, all other
    columns are NULL.

    Args:
        root: address of the store.
        schema: of the files.
        key: the key columns in the records.
        after_seqno: a seqno. The records after it, up to `last_seqno`, are in the range.
        last_seqno: a seqno, see above.
        files: of one schema. They are in memory together.

    Raises:
        RuntimeError: the store fails, see `carried`; or kernels cannot read the files, see `why_not_native`.
    """
    with carried_or_left(), ThreadPoolExecutor(1) as pool:
        latest = LastRecords(open_store(root), files, schema, after_seqno, last_seqno, pool, lanes=1)
        for file in files:
            records = latest.table(file)
            check_keys(records, key)
            records = records.append_column(_COUNTS_FIELD, pa.nulls(len(records), _COUNTS_FIELD.type))
            yield from records.to_batches(max_chunksize=_BATCH_ROWS)
        yield _counts_row(schema, [*latest.all.values(), *latest.new.values()])


def why_not_native(error: BaseException) -> str | None:
    """Return why a task left its records to Spark SQL, from the exception on the driver; None for other exceptions."""
    _, mark, text = str(error).partition(_MARK)
    return text.splitlines()[0] if mark else None


@contextmanager
def carried_or_left() -> Iterator[None]:
    """Send errors of a task to the driver, see `carried` and `why_not_native`."""
    with carried():
        try:
            yield
        except NotSupportedNatively as unusual:
            raise RuntimeError(f"{_MARK}{unusual}") from unusual


def _counts_row(schema: TableSchema, counts: list[int]) -> pa.RecordBatch:
    fields = read_columns(np.empty(0, np.uint8), schema).schema
    nulls = [pa.nulls(1, field.type) for field in fields]
    return pa.RecordBatch.from_arrays(
        [*nulls, pa.array([counts], _COUNTS_FIELD.type)], schema=fields.append(_COUNTS_FIELD)
    )
