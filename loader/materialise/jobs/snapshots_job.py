"""The Spark job that looks up snapshots in the catalog: `spark-submit snapshots_job.py --spec FILE --result FILE`."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from loader.errors import DataError
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.spec import SnapshotsSpec
from loader.model.table import TableName
from loader.spark.job import job_main


def require_snapshots(spark: SparkSession, spec: SnapshotsSpec) -> dict[str, Any]:
    """Verify that the catalog has each snapshot.

    Raises:
        DataError: a snapshot has expired, or its table is gone.
    """
    warehouse = Warehouse(spark, spec.catalog)
    for name, snapshot in spec.snapshots.items():
        metadata = warehouse.metadata(TableName.parse(name))
        if metadata is None or not any(metadata.ancestry(snapshot)):
            raise DataError(
                "the snapshot of a view has expired" if metadata else "the table of a view is gone",
                hint="take a newer view: loader tables; snapshots of views are kept for maintain.keep_days",
                table=name,
                snapshot=snapshot,
            )
    return {"tables": sorted(spec.snapshots)}


if __name__ == "__main__":
    job_main(require_snapshots, SnapshotsSpec)
