"""One run over all tables of a source: how far each stands, two merged at a time, one record at the end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from pyspark.sql import SparkSession

from loader.job import failure
from loader.materialise.chain import Chain, read_load
from loader.materialise.isolation import Isolation, standing
from loader.materialise.load import load_table, load_work
from loader.materialise.merge import merge_table
from loader.materialise.plan import Merge
from loader.materialise.published import publish
from loader.materialise.spec import LoadSpec, MaterialiseResult, MaterialiseSpec, TableResult
from loader.materialise.standing import plan_merge
from loader.materialise.warehouse import Warehouse, Warehouses
from loader.model.table import TableName
from loader.retries import Retries
from loader.staging.chain import PlanChain
from loader.staging.documents import Published
from loader.staging.quarantine import Quarantines
from loader.store.opening import open_store

Result = TypeVar("Result")

_LOG = logging.getLogger(__name__)
AT_ONCE = 2  # tables; while one plans and commits, which is the driver's work alone, another one computes


def materialise(spark: SparkSession, spec: MaterialiseSpec) -> MaterialiseResult:
    """Bring every table of the source to the spec's stop. A table that fails is reported and stops no other.

    One that fails in a way that a retry cannot help is quarantined.

    Raises:
        LoaderError: nothing could be begun.
    """
    retries = Retries()
    warehouse = retries.call(lambda: Warehouse(spark, spec.catalog, spec.rules))
    chain = Chain(open_store(spec.staging_root), spec.source, spec.generation)
    last = chain.target(spec.through_seqno)
    if last is None:
        return MaterialiseResult(tables=())
    record = chain.newest_published()
    stop = last.stop_seqno
    isolation = Isolation(warehouse, Quarantines(chain.store, spec.source), last)
    changed = _changed(chain, record, stop)

    warehouses = Warehouses(spark, spec.catalog, spec.rules)

    def bring(table: TableName, target: int) -> TableResult:
        with warehouses.one() as mine:
            return retries.call(lambda: merge_table(mine, chain, table, target, record))

    before = _stepwise(warehouse, chain, isolation, record, stop, bring)
    done: list[TableResult] = []
    todo: list[tuple[int, TableName]] = []
    for table in sorted(changed | known_tables(chain, record) | set(before)):
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
    done += _all(biggest_first, lambda table: bring(table, stop))
    earlier = {str(table): result for table, result in before.items()}
    done = [earlier[one.table].followed_by(one) if one.table in earlier else one for one in done]
    done = sorted(isolation.judged(done), key=lambda result: result.table)
    failed = any(result.status == "failed" for result in done)
    return MaterialiseResult(
        tables=tuple(done),
        stop=last.stop,
        stop_seqno=stop,
        published="" if failed else publish(chain, last, done),
    )


def load(spark: SparkSession, spec: LoadSpec) -> MaterialiseResult:
    """Materialise initial loads, each of one table. One that fails is reported and stops no other.

    Raises:
        LoaderError: a manifest cannot be read.
    """
    retries = Retries()
    warehouses = retries.call(lambda: Warehouses(spark, spec.catalog, spec.rules))
    store = open_store(spec.staging_root)
    lineage = [one.name for one in PlanChain(store, spec.source).lineage(spec.generation)]
    read = [read_load(store, key, spec.source, lineage) for key in spec.manifests]
    # Of several loads of one table only the newest one matters.
    manifests = {load_work(one).name: one for one in sorted(read, key=lambda one: one.start_seqno)}
    biggest_first = sorted(manifests, key=lambda table: -sum(file.bytes for file in manifests[table].files))

    def load_one(table: TableName) -> TableResult:
        with warehouses.one() as mine:
            return retries.call(lambda: load_table(mine, store, manifests[table], lineage))

    done = _all(biggest_first, load_one)
    quarantines = Quarantines(store, spec.source)
    for one in done:
        if one.applied_seqno is not None:  # a table that stands elsewhere than where it failed is released
            quarantines.still(TableName.parse(one.table), one.applied_seqno)
    return MaterialiseResult(tables=tuple(sorted(done, key=lambda result: result.table)))


def _survey(
    warehouse: Warehouse,
    chain: Chain,
    isolation: Isolation,
    table: TableName,
    stop: int,
    record: Published | None,
    changed: bool,
) -> Merge | TableResult | None:
    """What a table needs, how it stands when it needs nothing, or None while it is neither loaded nor changed."""
    history = warehouse.history(table)
    if stopped := isolation.stopped(table, history):
        return stopped
    if not changed and (history is None or history.applied is None):
        return None
    return plan_merge(warehouse, history, chain, table, stop, record)


def _stepwise(
    warehouse: Warehouse,
    chain: Chain,
    isolation: Isolation,
    record: Published | None,
    stop: int,
    bring: Callable[[TableName, int], TableResult],
) -> dict[TableName, TableResult]:
    """Bring tables to where they have to be before they go further; what was done to them.

    A table that fails here fails again, and is reported, when it is brought further.
    """
    done: dict[TableName, TableResult] = {}
    for target, named in _steps(chain, _known(chain, warehouse, isolation, record, stop), stop):
        tables = [table for table in named if not isolation.stopped(table, warehouse.history(table))]
        there = [table for table in tables if warehouse.history(table) or chain.born(table, target) is not None]
        for result in _all(there, partial(_to, bring, target)):
            table = TableName.parse(result.table)
            if result.status == "applied":
                done[table] = done[table].followed_by(result) if table in done else result
    return done


def _steps(chain: Chain, known: int, stop: int) -> Iterator[tuple[int, tuple[TableName, ...]]]:
    """Positions and the tables that are brought there.

    All tables of a statement that gives one the name of another go to right before it, then over it: so each finds the
    other one as it was. A table with rows that are not staged goes to right before the first, where it then stops.
    """
    for seqno, named in chain.renames(known, stop):
        yield seqno - 1, named
        yield seqno, named
    for seqno, table in chain.left_out(known, stop):
        yield seqno - 1, (table,)


def _known(chain: Chain, warehouse: Warehouse, isolation: Isolation, record: Published | None, stop: int) -> int:
    """The seqno up to which every table that can be brought on has the log.

    A table that is quarantined is not brought on. One that was released may not have come as far as the record.
    """
    known = record.stop_seqno if record else 0
    for name, seqno in record.behind.items() if record else ():
        table = TableName.parse(name)
        found = _guarded(table, partial(_reached, chain, warehouse, isolation, table, stop))
        known = min(known, seqno if isinstance(found, TableResult) else found)
    return known


def _reached(chain: Chain, warehouse: Warehouse, isolation: Isolation, table: TableName, stop: int) -> int:
    """The seqno up to which a table has the log; `stop` for a table that is not brought on."""
    history = warehouse.history(table)
    if isolation.stopped(table, history):
        return stop
    applied = standing(history)
    born = applied.seqno if applied else chain.born(table, stop)
    return stop if born is None else born


def _to(bring: Callable[[TableName, int], TableResult], target: int, table: TableName) -> TableResult:
    return bring(table, target)


def _changed(chain: Chain, record: Published | None, stop: int) -> set[TableName]:
    """Tables with records, staged or left out, that no published record has: also those not in the warehouse."""
    low = record.stop_seqno if record else 0
    behind = map(TableName.parse, record.behind) if record else ()
    staged = {file.name for manifest in chain.between(low, stop) for file in manifest.files if file.rows}
    return staged | {table for _, table in chain.left_out(low, stop)} | set(behind)


def known_tables(chain: Chain, record: Published | None) -> set[TableName]:
    """Tables that the warehouse has, or will have once their initial load is materialised."""
    # `check_name` lets no table into the warehouse, and so into a record, whose name has a dot.
    known = {TableName(*name.split(".", 1)) for name in record.tables} if record else set()
    return known | set(chain.loaded(known))


def _all(tables: Sequence[TableName], work: Callable[[TableName], TableResult]) -> list[TableResult]:
    """The work done for every table, begun in the order given."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
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
