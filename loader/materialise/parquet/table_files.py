"""New data files of a table that the loader writes, unless Spark must write them."""

from __future__ import annotations

import logging
from collections.abc import Callable

from loader.materialise.iceberg.data_files import DataFiles
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.parquet.row_format import RowFormat, row_format
from loader.materialise.plan.merge_plan import Work
from loader.native_collapse.last_records import NotSupportedNatively

_LOG = logging.getLogger(__name__)


def write_table_files(
    warehouse: Warehouse, work: Work, write: Callable[[RowFormat, DataFiles], None], done: str
) -> DataFiles | None:
    """Write rows into new data files of a table. Return None if Spark must write them.

    Args:
        warehouse: the catalog.
        work: the table and its columns.
        write: writes the rows. If it fails, its files are deleted.
        done: what Spark does instead, for the log: "loaded" or "inserted".

    Raises:
        LoaderError: `write` failed.
    """
    metadata = warehouse.metadata(work.name)
    rows = row_format(metadata, work.layout) if metadata else None
    if metadata is None or rows is None:
        return None
    files = DataFiles(warehouse.session, metadata)
    try:
        write(rows, files)
    except NotSupportedNatively as unusual:
        _LOG.info("%s: %s by Spark: %s", work.name, done, unusual)
        files.delete()
        return None
    except Exception:
        files.delete()
        raise
    return files
