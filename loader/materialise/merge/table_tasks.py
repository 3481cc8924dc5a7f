"""Work on several tables at once. The failure of one table stops no other table."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from pyspark.sql import SparkSession

from loader.materialise.spec import TableResult
from loader.model.table import TableName
from loader.spark.job import failure, on_one_machine

Result = TypeVar("Result")

_LOG = logging.getLogger(__name__)
_ON_ONE_MACHINE = 2  # tables: while one table is planned and committed by the driver alone, another one is computed
_ON_A_CLUSTER = (4, 16)  # the fewest and the most tables


def tables_at_once(spark: SparkSession) -> int:
    """Return how many tables to work on at once: on a cluster, more with more cores."""
    if on_one_machine(spark):
        return _ON_ONE_MACHINE
    fewest, most = _ON_A_CLUSTER
    return max(fewest, min(most, spark.sparkContext.defaultParallelism // 2))


def run_all(tables: Sequence[TableName], work: Callable[[TableName], TableResult], count: int) -> list[TableResult]:
    """Run the work for all tables, `count` at once, in this order. Return the results in the same order."""
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda table: run_guarded(table, partial(work, table)), tables))


def run_guarded(table: TableName, work: Callable[[], Result]) -> Result | TableResult:
    """Return the result of the work, or a result with the status `failed` if it raises an error."""
    try:
        result = work()
    except Exception as error:
        _LOG.error("table %s failed", table, exc_info=error)
        return TableResult(table=str(table), status="failed", error=failure(error))
    if isinstance(result, TableResult):
        _LOG.info("%s: %s, at %s", table, result.status, result.position)
    return result
