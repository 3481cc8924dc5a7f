"""Inserts collapsed records as data files that the loader writes. Spark's SQL inserts what is refused here."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from loader.materialise.collapse.record_files import RecordFiles
from loader.materialise.iceberg.data_files import DataFiles
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.parquet.table_files import write_table_files
from loader.materialise.plan.merge_plan import Work


class RowFiles(NamedTuple):
    """Collapsed records of a table that can become data files, and how many rows these must have."""

    records: RecordFiles
    work: Work
    expected: int


def write_row_files(warehouse: Warehouse, rows: RowFiles) -> DataFiles | None:
    """Write the rows to insert into new data files of the table. Return None if Spark must write them.

    Raises:
        LoaderError: a store does not answer.
    """
    deleted = rows.work.rule.mode != "mirror"
    files = write_table_files(warehouse, rows.work, partial(rows.records.write, deleted=deleted), "inserted")
    if files and (found := files.rows) != rows.expected:
        files.delete()
        raise AssertionError(f"the data files of {rows.work.name} have {found} rows, not {rows.expected}")
    return files
