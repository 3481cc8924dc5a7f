"""Loads staged rows with compiled kernels and Arrow, if the driver is also the executor.

Threads convert the staged files, a batch at a time, into Parquet files of the table. One commit adds them. Spark SQL
loads the tables and the values that are refused here, with the same result.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from loader.materialise.collapse.native_records import group_files
from loader.materialise.iceberg.data_files import DataFiles, arrow_fields
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.plan.frame_columns import key_places
from loader.materialise.plan.merge_plan import Work
from loader.materialise.plan.table_layout import IS_DELETED, TableColumn
from loader.native_collapse.last_records import NotSupportedNatively, check_keys
from loader.native_collapse.staged_batches import read_batches
from loader.spark.job import on_one_machine
from loader.staging.documents import StagedFile
from loader.store.base import Store
from loader.types.warehouse import widened_type

_LOG = logging.getLogger(__name__)
FILE_BYTES = 256 * 1024 * 1024
"""Size of the staged files that become one data file. Compressed Parquet takes an eighth to a third of it."""
_SMALL_BYTES = 32 * 1024 * 1024
"""Smaller tables are not split into a data file per thread."""
_GROUP_BYTES = 32 * 1024 * 1024
"""Size of a row group in memory. Each thread holds one row group and one batch."""


def write_natively(warehouse: Warehouse, store: Store, work: Work) -> DataFiles | None:
    """Write the rows into new data files of the table. Return None if Spark must write them.

    Raises:
        StagedDataError: a staged file is missing or changed.
    """
    metadata = warehouse.metadata(work.name)
    fields = arrow_fields(metadata) if metadata and on_one_machine(warehouse.session) else None
    if metadata is None or fields is None:
        return None
    files = DataFiles(warehouse.session, metadata)
    try:
        _write_files(warehouse.session, store, work, fields, files)
    except NotSupportedNatively as unusual:
        _LOG.info("%s: loaded by Spark: %s", work.name, unusual)
        files.delete()
        return None
    except Exception:
        files.delete()
        raise
    return files


def _write_files(
    session: SparkSession, store: Store, work: Work, fields: Mapping[str, pa.Field], files: DataFiles
) -> None:
    """Write all rows into data files."""
    threads = session.sparkContext.defaultParallelism
    # The staged files are in key order, so each data file has a range of keys.
    groups = list(enumerate(group_files(work.files, threads, _SMALL_BYTES, FILE_BYTES)))
    # Spark would keep the rows in the same place.
    scratch = session.conf.get("spark.local.dir", tempfile.gettempdir()) or tempfile.gettempdir()
    folder = Path(tempfile.mkdtemp(prefix="loader-load-", dir=scratch.split(",")[0]))
    with ExitStack() as kept, ThreadPoolExecutor(threads) as pool:
        kept.callback(shutil.rmtree, folder)
        write = partial(_write_file, store, work, fields, files, folder)
        for _ in pool.map(lambda numbered: write(*numbered), groups):
            pass


def _write_file(
    store: Store,
    work: Work,
    fields: Mapping[str, pa.Field],
    files: DataFiles,
    folder: Path,
    number: int,
    group: Sequence[StagedFile],
) -> None:
    path = folder / f"{number:05d}.parquet"
    schema = pa.schema([fields[column.name] for column in work.layout.columns])
    with pq.ParquetWriter(path, schema, compression="zstd", store_decimal_as_integer=True) as writer:
        for rows in _row_groups(store, work, schema, group):
            writer.write_table(rows, row_group_size=len(rows))
    files.upload(path, number, _split_offsets(path))
    path.unlink()


def _row_groups(store: Store, work: Work, schema: pa.Schema, group: Sequence[StagedFile]) -> Iterator[pa.Table]:
    pending, size = list[pa.Table](), 0
    for file in group:
        for batch in read_batches(store, file, work.schema):
            pending.append(_rows(batch, work, schema))
            size += pending[-1].nbytes
            if size >= _GROUP_BYTES:
                yield pa.concat_tables(pending)
                pending, size = [], 0
    if pending:
        yield pa.concat_tables(pending)


def _rows(batch: pa.Table, work: Work, schema: pa.Schema) -> pa.Table:
    """Return the rows of the table for a batch of staged records."""
    check_keys(batch, key_places(work.schema))
    columns = zip(work.layout.columns, schema, strict=True)
    return pa.table([_values(batch, column, field) for column, field in columns], schema=schema)


def _values(batch: pa.Table, column: TableColumn, field: pa.Field) -> pa.ChunkedArray | pa.Array:
    if column.value == IS_DELETED:
        return pc.equal(batch["_op"], "D")
    if column.value not in batch.column_names:
        return pa.nulls(len(batch), field.type)  # the text of a misfit: a batch with misfits is refused
    values = batch[column.value]
    if values.type == field.type:
        return values
    if not _is_wider(values.type, field.type):
        raise NotSupportedNatively(f"column {column.name} is {field.type} in the table and {values.type} in the rows")
    return values.cast(field.type)


def _is_wider(staged: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether the table's type holds every value of the staged type."""
    names = {pa.int32(): "int", pa.int64(): "bigint", pa.float32(): "float", pa.float64(): "double"}
    one, other = (
        names.get(kind) or str(kind).replace("decimal128", "decimal").replace(", ", ",") for kind in (staged, wanted)
    )
    return widened_type(one, other) == other


def _split_offsets(path: Path) -> list[int]:
    """Return the offset of each row group."""
    metadata = pq.read_metadata(path)
    first = (metadata.row_group(number).column(0) for number in range(metadata.num_row_groups))
    return [chunk.dictionary_page_offset or chunk.data_page_offset for chunk in first]
