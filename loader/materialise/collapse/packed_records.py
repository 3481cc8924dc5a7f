"""Writes collapsed records that Spark keeps in memory on a cluster as data files of their table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark import RDD
from pyspark.sql import SparkSession

from loader.materialise.collapse.native_records import left_to_spark
from loader.materialise.collapse.record_files import rows_to_insert
from loader.materialise.iceberg.data_files import DataFiles, WrittenFile
from loader.materialise.parquet.row_format import RowFormat
from loader.materialise.parquet.task_files import FilePlace, choose_places, write_file
from loader.native_collapse.key_buckets import unpack_records
from loader.native_collapse.task_records import left_by_task
from loader.spark.task_rows import mapped_rows, partition_number


class PackedRecordFiles:
    """Writes packed records, a data file for each partition: see RecordFiles.

    Args:
        session: of a cluster.
        packed: the records: see `loader.native_collapse.key_buckets.pack_records`.
        columns: of the records.
        root: address of the staging area.
    """

    def __init__(self, session: SparkSession, packed: RDD[bytes], columns: Sequence[str], root: str) -> None:
        self._session, self._packed, self._columns, self._root = session, packed, columns, root

    def write(self, rows: RowFormat, files: DataFiles, *, deleted: bool) -> None:
        """See RecordFiles."""
        places = choose_places(files, self._root, self._packed.getNumPartitions())
        write = partial(_write_partition, self._columns, rows, deleted, places)
        with left_to_spark():
            found = mapped_rows(self._session, self._packed, write, root=self._root).collect()
        for one in found:
            files.add(one)


def _write_partition(
    columns: Sequence[str], rows: RowFormat, deleted: bool, places: Sequence[FilePlace], packed: Iterable[bytes]
) -> Iterator[WrittenFile]:
    """Write the records of this task's partition into a file, and yield what the file is."""
    with left_by_task():
        records = list(unpack_records(columns, map(pa.py_buffer, packed)))
        found = rows_to_insert(pa.Table.from_batches(records), rows, deleted=deleted) if records else records
        if len(found):
            yield write_file([found], rows.fields, places[partition_number()])
