"""Loads staged rows with compiled kernels and Arrow, in threads of the driver, or in the Spark tasks of a cluster.

They convert the staged files, a batch at a time, into Parquet files of the table. One commit adds them. Spark SQL loads
the tables and the values that are refused here, with the same result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from loader.materialise.collapse.native_records import group_files, is_of_own_columns, unsupported_in_tasks
from loader.materialise.iceberg.data_files import DataFiles, WrittenFile
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.parquet.row_format import RowFormat, to_rows
from loader.materialise.parquet.row_writer import write_rows
from loader.materialise.parquet.table_files import write_table_files
from loader.materialise.parquet.task_files import FilePlace, choose_places, write_file
from loader.materialise.plan.merge_plan import Work
from loader.native_collapse.last_records import NotSupportedNatively
from loader.native_collapse.staged_batches import read_batches
from loader.native_collapse.task_records import report_unsupported
from loader.spark.job import on_one_machine
from loader.spark.scratch import scratch_folder
from loader.spark.workers import Tasks
from loader.staging.documents import StagedFile
from loader.store.base import Store
from loader.store.registry import open_store

FILE_BYTES = 256 * 1024 * 1024
"""Size of the staged files that become one data file. Compressed Parquet takes an eighth to a third of it."""
_SMALL_BYTES = 32 * 1024 * 1024
"""Smaller tables are not split into a data file per thread."""
TASK_BYTES = 4 * 1024 * 1024
"""Fewer staged bytes are not worth a task."""


def write_natively(warehouse: Warehouse, store: Store, work: Work) -> DataFiles | None:
    """Write the rows into new data files of the table. Return None if Spark must write them.

    Raises:
        StagedDataError: a staged file is missing or changed.
    """
    write = _write_in_threads if on_one_machine(warehouse.session) else _write_in_tasks
    return write_table_files(warehouse, work, partial(write, warehouse.session, store, work), "loaded")


def _write_in_tasks(session: SparkSession, store: Store, work: Work, rows: RowFormat, files: DataFiles) -> None:
    """Write all rows into data files, on the executors of a cluster.

    Raises:
        NotSupportedNatively: the client of the staging area cannot write the table's files.
    """
    if not is_of_own_columns(work):
        raise NotSupportedNatively("the records have other columns than the table")
    # The staged files are in key order, so each data file has a range of keys.
    groups = list(group_files(work.files, session.sparkContext.defaultParallelism, TASK_BYTES, FILE_BYTES))
    planned = list(zip(choose_places(files, store.root, len(groups)), groups, strict=True))
    with unsupported_in_tasks():
        written = Tasks(session, {"root": store.root}).each(partial(_write_file_in_task, store.root, rows), planned)
    files.add(written)


def _write_file_in_task(root: str, rows: RowFormat, planned: tuple[FilePlace, Sequence[StagedFile]]) -> WrittenFile:
    place, group = planned
    with report_unsupported():
        return write_file(_read_rows(open_store(root), group, rows), rows.fields, place)


def _write_in_threads(session: SparkSession, store: Store, work: Work, rows: RowFormat, files: DataFiles) -> None:
    """Write all rows into data files, on this machine."""
    threads = session.sparkContext.defaultParallelism
    groups = list(enumerate(group_files(work.files, threads, _SMALL_BYTES, FILE_BYTES)))
    with scratch_folder(session) as folder, ThreadPoolExecutor(threads) as pool:
        write = partial(_write_file, store, rows, files, folder)
        for _ in pool.map(lambda numbered: write(*numbered), groups):
            pass


def _write_file(
    store: Store, rows: RowFormat, files: DataFiles, folder: Path, number: int, group: Sequence[StagedFile]
) -> None:
    path = folder / f"{number:05d}.parquet"
    files.upload(path, number, write_rows(_read_rows(store, group, rows), rows.fields, path))
    path.unlink()


def _read_rows(store: Store, files: Sequence[StagedFile], rows: RowFormat) -> Iterator[pa.Table]:
    for file in files:
        for records in read_batches(store, file, rows.records):
            yield to_rows(records, rows)
