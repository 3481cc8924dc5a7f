"""One run over all tables of a source: how far each stands, two merged at a time, one record at the end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from pyspark.sql import SparkSession

from loader.errors import LoaderError, UnsupportedError
from loader.materialise.iceberg.warehouse import Warehouse, WarehousePool
from loader.materialise.merge.load_notes import note_loaded
from loader.materialise.merge.merge_planner import (
    WaitingForTable,
    no_progress_error,
    plan_merge,
    rows_unavailable_error,
)
from loader.materialise.merge.published_record import publish
from loader.materialise.merge.quarantine import RunQuarantine, is_permanent_failure, known_applied
from loader.materialise.merge.table_load import load_table, load_work
from loader.materialise.merge.table_merge import merge_table
from loader.materialise.plan.interval_chain import Chain, read_load_manifest
from loader.materialise.plan.lifetimes import find_new_life
from loader.materialise.plan.merge_plan import Merge
from loader.materialise.spec import LoadSpec, MaterialiseResult, MaterialiseSpec, TableResult
from loader.model.table import TableName
from loader.retries import Retries
from loader.spark.job import failure, on_one_machine
from loader.staging.chain import PlanChain
from loader.staging.documents import Published
from loader.staging.quarantine import Quarantines
from loader.staging.refusals import note_refusal
from loader.store.registry import open_store

Result = TypeVar("Result")

_LOG = logging.getLogger(__name__)
_ON_ONE_MACHINE = 2  # tables at once: while one plans and commits, the driver's work alone, another one computes
_ON_A_CLUSTER = (4, 16)  # the fewest and the most tables at once


def materialise(spark: SparkSession, spec: MaterialiseSpec) -> MaterialiseResult:
    """Bring every table of the source to the spec's stop. A table that fails is reported and stops no other.

    One that fails in a way that a retry cannot help is quarantined.

    Raises:
        Superseded: another server is followed since, from before the newest interval of this generation on.
        LoaderError: nothing could be begun.
    """
    retries = Retries()
    warehouse = retries.call(lambda: Warehouse(spark, spec.catalog, spec.rules))
    chain = Chain(open_store(spec.staging_root), spec.source, spec.generation)
    last = chain.interval_ending_at(spec.through_seqno)
    if last is None:
        return MaterialiseResult(tables=())
    PlanChain(chain.store, spec.source).check_not_superseded(last.generation, last.stop_seqno)
    record = chain.newest_published()
    stop = last.stop_seqno
    isolation = RunQuarantine(warehouse, Quarantines(chain.store, spec.source), last)
    changed = _changed(chain, record, stop)

    warehouses = WarehousePool(spark, spec.catalog, spec.rules)

    passed: dict[TableName, LoaderError] = {}

    def bring(table: TableName, target: int, *, last: bool = False) -> TableResult:
        with warehouses.borrow() as mine:
            merge = partial(merge_table, mine, chain, table, target, record, settle=target != stop)
            try:
                return retries.call(merge)
            except (
                UnsupportedError,
                WaitingForTable,
            ) as error:  # files that are lost can be restored, and rules changed
                may_come = isinstance(error, WaitingForTable) and not last
                since = None if may_come else _later_life(mine, chain, record, table, target)
                if since is None:
                    raise
                _LOG.warning("%s: %s; the table was dropped, renamed or made again since", table, error.what)
                passed[table] = error
                return retries.call(partial(merge, since=since))

    before, failed = _stepwise(warehouse, chain, isolation, record, stop, bring)
    changed |= failed
    done: list[TableResult] = []
    todo: list[tuple[int, TableName]] = []
    for table in sorted(changed | known_tables(chain, record) | _named(chain, record, stop) | isolation.quarantined):
        if not chain.captures(last.start_seqno, table):
            _LOG.warning("%s is not captured any more; it stays as it is", table)
            continue
        survey = partial(_survey, warehouse, chain, isolation, table, stop, record, table in changed)
        found = _guarded(table, partial(retries.call, survey))
        if isinstance(found, Merge):
            todo.append((sum(file.bytes for file in found.files), table))
        elif found is not None:
            done.append(found)
    biggest_first = [table for _, table in sorted(todo, reverse=True)]
    count = tables_at_once(spark)
    done += _all(biggest_first, lambda table: bring(table, stop), count)
    done = _waited(done, lambda table, last: bring(table, stop, last=last), stop, count, passed)
    earlier = {str(table): result for table, result in before.items()}
    done = [earlier[one.table].followed_by(one) if one.table in earlier else one for one in done]
    done = sorted(isolation.quarantine_failures(done), key=lambda result: result.table)
    incomplete = any(result.status == "failed" for result in done)
    return MaterialiseResult(
        tables=tuple(done),
        stop=last.stop,
        stop_seqno=stop,
        published="" if incomplete else publish(chain, last, done),
    )


def load(spark: SparkSession, spec: LoadSpec) -> MaterialiseResult:
    """Materialise initial loads, each of one table. One that fails is reported and stops no other.

    Raises:
        LoaderError: a manifest cannot be read.
    """
    retries = Retries()
    warehouses = retries.call(lambda: WarehousePool(spark, spec.catalog, spec.rules))
    store = open_store(spec.staging_root)
    lineage = [one.name for one in PlanChain(store, spec.source).lineage(spec.generation)]
    read = [(read_load_manifest(store, key, spec.source, lineage), key) for key in spec.manifests]
    read.sort(key=lambda one: one[0].start_seqno)
    # Of several loads of one table only the newest one matters.
    manifests = {load_work(one).name: one for one, _ in read}
    keys = {str(load_work(one).name): key for one, key in read}
    biggest_first = sorted(manifests, key=lambda table: -sum(file.bytes for file in manifests[table].files))

    def load_one(table: TableName) -> TableResult:
        with warehouses.borrow() as mine:
            return retries.call(lambda: load_table(mine, store, manifests[table], lineage))

    done = _all(biggest_first, load_one, tables_at_once(spark))
    quarantines = Quarantines(store, spec.source)
    for one in done:
        if one.applied_seqno is not None:  # a table that stands elsewhere than where it failed is released
            quarantines.still(TableName.parse(one.table), one.applied_seqno)
            note_loaded(store, spec, one, keys[one.table])
        elif one.error and is_permanent_failure(one):
            note_refusal(store, spec.source, TableName.parse(one.table), one.error)
    return MaterialiseResult(tables=tuple(sorted(done, key=lambda result: result.table)))


def _survey(
    warehouse: Warehouse,
    chain: Chain,
    isolation: RunQuarantine,
    table: TableName,
    stop: int,
    record: Published | None,
    changed: bool,
) -> Merge | TableResult | None:
    """What a table needs, how it stands when it needs nothing, or None while it is neither loaded nor changed."""
    metadata = warehouse.metadata(table)
    stopped = isolation.find_quarantined(table, metadata)
    if stopped:
        low = record.stop_seqno if record else 0
        # What it stopped at is of no more account once the table was dropped; it could not be loaded again then.
        if find_new_life(table, chain.intervals_between(low, stop), low, stop) is None:
            return stopped
    if not changed and not stopped and (metadata is None or metadata.applied is None):
        return None
    return plan_merge(warehouse, metadata, chain, table, stop, record)


def _stepwise(
    warehouse: Warehouse,
    chain: Chain,
    isolation: RunQuarantine,
    record: Published | None,
    stop: int,
    bring: Callable[[TableName, int], TableResult],
) -> tuple[dict[TableName, TableResult], set[TableName]]:
    """Bring tables to where they have to be before they go further; what was done to them, and those that failed.

    A table that fails here fails again, and is reported, when it is brought further.
    """
    done: dict[TableName, TableResult] = {}
    failed: set[TableName] = set()
    for target, named in _steps(chain, _known(chain, warehouse, isolation, record, stop), stop):
        there = partial(_is_there, warehouse, chain, isolation, target)
        found = {table: _guarded(table, partial(there, table)) for table in named}
        failed |= {table for table, one in found.items() if isinstance(one, TableResult)}
        tables = [table for table, one in found.items() if one is True]
        for result in _all(tables, partial(_to, bring, target), tables_at_once(warehouse.session)):
            table = TableName.parse(result.table)
            if result.status == "applied":
                done[table] = done[table].followed_by(result) if table in done else result
            elif result.status == "failed":
                failed.add(table)
    return done, failed


def _is_there(warehouse: Warehouse, chain: Chain, isolation: RunQuarantine, target: int, table: TableName) -> bool:
    """Return whether a table is in the warehouse, or was made in the log up to `target`, and is not quarantined."""
    metadata = warehouse.metadata(table)
    if isolation.find_quarantined(table, metadata):
        return False
    return metadata is not None or chain.find_origin(table, target).seqno is not None


def _later_life(
    warehouse: Warehouse, chain: Chain, record: Published | None, table: TableName, target: int
) -> int | None:
    """Return the seqno up to which nothing of a table counts that failed; None if all of it does."""
    if warehouse.rule(table).mode != "mirror":
        return None
    applied = known_applied(warehouse.metadata(table))
    low = applied.seqno if applied else record.stop_seqno if record else 0
    return find_new_life(table, chain.intervals_between(low, target), low, target)


def _waited(
    done: Sequence[TableResult],
    bring: Callable[[TableName, bool], TableResult],
    stop: int,
    count: int,
    passed: Mapping[TableName, LoaderError],
) -> list[TableResult]:
    """Bring the tables that waited for another one to the stop, now that the others are there.

    One that was dropped since goes on behind that, also where the other one has stopped, but not where a retry may
    bring the other one: another table may have to take the rows that it had until then.
    A table that waits again, for one that did not fail, makes no progress: another run would not help it either. Unless
    the other one is among those that `passed` over what they could not apply: its rows are not known then.
    """
    first = {one.table: one for one in done}
    second = {
        one.table: one
        for one in _all(_waiting(done), lambda table: bring(table, not _may_come(str(table), first)), count)
    }
    found = [second.get(one.table, one) for one in done]
    failed = {one.table for one in found if one.error}
    stalled = {str(table) for table in _waiting(found) if _awaited(second[str(table)]) not in failed}
    return [_stalled(one, stop, passed) if one.table in stalled else one for one in found]


def _may_come(table: str, results: Mapping[str, TableResult]) -> bool:
    """Return whether a table waits, at last, for one that failed in a way that a retry can help."""
    seen: set[str] = set()
    while (found := results.get(table)) and found.error and found.error["error"] == WaitingForTable.__name__:
        if table in seen:
            return False
        seen.add(table)
        table = _awaited(found)
    return bool(found and found.error and found.error["retryable"])


def _waiting(results: Sequence[TableResult]) -> list[TableName]:
    return [
        TableName.parse(one.table) for one in results if one.error and one.error["error"] == WaitingForTable.__name__
    ]


def _awaited(result: TableResult) -> str:
    return str(result.error["where"].get("table", "")) if result.error else ""


def _stalled(result: TableResult, stop: int, passed: Mapping[TableName, LoaderError]) -> TableResult:
    table, other = TableName.parse(result.table), TableName.parse(_awaited(result))
    why = str(result.error["what"]) if result.error else ""
    error = (
        rows_unavailable_error(other, table, passed[other]) if other in passed else no_progress_error(table, stop, why)
    )
    return result.model_copy(update={"error": error.as_dict()})


def _steps(chain: Chain, known: int, stop: int) -> Iterator[tuple[int, tuple[TableName, ...]]]:
    """Positions and the tables that are brought there.

    All tables of a statement that gives one the name of another go to right before it, then over it: so each finds the
    other one as it was. A table with rows that are not staged goes to right before the first, where it then stops;
    so does one with rows that a statement changed.
    """
    for seqno, named in chain.rename_statements(known, stop):
        yield seqno - 1, named
        yield seqno, named
    for seqno, named in chain.unlogged_statements(known, stop):
        yield seqno - 1, named
    for seqno, table in chain.incomplete_tables(known, stop):
        yield seqno - 1, (table,)


def _known(chain: Chain, warehouse: Warehouse, isolation: RunQuarantine, record: Published | None, stop: int) -> int:
    """The seqno up to which every table that can be brought on has the log.

    A table that is quarantined is not brought on. One that was released may not have come as far as the record.
    """
    known = record.stop_seqno if record else 0
    for name, seqno in record.behind.items() if record else ():
        table = TableName.parse(name)
        found = _guarded(table, partial(_reached, chain, warehouse, isolation, table, stop))
        known = min(known, seqno if isinstance(found, TableResult) else found)
    return known


def _reached(chain: Chain, warehouse: Warehouse, isolation: RunQuarantine, table: TableName, stop: int) -> int:
    """The seqno up to which a table has the log; `stop` for a table that is not brought on."""
    metadata = warehouse.metadata(table)
    if isolation.find_quarantined(table, metadata):
        return stop
    applied = known_applied(metadata)
    born = applied.seqno if applied else chain.find_origin(table, stop).seqno
    return stop if born is None else born


def _to(bring: Callable[[TableName, int], TableResult], target: int, table: TableName) -> TableResult:
    return bring(table, target)


def _changed(chain: Chain, record: Published | None, stop: int) -> set[TableName]:
    """Tables with records, staged or left out, that no published record has: also those not in the warehouse."""
    low = record.stop_seqno if record else 0
    behind = map(TableName.parse, record.behind) if record else ()
    staged = {file.name for manifest in chain.intervals_between(low, stop) for file in manifest.files if file.rows}
    return staged | {table for _, table in chain.incomplete_tables(low, stop)} | set(behind)


def _named(chain: Chain, record: Published | None, stop: int) -> set[TableName]:
    """Tables that statements are about that no published record has: one without records is found by them alone."""
    low = record.stop_seqno if record else 0
    named = {
        name for manifest in chain.intervals_between(low, stop) for one in manifest.barriers for name in one.tables
    }
    return set(map(TableName.parse, named))


def known_tables(chain: Chain, record: Published | None) -> set[TableName]:
    """Tables that the warehouse has, or will have once their initial load is materialised."""
    known = set(map(TableName.parse, record.tables)) if record else set()
    return known | set(chain.tables_with_load(known))


def tables_at_once(spark: SparkSession) -> int:
    """Return how many tables are worked on at once: on a cluster more with more cores."""
    if on_one_machine(spark):
        return _ON_ONE_MACHINE
    fewest, most = _ON_A_CLUSTER
    return max(fewest, min(most, spark.sparkContext.defaultParallelism // 2))


def _all(tables: Sequence[TableName], work: Callable[[TableName], TableResult], count: int) -> list[TableResult]:
    """Do the work for every table, `count` at once, begun in the order given."""
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda table: _guarded(table, partial(work, table)), tables))


def _guarded(table: TableName, work: Callable[[], Result]) -> Result | TableResult:
    """What the work returns, or the report of its failure: one table's failure is not another one's."""
    try:
        result = work()
    except Exception as error:
        _LOG.error("table %s failed", table, exc_info=error)
        return TableResult(table=str(table), status="failed", error=failure(error))
    if isinstance(result, TableResult):
        _LOG.info("%s: %s, at %s", table, result.status, result.position)
    return result
