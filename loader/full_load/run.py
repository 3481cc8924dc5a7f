"""Reads tables from the server and loads them into the warehouse, in one Spark application."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from loader.full_load.spec import FullLoadResult, FullLoadSpec

# Other modules are imported where they are used, while Spark starts.
if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from loader.initial_load.spec import TableLoad
    from loader.materialise.load.load_run import LoadRun
    from loader.materialise.spec import TableResult
    from loader.spark.workers import Workers


def full_load(starting: Future[SparkSession], spec: FullLoadSpec) -> FullLoadResult:
    """Stage all tables, and load each of them as soon as it is staged. A failed table stops no other table.

    Raises:
        LoaderError: no table could be read, or the warehouse could not be opened.
    """
    loads: list[Future[TableResult]] = []
    with ThreadPoolExecutor(1) as background, ThreadPoolExecutor(2) as loading:
        # Spark and Iceberg take seconds to load classes for the first statement. On one machine, threads read then.
        run = background.submit(_started_run, starting, spec)
        workers = _workers(starting, spec)
        from loader.initial_load.run import stage_tables

        def load(table: TableLoad) -> None:
            loads.append(loading.submit(lambda: run.result().load(table.manifest)))

        staged = stage_tables(workers, spec.read, load)
        run.result()
    from loader.materialise.spec import MaterialiseResult

    results = sorted((future.result() for future in loads), key=lambda result: result.table)
    return FullLoadResult(read=staged, load=MaterialiseResult(tables=tuple(results)))


def _started_run(starting: Future[SparkSession], spec: FullLoadSpec) -> LoadRun:
    spark = starting.result()
    from loader.materialise.load.load_run import LoadRun

    return LoadRun(spark, spec.load)


def _workers(starting: Future[SparkSession], spec: FullLoadSpec) -> Workers:
    from loader.spark.workers import Tasks, Threads

    return Threads(spec.threads) if spec.threads else Tasks(starting.result(), spec.model_dump())
