"""One run over all tables of a source: survey them, merge them, and publish one record."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from pyspark.sql import SparkSession

from loader.errors import DataError, LoaderError, MisfitError, UnsupportedError
from loader.materialise.iceberg.table_metadata import TableMetadata
from loader.materialise.iceberg.warehouse import Warehouse, WarehousePool
from loader.materialise.merge.cadence import utc_now
from loader.materialise.merge.merge_planner import MergePlanner
from loader.materialise.merge.postponement import Postponement, awaited_table, is_waiting
from loader.materialise.merge.published_record import complete_seqno, is_behind, publish
from loader.materialise.merge.quarantine import RunQuarantine, is_permanent_failure, known_applied
from loader.materialise.merge.table_merge import merge_table
from loader.materialise.merge.table_results import WaitingForTable, no_progress_error, rows_unavailable_error
from loader.materialise.merge.table_selection import changed_tables, known_tables, mentioned_tables, merge_steps
from loader.materialise.merge.table_tasks import run_all, run_guarded, tables_at_once
from loader.materialise.plan.interval_chain import Chain
from loader.materialise.plan.lifetimes import find_new_life
from loader.materialise.plan.merge_plan import Merge
from loader.materialise.spec import MaterialiseResult, MaterialiseSpec, TableResult
from loader.model.table import TableName
from loader.retries import Retries
from loader.spark.progress import TableCount
from loader.staging.chain import PlanChain
from loader.staging.documents import Manifest
from loader.staging.filters import CapturedTables
from loader.staging.notes.outdated_records import is_outdated
from loader.staging.notes.overtaken_loads import OvertakenLoads
from loader.staging.notes.pauses import Pauses
from loader.staging.notes.quarantine import Quarantines
from loader.store.registry import open_store

_LOG = logging.getLogger(__name__)


def materialise(spark: SparkSession, spec: MaterialiseSpec) -> MaterialiseResult:
    """Bring every table of the source to the spec's stop. A table that fails is reported and stops no other table.

    A table is quarantined if it fails and a retry cannot help.

    Raises:
        Superseded: a newer generation counts from before the end of this generation's newest interval.
        LoaderError: no table could be begun.
    """
    retries = Retries()
    warehouse = retries.call(lambda: Warehouse(spark, spec.catalog, spec.rules))
    chain = Chain(open_store(spec.staging_root), spec.source, spec.generation)
    last = chain.interval_ending_at(spec.through_seqno)
    if last is None:
        return MaterialiseResult(tables=())
    PlanChain(chain.store, spec.source).check_not_superseded(last.generation, last.stop_seqno)
    pool = WarehousePool(spark, spec.catalog, spec.rules)
    return SourceRun(warehouse, pool, chain, last, retries, tables_at_once(spark), spec).run()


class SourceRun:
    """One run over all tables of a source.

    Args:
        warehouse: for the driver's main thread.
        pool: warehouses for the threads that merge tables.
        chain: the intervals of the source.
        last: the interval at whose stop the tables must arrive.
        retries: shared by all tables.
        concurrency: how many tables to merge at once.
        spec: of the job.
    """

    def __init__(
        self,
        warehouse: Warehouse,
        pool: WarehousePool,
        chain: Chain,
        last: Manifest,
        retries: Retries,
        concurrency: int,
        spec: MaterialiseSpec,
    ) -> None:
        self._warehouse = warehouse
        self._pool = pool
        self._chain = chain
        self._last = last
        self._stop = last.stop_seqno
        self._is_captured = CapturedTables(spec.tables)
        self._retries = retries
        self._concurrency = concurrency
        self._record = chain.newest_published()
        self._planner = MergePlanner(warehouse, chain, self._record)
        self._quarantine = RunQuarantine(warehouse, Quarantines(chain.store, chain.source), last)
        self._overtaken = OvertakenLoads(chain.store, chain.source)
        self._overtaken_before = self._overtaken.applied()
        pauses, now = Pauses(chain.store, chain.source).all(), None if spec.now else utc_now()
        self._postponement = Postponement(pauses, self._record, spec.rules, now)
        # By table that was merged from a later life on, the error of its earlier lives.
        self._skipped: dict[TableName, LoaderError] = {}

    def run(self) -> MaterialiseResult:
        """Merge all tables and publish the record, unless a table failed that is not quarantined."""
        changed = changed_tables(self._chain, self._record, self._stop)
        earlier, failed = self._merge_stepwise()
        results, todo = self._survey_all(changed | failed, failed)
        results += run_all(todo, partial(self._merge_counted, TableCount(len(todo))), self._concurrency)
        results = self._postpone_waiting(self._refresh_all(self._merge_waiting(results)))
        results = [
            earlier[result.table].followed_by(result) if result.table in earlier else result for result in results
        ]
        postponed = [result for result in results if result.postponed]
        others = self._quarantine.quarantine_failures([result for result in results if not result.postponed])
        results = sorted([*others, *postponed], key=lambda result: result.table)
        return MaterialiseResult(
            tables=tuple(results), stop=self._last.stop, stop_seqno=self._stop, published=self._publish(results)
        )

    def _publish(self, results: Sequence[TableResult]) -> str:
        """Publish the record and return its key; not if a table failed and is not quarantined."""
        if any(result.status == "failed" for result in results):
            return ""
        published = publish(self._chain, self._last, results, self._warehouse.catalog.place)
        # The record may be an older one of this stop, which does not say that these tables are behind.
        behind = {result.table for result in results if is_behind(result, self._last)}
        for load in self._overtaken_before:
            if load.table not in behind:
                self._overtaken.end(load.name, load.seqno)
        return published

    def _refresh_all(self, results: list[TableResult]) -> list[TableResult]:
        """Return the results with the newest commits of the tables, if a load or a replay may have made some."""
        if not is_outdated(self._chain.store, self._chain.source, self._last.generation, self._stop):
            return results
        read = {TableName.parse(one.table): one for one in results if one.snapshot is not None and not one.postponed}
        read = {table: one for table, one in read.items() if not one.error}
        found = run_all(list(read), lambda table: self._refresh(table, read[table]), self._concurrency)
        newest = {result.table: result for result in found}
        return [newest.get(result.table, result) for result in results]

    def _refresh(self, table: TableName, known: TableResult) -> TableResult:
        """Return the result of a table with its newest commit. A load may have set the table back."""
        with self._pool.borrow() as warehouse:
            planner = replace(self._planner, warehouse=warehouse)
            metadata = self._retries.call(lambda: warehouse.metadata(table))
            applied = known_applied(metadata)
            if applied is None or applied.snapshot == known.snapshot:
                return known
            found = planner.plan(table, metadata, self._stop)
        if isinstance(found, Merge):
            return known.followed_by(self._merge(table, self._stop))
        newer = ("snapshot", "applied_seqno", "position", "complete_through")
        return known.model_copy(update={name: getattr(found, name) for name in newer})

    def _postpone_waiting(self, results: Sequence[TableResult]) -> list[TableResult]:
        """Return the results, in which tables that wait for a postponed table are postponed and not failed."""
        waiting = {str(table): known_applied(self._warehouse.metadata(table)) for table in _waiting_tables(results)}
        return self._postponement.postpone_waiting(results, waiting)

    def _merge_counted(self, count: TableCount, table: TableName) -> TableResult:
        """Merge a table up to the stop of the run, and report it as progress of the job."""
        with count.working(str(table)) as done:
            result = self._merge(table, self._stop)
            done.rows = result.inserts + result.updates + result.deletes
        return result

    def _merge(self, table: TableName, target: int, *, may_wait: bool = True) -> TableResult:
        """Merge a table up to `target`. If its changes cannot be applied, continue with its last life.

        Only a missing statement or value in the log and a value that does not fit are skipped like this: a lost file
        can be restored. With `may_wait`, a table that waits for another one is not skipped either.
        """
        with self._pool.borrow() as warehouse:
            planner = replace(self._planner, warehouse=warehouse)
            noted = self._quarantine.note_advanced
            merge = partial(
                merge_table, planner, table, target, commit_position=target != self._stop, note_advanced=noted
            )
            try:
                return self._retries.call(merge)
            except (UnsupportedError, MisfitError, WaitingForTable) as error:
                waits = isinstance(error, WaitingForTable) and may_wait
                life = None if waits else self._find_later_life(warehouse, table, target)
                if life is None:
                    planner.explain_drop(error, table, target)
                    raise
                _LOG.warning("%s: %s; the table was dropped, renamed or created again since", table, error.what)
                self._skipped[table] = error
                return self._retries.call(partial(merge, life_start=life))

    def _find_later_life(self, warehouse: Warehouse, table: TableName, target: int) -> int | None:
        """Return the seqno where the last life of a mirror begins after its applied position: see `find_new_life`."""
        if warehouse.rule(table).mode != "mirror":
            return None
        applied = known_applied(warehouse.metadata(table))
        low = applied.seqno if applied else self._record.stop_seqno if self._record else 0
        return find_new_life(table, self._chain.intervals_between(low, target), low, target)

    def _survey_all(self, changed: set[TableName], due: set[TableName]) -> tuple[list[TableResult], list[TableName]]:
        """Return the results of the tables that need no merge, and the tables to merge, biggest first.

        `due`: tables that are merged although they are not due by their rules.
        """
        done: list[TableResult] = []
        todo: list[tuple[int, TableName]] = []
        selected = changed | known_tables(self._chain, self._record) | self._quarantine.quarantined
        selected |= set(self._postponement.pauses)
        for table in sorted(selected | mentioned_tables(self._chain, self._record, self._stop)):
            if not self._captures(table):
                _LOG.warning("%s is no longer captured; it stays unchanged", table)
                self._quarantine.end(table)
                continue
            survey = partial(
                self._retries.call, partial(self._survey, table, changed=table in changed, due=table in due)
            )
            found = run_guarded(table, survey)
            if isinstance(found, Merge):
                todo.append((sum(file.bytes for file in found.files), table))
            elif found is not None:
                done.append(found)
        return done, [table for _, table in sorted(todo, reverse=True)]

    def _captures(self, table: TableName) -> bool:
        """Return whether a table is captured by the configuration, and by the last interval."""
        return self._is_captured(table) and self._chain.captures(self._last.start_seqno, table)

    def _survey(self, table: TableName, *, changed: bool, due: bool) -> Merge | TableResult | None:
        """Return the merge of a table, its result if it needs none, or None if it is neither loaded nor changed."""
        metadata = self._warehouse.metadata(table)
        if postponed := self._postponement.find(table, known_applied(metadata)):
            return postponed
        quarantined = self._quarantine.find_quarantined(table, metadata)
        # If the table was dropped since, the error no longer matters. The table could not be loaded again either.
        if quarantined and not self._has_new_life(table):
            return quarantined
        if not quarantined and (metadata is None or metadata.applied is None):
            self._planner.check_not_lost(table, metadata, self._stop)
            if not changed:
                self._planner.check_never_filled(table, self._record.stop_seqno if self._record else 0, self._stop)
                return None
        later = None if due or quarantined else self._find_not_due(table, metadata)
        if later and self._postponement.is_behind(table):
            return later
        found = self._planner.plan(table, metadata, self._stop)
        return later if later and isinstance(found, Merge) else found

    def _has_new_life(self, table: TableName) -> bool:
        """Return whether a quarantined table was dropped, renamed or created again since a run looked for that."""
        record = self._record
        low = record.stop_seqno if record else 0
        if record and str(table) in record.postponed:
            low = self._quarantine.stop_of(table)  # the runs since then postponed the table
        return find_new_life(table, self._chain.intervals_between(low, self._stop), low, self._stop) is not None

    def _find_not_due(self, table: TableName, metadata: TableMetadata | None) -> TableResult | None:
        """Return the result of a table that is not due; None if it is due.

        The commit of an overtaken load is no merge of this period: the log after it must be merged again.
        """
        applied = known_applied(metadata)
        if metadata is None or applied is None or not self._warehouse.rule(table).every:
            return None
        if any(load.table == str(table) for load in self._overtaken_before):
            return None
        return self._postponement.find_not_due(table, applied, metadata.commit_time(applied.snapshot))

    def _merge_stepwise(self) -> tuple[dict[str, TableResult], set[TableName]]:
        """Merge tables to the positions of `merge_steps`. Return the results by table, and the tables that failed.

        A table that fails here is merged again later. It then fails again and is reported.
        """
        done: dict[str, TableResult] = {}
        failed: set[TableName] = set()
        for target, named in merge_steps(self._chain, self._common_seqno(), self._stop):
            found = {table: run_guarded(table, partial(self._is_mergeable, table, target)) for table in named}
            failed |= {table for table, answer in found.items() if isinstance(answer, TableResult)}
            tables = [table for table, answer in found.items() if answer is True]
            for result in run_all(tables, partial(self._merge, target=target), self._concurrency):
                if result.status == "applied":
                    done[result.table] = done[result.table].followed_by(result) if result.table in done else result
                elif result.status == "failed":
                    failed.add(TableName.parse(result.table))
        return done, failed

    def _is_mergeable(self, table: TableName, target: int) -> bool:
        """Return whether a table is in the warehouse or was created in the log up to `target`, and may be merged."""
        metadata = self._warehouse.metadata(table)
        if self._is_stopped(table, metadata):
            return False
        return metadata is not None or self._chain.find_origin(table, target).seqno is not None

    def _common_seqno(self) -> int:
        """Return the seqno up to which every table has the log, without the quarantined and the postponed tables.

        A table that was released from quarantine or resumed may be behind the newest record.
        """
        common = self._record.stop_seqno if self._record else 0
        for name, seqno in self._record.behind.items() if self._record else ():
            table = TableName.parse(name)
            found = run_guarded(table, partial(self._reached_seqno, table))
            common = min(common, seqno if isinstance(found, TableResult) else found)
        return common

    def _reached_seqno(self, table: TableName) -> int:
        """Return the seqno up to which a table has the log; the stop for a table that is not merged."""
        metadata = self._warehouse.metadata(table)
        if self._is_stopped(table, metadata):
            return self._stop
        applied = known_applied(metadata)
        if applied:
            return complete_seqno(self._record, table, applied)
        start = self._chain.find_origin(table, self._stop).seqno
        return self._stop if start is None else start

    def _is_stopped(self, table: TableName, metadata: TableMetadata | None) -> bool:
        """Return whether a table is not captured, postponed or quarantined."""
        if not self._is_captured(table):
            return True
        postponed = self._postponement.find(table, known_applied(metadata))
        return bool(postponed or self._quarantine.find_quarantined(table, metadata))

    def _merge_waiting(self, results: Sequence[TableResult]) -> list[TableResult]:
        """Merge the tables that waited for another table, now that the others are merged. Return all results.

        They can also wait for each other, in any order. So they are merged until none gets further.
        """
        merged, before = list(results), None
        while (waiting := [result.error for result in merged if is_waiting(result)]) and waiting != before:
            merged, before = self._merge_again(merged), waiting
        stalled = {str(table) for table in _waiting_tables(merged) if _is_stalled(str(table), merged)}
        return [self._explained(result, stalled=result.table in stalled) for result in merged]

    def _merge_again(self, results: Sequence[TableResult]) -> list[TableResult]:
        """Merge the waiting tables once more. Return all results.

        A table that was dropped since continues with its last life, even if the other table failed. It does not if a
        retry may help the other table: a third table may have to take the rows that the waiting table had before.
        """
        known = {result.table: result for result in results}
        found = run_all(
            _waiting_tables(results),
            lambda table: self._merge(table, self._stop, may_wait=_may_help_later(str(table), known)),
            self._concurrency,
        )
        again = {result.table: result for result in found}
        return [again.get(result.table, result) for result in results]

    def _explained(self, result: TableResult, *, stalled: bool) -> TableResult:
        """Return the result with the cause of its error, if the error does not have it.

        Args:
            result: of any table.
            stalled: it waits again, and another run would not help.
        """
        table, other = TableName.parse(result.table), awaited_table(result)
        cause = next((error for skipped, error in self._skipped.items() if str(skipped) == other), None)
        if cause is not None and other != result.table and (stalled or is_permanent_failure(result)):
            # The other table skipped changes that it could not apply, so its rows before them are unknown.
            error: LoaderError = rows_unavailable_error(TableName.parse(other), table, cause)
        elif stalled and other != result.table and not self._captures(TableName.parse(other)):
            error = rows_unavailable_error(TableName.parse(other), table, DataError("it is no longer captured"))
        elif stalled:
            error = no_progress_error(table, self._stop, str(result.error["what"]) if result.error else "")
        else:
            return result
        return result.model_copy(update={"error": error.as_dict()})


def _waiting_tables(results: Sequence[TableResult]) -> list[TableName]:
    return [TableName.parse(result.table) for result in results if is_waiting(result)]


def _is_stalled(table: str, merged: Sequence[TableResult]) -> bool:
    """Return whether a waiting table waits for a table that did not fail, or in a circle for itself.

    Tables wait in a circle if they exchange their names, and none can be merged up to the exchange.
    """
    results = {result.table: result for result in merged}
    awaited = results.get(awaited_table(results[table]))
    seen: set[str] = set()
    at: TableResult | None = awaited
    while at and is_waiting(at) and at.table not in seen:
        seen.add(at.table)
        at = results.get(awaited_table(at))
    return table in seen or not (awaited and (awaited.error or awaited.postponed))


def _may_help_later(table: str, results: Mapping[str, TableResult]) -> bool:
    """Return whether a later run may merge the table at the end of a chain of waiting tables.

    It may if that table failed in a way that a retry may fix, or if it is postponed.
    """
    seen: set[str] = set()
    while (result := results.get(table)) and is_waiting(result):
        if table in seen:
            return False
        seen.add(table)
        table = awaited_table(result)
    return bool(result and (result.postponed or (result.error and result.error["retryable"])))
