"""Loads staged rows with compiled kernels and Arrow, in threads of the driver, or in the Spark tasks of a cluster.

They convert the staged files, a batch at a time, into Parquet files of the table. One commit adds them. Spark SQL loads
the tables and the values that are refused here, with the same result.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from loader.materialise.collapse.native_records import group_files, is_of_own_columns
from loader.materialise.iceberg.data_files import DataFiles, arrow_fields
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.load.parquet_writer import RowFormat, write_parquet
from loader.materialise.load.task_files import FileToWrite, write_in_tasks
from loader.materialise.plan.merge_plan import Work
from loader.native_collapse.last_records import NotSupportedNatively
from loader.spark.job import on_one_machine
from loader.staging.documents import StagedFile
from loader.store.base import Store
from loader.store.sibling import sibling_folder

_LOG = logging.getLogger(__name__)
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
    metadata = warehouse.metadata(work.name)
    fields = arrow_fields(metadata) if metadata else None
    if metadata is None or fields is None:
        return None
    rows = RowFormat(work.schema, work.layout.columns, pa.schema([fields[one.name] for one in work.layout.columns]))
    files = DataFiles(warehouse.session, metadata)
    write = _write_in_threads if on_one_machine(warehouse.session) else _write_in_tasks
    try:
        write(warehouse.session, store, work, rows, files)
    except NotSupportedNatively as unusual:
        _LOG.info("%s: loaded by Spark: %s", work.name, unusual)
        files.delete()
        return None
    except Exception:
        files.delete()
        raise
    return files


def _write_in_tasks(session: SparkSession, store: Store, work: Work, rows: RowFormat, files: DataFiles) -> None:
    """Write all rows into data files, on the executors of a cluster.

    Raises:
        NotSupportedNatively: the client of the staging area cannot write the table's files.
    """
    if not is_of_own_columns(work):
        raise NotSupportedNatively("the records have other columns than the table")
    # The staged files are in key order, so each data file has a range of keys.
    groups = group_files(work.files, session.sparkContext.defaultParallelism, TASK_BYTES, FILE_BYTES)
    planned = [_planned(files, store.root, number, group) for number, group in enumerate(groups)]
    for written in write_in_tasks(session, store.root, rows, planned):
        files.add(written)


def _planned(files: DataFiles, root: str, number: int, group: Sequence[StagedFile]) -> FileToWrite:
    location = files.location(number)
    folder = sibling_folder(root, location) if files.uses_hadoop else None
    if folder is None:
        raise NotSupportedNatively("the warehouse is not next to the staging area")
    return FileToWrite(location, folder, group)


def _write_in_threads(session: SparkSession, store: Store, work: Work, rows: RowFormat, files: DataFiles) -> None:
    """Write all rows into data files, on this machine."""
    threads = session.sparkContext.defaultParallelism
    groups = list(enumerate(group_files(work.files, threads, _SMALL_BYTES, FILE_BYTES)))
    # Spark would keep the rows in the same place.
    scratch = session.conf.get("spark.local.dir", tempfile.gettempdir()) or tempfile.gettempdir()
    folder = Path(tempfile.mkdtemp(prefix="loader-load-", dir=scratch.split(",")[0]))
    with ExitStack() as kept, ThreadPoolExecutor(threads) as pool:
        kept.callback(shutil.rmtree, folder)
        write = partial(_write_file, store, rows, files, folder)
        for _ in pool.map(lambda numbered: write(*numbered), groups):
            pass


def _write_file(
    store: Store, rows: RowFormat, files: DataFiles, folder: Path, number: int, group: Sequence[StagedFile]
) -> None:
    path = folder / f"{number:05d}.parquet"
    files.upload(path, number, write_parquet(store, group, rows, path))
    path.unlink()
