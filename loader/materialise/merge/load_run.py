"""One run over staged initial loads, each of one table."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from loader.materialise.iceberg.warehouse import WarehousePool
from loader.materialise.merge.load_notes import note_loaded
from loader.materialise.merge.quarantine import is_permanent_failure
from loader.materialise.merge.table_load import StagedLoad, load_table, load_work
from loader.materialise.merge.table_tasks import run_all, tables_at_once
from loader.materialise.plan.interval_chain import read_load_manifest
from loader.materialise.spec import LoadSpec, MaterialiseResult, TableResult
from loader.model.table import TableName
from loader.retries import Retries
from loader.spark.progress import TableCount
from loader.staging.chain import PlanChain
from loader.staging.quarantine import Quarantines
from loader.staging.refusals import note_refusal
from loader.store.base import Store
from loader.store.registry import open_store


def load(spark: SparkSession, spec: LoadSpec) -> MaterialiseResult:
    """Apply initial loads. A table that fails is reported and stops no other table.

    Raises:
        LoaderError: a manifest cannot be read.
    """
    retries = Retries()
    pool = retries.call(lambda: WarehousePool(spark, spec.catalog, spec.rules))
    store = open_store(spec.staging_root)
    generations = [generation.name for generation in PlanChain(store, spec.source).lineage(spec.generation)]
    loads = _newest_loads(store, spec, generations)
    count = TableCount(len(loads))
    biggest_first = sorted(loads, key=lambda table: -loads[table].bytes)

    def load_one(table: TableName) -> TableResult:
        found = loads[table]
        with count.working(str(table), len(found.manifest.files)) as done, pool.borrow() as warehouse:
            result = retries.call(lambda: load_table(warehouse, store, found, generations))
            done.rows, done.bytes = sum(file.rows for file in found.manifest.files), found.bytes
        return result

    results = run_all(biggest_first, load_one, tables_at_once(spark))
    for table, result in zip(biggest_first, results, strict=True):
        _note_result(store, spec, loads[table], result)
    return MaterialiseResult(tables=tuple(sorted(results, key=lambda result: result.table)))


def _newest_loads(store: Store, spec: LoadSpec, generations: Sequence[str]) -> dict[TableName, StagedLoad]:
    """Return the newest load of each table. Older loads of a table do not matter."""
    read = [(read_load_manifest(store, key, spec.source, generations), key) for key in spec.manifests]
    read.sort(key=lambda pair: pair[0].start_seqno)
    loads = (StagedLoad(key, manifest, load_work(manifest)) for manifest, key in read)
    return {load.work.name: load for load in loads}


def _note_result(store: Store, spec: LoadSpec, load: StagedLoad, result: TableResult) -> None:
    if result.applied_seqno is not None:
        # A quarantine ends if the table has another applied position than when it failed.
        Quarantines(store, spec.source).find_current(load.work.name, result.applied_seqno)
        note_loaded(store, spec, result, load.key)
    elif result.error and is_permanent_failure(result):
        note_refusal(store, spec.source, load.work.name, result.error)
