"""One run over staged initial loads, each of one table."""

from __future__ import annotations

from functools import partial

from pyspark.sql import SparkSession

from loader.materialise.iceberg.warehouse import WarehousePool
from loader.materialise.load.load_notes import note_loaded
from loader.materialise.load.staged_load import StagedLoad, load_work
from loader.materialise.load.table_load import load_table
from loader.materialise.merge.quarantine import is_permanent_failure
from loader.materialise.merge.table_tasks import run_all, run_guarded, tables_at_once
from loader.materialise.plan.interval_chain import read_load_manifest
from loader.materialise.spec import LoadSpec, MaterialiseResult, TableResult
from loader.model.table import TableName
from loader.retries import Retries
from loader.spark.progress import Progress, TableCount
from loader.staging.chain import PlanChain
from loader.staging.notes.outdated_records import OutdatedNotes
from loader.staging.notes.overtaken_loads import OvertakenLoads
from loader.staging.notes.quarantine import Quarantines
from loader.staging.notes.refusals import note_refusal
from loader.store.registry import open_store


def load(spark: SparkSession, spec: LoadSpec) -> MaterialiseResult:
    """Apply initial loads. A table that fails is reported and stops no other table.

    Raises:
        LoaderError: a manifest cannot be read.
    """
    run = LoadRun(spark, spec)
    loads = run.newest_loads()
    count = TableCount(len(loads))
    biggest_first = sorted(loads, key=lambda table: -loads[table].bytes)

    def load_one(table: TableName) -> TableResult:
        staged = loads[table]
        with count.working(str(table), len(staged.manifest.files)) as done:
            result = run.apply(staged)
            done.rows, done.bytes = staged.rows, staged.bytes
        return result

    results = run_all(biggest_first, load_one, tables_at_once(spark))
    for table, result in zip(biggest_first, results, strict=True):
        run.note(loads[table], result)
    return MaterialiseResult(tables=tuple(sorted(results, key=lambda result: result.table)))


class LoadRun:
    """Loads staged tables into the warehouse. Several threads may use it.

    Raises:
        UsageError: see Warehouse.
    """

    def __init__(self, spark: SparkSession, spec: LoadSpec) -> None:
        self._spec = spec
        self._retries = Retries()
        self._pool = self._retries.call(lambda: WarehousePool(spark, spec.catalog, spec.rules))
        self._store = open_store(spec.staging_root)
        chain = PlanChain(self._store, spec.source)
        lineage = chain.lineage(spec.generation)
        self._logs = {generation.name: generation.log for generation in lineage}
        self._may_have_reached = partial(chain.may_have_reached, lineage[-1])
        self._outdated = OutdatedNotes(chain, spec.generation)

    def newest_loads(self) -> dict[TableName, StagedLoad]:
        """Return the newest load of each table of the spec. Older loads of a table do not matter.

        Raises:
            LoaderError: a manifest cannot be read.
        """
        loads = sorted(map(self._staged_load, self._spec.manifests), key=lambda load: load.manifest.start_seqno)
        return {load.work.name: load for load in loads}

    def load(self, manifest: str) -> TableResult:
        """Apply the initial load with this manifest key, and note the result. A failure becomes the result.

        Raises:
            LoaderError: the manifest cannot be read.
        """
        staged = self._staged_load(manifest)

        def apply() -> TableResult:
            files = len(staged.manifest.files)
            Progress(str(staged.work.name), 0, files, "files").report()
            result = self.apply(staged)
            Progress(str(staged.work.name), files, files, "files", staged.rows, staged.bytes).report()
            return result

        result = run_guarded(staged.work.name, apply)
        self.note(staged, result)
        return result

    def apply(self, load: StagedLoad) -> TableResult:
        """Apply an initial load.

        Raises:
            LoaderError: see `load_table`.
        """
        with self._pool.borrow() as warehouse:
            return self._retries.call(
                lambda: load_table(warehouse, self._store, load, self._logs, self._outdated, self._may_have_reached)
            )

    def note(self, load: StagedLoad, result: TableResult) -> None:
        """Record that a table is loaded, or that its load was refused for good."""
        source = self._spec.source
        if result.status == "applied":
            self._outdated.add()
        if result.applied_seqno is not None:
            # A quarantine ends if the table has another applied position than when it failed.
            Quarantines(self._store, source).find_current(load.work.name, result.applied_seqno)
            note_loaded(self._store, source, self._spec.catalog, result.table, result.position, load.key)
        elif result.error and is_permanent_failure(result):
            note_refusal(self._store, source, load.work.name, result.error)
            OvertakenLoads(self._store, source).end(load.work.name, load.work.target)

    def _staged_load(self, key: str) -> StagedLoad:
        manifest = read_load_manifest(self._store, key, self._spec.source, list(self._logs))
        return StagedLoad(key, manifest, load_work(manifest))
