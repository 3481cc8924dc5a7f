"""The Spark job that maintains a source's tables: `spark-submit maintain_job.py --spec FILE --result FILE`."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession

from loader.errors import UsageError
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.jobs.remaining_tables import remaining_tables
from loader.materialise.maintain.maintenance import Maintenance, Policy
from loader.materialise.maintain.snapshot_retention import find_viewed_snapshots
from loader.materialise.maintain.spec import MaintainResult, MaintainSpec, TableMaintained
from loader.materialise.merge.table_selection import known_tables
from loader.materialise.plan.interval_chain import Chain
from loader.model.table import TableName
from loader.retries import Retries
from loader.spark.job import failure, job_main
from loader.store.registry import open_store

_LOG = logging.getLogger(__name__)


def maintain(spark: SparkSession, spec: MaintainSpec) -> MaintainResult:
    """Maintain each table. A table that fails is reported and stops no other table.

    Raises:
        UsageError: a table in the spec was never loaded.
    """
    retries = Retries()
    warehouse = retries.call(lambda: Warehouse(spark, spec.catalog))
    store = open_store(spec.staging_root)
    chain = Chain(store, spec.source, spec.generation)
    now = datetime.now(UTC)
    before = now - timedelta(days=spec.keep_days)
    viewed, record = find_viewed_snapshots(store, spec.source, spec.generation, before), chain.newest_published()
    behind = min(record.merged_behind, default=None) if record else None
    policy = Policy(before, viewed, now, spec.dry_run, behind)
    if spec.tables:
        tables = _chosen(known_tables(chain, record), spec)
    else:
        tables = sorted(remaining_tables(chain, record, warehouse, retries))
    done = tuple(_one(Maintenance(warehouse, table, policy), table, chain, retries) for table in tables)
    return MaintainResult(tables=done, dry_run=spec.dry_run)


def _chosen(known: set[TableName], spec: MaintainSpec) -> list[TableName]:
    wanted = set(map(TableName.parse, spec.tables))
    if unknown := wanted - known:
        raise UsageError(
            "tables that were never loaded cannot be maintained",
            hint="loader status lists the loaded tables",
            source=spec.source,
            tables=", ".join(map(str, sorted(unknown))),
        )
    return sorted(wanted)


def _one(maintenance: Maintenance, table: TableName, chain: Chain, retries: Retries) -> TableMaintained:
    try:
        done = retries.call(lambda: maintenance.run(chain.source, chain.logs))
    except Exception as error:
        _LOG.error("table %s failed", table, exc_info=error)
        return TableMaintained(table=str(table), error=failure(error))
    _LOG.info("%s: %d files compacted, %d snapshots expired", table, done.compacted, done.expired)
    return done


if __name__ == "__main__":
    job_main(maintain, MaintainSpec)
