"""Writes the rows of a table as data files in the tasks that collapse its records."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from loader.materialise.collapse.record_files import rows_to_insert
from loader.materialise.iceberg.data_files import DataFiles, WrittenFile
from loader.materialise.iceberg.table_metadata import TableMetadata
from loader.materialise.parquet.row_format import RowFormat, row_format
from loader.materialise.parquet.task_files import FilePlace, choose_places, write_file
from loader.materialise.plan.frame_columns import key_places
from loader.materialise.plan.merge_plan import Work
from loader.native_collapse.last_records import NotSupportedNatively
from loader.spark.task_rows import Reports

_LOG = logging.getLogger(__name__)
_Report = Callable[[WrittenFile | None], None]


class TaskRowFiles:
    """Data files that tasks write before it is certain that the table still has the same columns: see RecordFiles.

    Args:
        session: of a cluster.
        files: names the files.
        rows: of the table.
        places: a place for each piece.
        deleted: also write records whose op is D.
    """

    def __init__(
        self, session: SparkSession, files: DataFiles, rows: RowFormat, places: Sequence[FilePlace], *, deleted: bool
    ) -> None:
        self._files, self._rows, self._places, self._deleted = files, rows, places, deleted
        self._reports = Reports[WrittenFile | None](session)
        self._written = list[WrittenFile]()
        self._are_added = False

    @property
    def write_piece(self) -> Callable[[int, pa.Table], pa.Table]:
        """Writes the rows of a piece in a task. Returns the columns of the records that are still needed."""
        return partial(_write_piece, self._rows, self._places, self._reports.add, self._deleted)

    def take_reported(self) -> None:
        """Take the files that the tasks have reported. Tasks that are repeated later write files that nobody uses."""
        reports = self._reports.found
        if len(reports) != len(self._places):
            raise AssertionError(f"{len(reports)} of {len(self._places)} pieces have reported their files")
        self._written = [file for file in reports if file]

    def write(self, rows: RowFormat, files: DataFiles, *, deleted: bool) -> None:
        """Add the files that are already written: see RecordFiles."""
        if files.table != self._files.table or not rows.equals(self._rows) or deleted != self._deleted:
            raise NotSupportedNatively("the table has changed since its data files were written")
        files.add(self._written)
        self._are_added = True

    def discard(self) -> None:
        """Delete the files unless `write` has added them."""
        if not self._are_added:
            self._files.delete_files([file.location for file in self._reports.found if file])


def plan_task_files(
    session: SparkSession, metadata: TableMetadata, work: Work, root: str, pieces: int
) -> TaskRowFiles | None:
    """Return the data files that tasks write, one for each piece. Return None if only Spark can write the table.

    Args:
        session: of a cluster.
        metadata: of the table.
        work: its columns and mode.
        root: address of the staging area.
        pieces: their number.
    """
    rows = row_format(metadata, work.layout)
    if rows is None:
        return None
    files = DataFiles(session, metadata)
    try:
        places = choose_places(files, root, pieces)
    except NotSupportedNatively as unusual:
        _LOG.info("%s: inserted by Spark: %s", work.name, unusual)
        return None
    return TaskRowFiles(session, files, rows, places, deleted=work.rule.mode != "mirror")


def _write_piece(
    rows: RowFormat, places: Sequence[FilePlace], report: _Report, deleted: bool, number: int, records: pa.Table
) -> pa.Table:
    """Write the last records of a piece into a file, and return their key columns."""
    found = rows_to_insert(records, rows, deleted=deleted)
    report(write_file([found], rows.fields, places[number]) if len(found) else None)
    return records.select(key_places(rows.records))
