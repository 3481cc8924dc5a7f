"""The Spark job that replays a part of the log: `spark-submit replay_job.py --spec FILE --result FILE`."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from pyspark.sql import SparkSession

from loader.errors import UsageError
from loader.materialise.iceberg.warehouse import WarehousePool
from loader.materialise.jobs.remaining_tables import remaining_tables
from loader.materialise.merge.table_tasks import tables_at_once
from loader.materialise.plan.interval_chain import Chain
from loader.materialise.replay.table_replay import ReplayedPart, replay_table
from loader.materialise.spec import ReplayResult, ReplaySpec, TableReplay
from loader.model.table import TableName
from loader.retries import Retries
from loader.spark.job import failure, job_main
from loader.staging.chain import PlanChain
from loader.staging.documents import TableFilter
from loader.staging.filters import CapturedTables, find_unmatched
from loader.staging.notes.outdated_records import OutdatedNotes
from loader.staging.notes.pauses import Pause, Pauses
from loader.store.registry import open_store

_LOG = logging.getLogger(__name__)


def replay(spark: SparkSession, spec: ReplaySpec) -> ReplayResult:
    """Replay the tables of a source. A table that fails is reported and stops no other table.

    Nothing is published to a paused table. If it differs, that is an error.

    Raises:
        UsageError: a table of the spec is not in the warehouse.
    """
    retries = Retries()
    warehouses = retries.call(lambda: WarehousePool(spark, spec.catalog, spec.rules))
    chain = Chain(open_store(spec.staging_root), spec.source, spec.generation)
    with warehouses.borrow() as warehouse:
        known = sorted(remaining_tables(chain, chain.newest_published(), warehouse, retries))
    pauses = Pauses(chain.store, spec.source).all()
    patterns = spec.tables or ("*",)
    if (pattern := find_unmatched(patterns, known)) is not None:
        raise UsageError(
            "there is no such table in the warehouse",
            why=f"{pattern} matches none of: {', '.join(map(str, known)) or 'no tables'}",
            hint="name tables as schema.table",
        )
    meant = list(filter(CapturedTables(TableFilter(include=patterns)), known))

    def one(table: TableName) -> TableReplay:
        try:
            with warehouses.borrow() as warehouse:
                pause = pauses.get(table)
                part = ReplayedPart(spec.since_seqno, spec.until_seqno)
                publish = spec.publish and pause is None
                work = partial(
                    replay_table, warehouse, chain, table, part, publish=publish, approved_by=spec.approved_by
                )
                result = retries.call(work)
                return _refused(result, pause) if pause and spec.publish and result.status == "differs" else result
        except Exception as error:
            _LOG.error("table %s failed", table, exc_info=error)
            return TableReplay(table=str(table), status="failed", error=failure(error))

    outdated = OutdatedNotes(PlanChain(chain.store, spec.source), spec.generation)
    if spec.publish:
        outdated.add()
    with ThreadPoolExecutor(tables_at_once(spark)) as pool:
        tables = tuple(pool.map(one, meant))
    if any(table.status == "published" for table in tables):
        outdated.add()
    return ReplayResult(since_seqno=spec.since_seqno, until_seqno=spec.until_seqno, tables=tables)


def _refused(result: TableReplay, pause: Pause) -> TableReplay:
    """Return the result of a paused table that differs."""
    error = UsageError(
        "the table is paused, so its correction is not published",
        why=pause.note,
        hint=f"loader resume {pause.name.argument}; then replay it again. The branch {result.branch} has the corrected"
        " table",
        table=result.table,
    )
    return result.model_copy(update={"status": "failed", "error": error.as_dict()})


if __name__ == "__main__":
    job_main(replay, ReplaySpec)
