"""Inserts collapsed records as data files that the loader writes. Spark's SQL inserts what is refused here."""

from __future__ import annotations

import logging
from typing import NamedTuple

from loader.materialise.collapse.record_files import RecordFiles
from loader.materialise.iceberg.data_files import DataFiles
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.parquet.row_format import row_format
from loader.materialise.plan.merge_plan import Work
from loader.native_collapse.last_records import NotSupportedNatively

_LOG = logging.getLogger(__name__)


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
    metadata = warehouse.metadata(rows.work.name)
    columns = row_format(metadata, rows.work.layout) if metadata else None
    if metadata is None or columns is None:
        return None
    files = DataFiles(warehouse.session, metadata)
    try:
        rows.records.write(columns, files, deleted=rows.work.rule.mode != "mirror")
    except NotSupportedNatively as unusual:
        _LOG.info("%s: inserted by Spark: %s", rows.work.name, unusual)
        files.delete()
        return None
    except Exception:
        files.delete()
        raise
    if files.rows != rows.expected:
        raise AssertionError(f"the data files of {rows.work.name} have {files.rows} rows, not {rows.expected}")
    return files
