"""Writes collapsed records that Spark keeps in memory on a cluster as data files of their table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from loader.materialise.collapse.native_records import left_to_spark
from loader.materialise.collapse.record_files import rows_to_insert
from loader.materialise.iceberg.data_files import DataFiles, FileContent, WrittenFile
from loader.materialise.parquet.row_format import RowFormat
from loader.materialise.parquet.task_files import FilePlace, choose_places, write_file
from loader.native_collapse.key_buckets import unpack_records
from loader.native_collapse.task_records import carried_or_left
from loader.spark.task_frames import mapped_frame

_WRITTEN = pa.schema(
    [
        ("location", pa.string()),
        ("size", pa.int64()),
        ("split_offsets", pa.list_(pa.int64())),
        ("unbounded", pa.list_(pa.string())),
    ]
)
_WRITTEN_DDL = "location string, size bigint, split_offsets array<bigint>, unbounded array<string>"


class PackedRecordFiles:
    """Writes packed records, a data file for each partition: see RecordFiles.

    Args:
        packed: the records: see `loader.native_collapse.key_buckets.pack_last_records`.
        partitions: their number.
        columns: of the records.
        root: address of the staging area.
    """

    def __init__(self, packed: DataFrame, partitions: int, columns: Sequence[str], root: str) -> None:
        self._packed, self._partitions, self._columns, self._root = packed, partitions, columns, root

    def write(self, rows: RowFormat, files: DataFiles, *, deleted: bool) -> None:
        """See RecordFiles."""
        places = choose_places(files, self._root, self._partitions)
        write = partial(_write_partition, self._columns, rows, deleted, places)
        with left_to_spark():
            found = mapped_frame(self._packed.select("records"), write, _WRITTEN_DDL, root=self._root).collect()
        for one in found:
            files.add(WrittenFile(one.location, one.size, FileContent(one.split_offsets, one.unbounded)))


def _write_partition(
    columns: Sequence[str],
    rows: RowFormat,
    deleted: bool,
    places: Sequence[FilePlace],
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Write the records of this task's partition into a file, and yield what a WrittenFile tells."""
    context = TaskContext.get()
    if context is None:
        raise AssertionError("this is not a task of Spark")
    with carried_or_left():
        records = list(unpack_records(columns, batches))
        found = rows_to_insert(pa.Table.from_batches(records), rows, deleted=deleted) if records else records
        if len(found):
            file = write_file([found], rows.fields, places[context.partitionId()])
            row = [file.location, file.size, file.content.split_offsets, file.content.unbounded]
            values = [pa.array([value], field.type) for value, field in zip(row, _WRITTEN, strict=True)]
            yield pa.RecordBatch.from_arrays(values, schema=_WRITTEN)
