"""Data files that Spark tasks write next to the staging area, with its client. Only their names go to the driver."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from pyspark.sql import SparkSession

from loader.materialise.collapse.native_records import left_to_spark
from loader.materialise.iceberg.data_files import WrittenFile
from loader.materialise.load.parquet_writer import RowFormat, write_parquet
from loader.native_collapse.task_records import carried_or_left
from loader.spark.workers import Tasks
from loader.staging.documents import StagedFile
from loader.store.base import BLOCK_BYTES
from loader.store.registry import open_store


class FileToWrite(NamedTuple):
    """A data file to be written.

    Attributes:
        location: its place, given by the table. Each attempt of a task adds to the name, so it overwrites no file.
        folder: the address of its folder, for `open_store`.
        records: the staged files that it holds.
    """

    location: str
    folder: str
    records: Sequence[StagedFile]


def write_in_tasks(
    session: SparkSession, root: str, rows: RowFormat, files: Sequence[FileToWrite]
) -> list[WrittenFile]:
    """Write each file in a task.

    Args:
        session: of a cluster.
        root: address of the staging area.
        rows: of the table.
        files: what to write.

    Raises:
        LoaderError: a staged file is missing or changed, or the store does not answer.
        NotSupportedNatively: Spark must write the rows.
    """
    with left_to_spark():
        return Tasks(session, {"root": root}).each(partial(_write, root, rows), files)


def _write(root: str, rows: RowFormat, file: FileToWrite) -> WrittenFile:
    location = f"{file.location.removesuffix('.parquet')}-{uuid.uuid4().hex[:8]}.parquet"
    name = location.rpartition("/")[2]
    with carried_or_left(), TemporaryDirectory(prefix="loader-load-") as scratch:
        path = Path(scratch, name)
        content = write_parquet(open_store(root), file.records, rows, path)
        with path.open("rb") as source, open_store(file.folder).writing(name) as target:
            shutil.copyfileobj(source, target, BLOCK_BYTES)
        return WrittenFile(location, path.stat().st_size, content)
