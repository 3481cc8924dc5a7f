"""Inserts the staged rows of an initial load with Spark: read by kernels in the tasks of a cluster, or by Spark SQL."""

from __future__ import annotations

import logging

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from loader.failpoints import failpoint
from loader.materialise.collapse.casts import (
    add_typed_columns,
    has_misfit,
    lost_values,
    misfit_error,
    row_columns,
    select_ungrouped,
)
from loader.materialise.collapse.csv_reader import format_error
from loader.materialise.collapse.file_checks import verify_files
from loader.materialise.collapse.native_records import (
    group_files,
    is_of_own_columns,
    records_in_tasks,
    unsupported_in_tasks,
)
from loader.materialise.collapse.staged_records import read_records
from loader.materialise.iceberg.branch import Branch
from loader.materialise.iceberg.insert_columns import insert_lists
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.load.native_load import FILE_BYTES, TASK_BYTES
from loader.materialise.plan.merge_plan import Work
from loader.native_collapse.last_records import NotSupportedNatively
from loader.resources import sql
from loader.spark.job import on_one_machine
from loader.store.base import Store

_LOG = logging.getLogger(__name__)
_MISFIT = "loader-misfit"


def insert_rows(
    warehouse: Warehouse, store: Store, branch: Branch, work: Work, signed: dict[str, str] | None
) -> dict[str, int]:
    """Insert the rows on a branch, in one commit. Return the number of misfits by column.

    Args:
        warehouse: the catalog.
        store: of the staged files.
        branch: where to insert.
        work: the rows. They replace the rows of the table, except in a history.
        signed: properties of the commit.

    Raises:
        StagedDataError: a staged file is missing, changed, or not in the format.
        DataError: a value does not fit its type.
    """
    with branch.signed(signed):
        if not on_one_machine(warehouse.session):
            try:
                _insert_in_tasks(warehouse, store, branch, work)
            except NotSupportedNatively as unusual:
                _LOG.info("%s: loaded by Spark SQL: %s", work.name, unusual)
            else:
                return {}
        return _insert_by_sql(warehouse, store, branch, work)


def _insert_in_tasks(warehouse: Warehouse, store: Store, branch: Branch, work: Work) -> None:
    """Insert the rows that kernels read in Spark tasks.

    Raises:
        NotSupportedNatively: kernels cannot read them. No row is inserted.
    """
    if not is_of_own_columns(work):
        raise NotSupportedNatively("the records have other columns than the table")
    slots = warehouse.session.sparkContext.defaultParallelism
    # The staged files are in key order. So each task writes files with a range of keys, and nothing has to be sorted.
    groups = list(group_files(work.files, slots, TASK_BYTES, FILE_BYTES))
    records_in_tasks(warehouse.session, store, work, groups).createOrReplaceTempView("loader_rows")
    with unsupported_in_tasks():
        warehouse.session.sql(
            _statement(warehouse, branch, work, "WITH ('use-table-distribution-and-ordering' = 'false')")
        )
    failpoint("insert.after")


def _insert_by_sql(warehouse: Warehouse, store: Store, branch: Branch, work: Work) -> dict[str, int]:
    """Insert the rows that Spark SQL reads. Return the number of misfits by column."""
    verify_files(warehouse.session, store, work.files)
    records = select_ungrouped(read_records(warehouse.session, store, work), work)
    _checked_rows(records, work).createOrReplaceTempView("loader_rows")
    try:
        misfits = _count_misfits(records, work)
        warehouse.session.sql(_statement(warehouse, branch, work))
    except Exception as error:
        if _MISFIT in str(error):
            raise misfit_error(records, work) from error
        raise format_error(error, work.name) or error from error
    failpoint("insert.after")
    return misfits


def _statement(warehouse: Warehouse, branch: Branch, work: Work, options: str = "") -> str:
    return sql("materialise/load_rows").format(
        insert="INSERT INTO" if work.rule.mode == "history" else "INSERT OVERWRITE",
        branch=branch.target,
        options=options,
        **insert_lists(warehouse.session, branch.target, work.layout.values),
    )


def _checked_rows(records: DataFrame, work: Work) -> DataFrame:
    """Return the rows. A misfit that the rule refuses stops the insert, so no other pass over the files is needed."""
    fits = sf.when(has_misfit(work), sf.raise_error(sf.lit(_MISFIT)).cast("boolean")).otherwise(sf.lit(True))
    return add_typed_columns(records, work).where(fits).select(*row_columns(work))


def _count_misfits(records: DataFrame, work: Work) -> dict[str, int]:
    """Count the misfits by column, in a pass over the files. Counters in the insert count repeated tasks twice."""
    counts = [sf.count_if(value).alias(name) for name, value in lost_values(work).items()]
    found = add_typed_columns(records, work).agg(*counts).first() if counts else None
    return {name: count for name, count in found.asDict().items() if count} if found else {}
