"""The doctor's Spark job: `spark-submit job.py --spec FILE --result FILE`."""

from __future__ import annotations

import os
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from loader.doctor.finding import Check, Finding, error, examine, ok
from loader.doctor.hive import column_types
from loader.doctor.spec import DoctorSpec
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.quoting import identifier
from loader.materialise.spec import CatalogSettings
from loader.model.table import TableName
from loader.spark.job import job_main

_ANY = TableName("loader_doctor", "any")


def look(spark: SparkSession, spec: DoctorSpec) -> dict[str, Any]:
    """Return the findings of the checks that need Spark."""
    found = examine(
        [
            ("spark", lambda: _versions(spark)),
            ("staging", lambda: _staging(spark, spec.uri, spec.text)),
            ("catalog", lambda: _catalog(spark, spec.catalog)),
            *_checks_of_hive(spark, spec.catalog),
        ]
    )
    return {"findings": [one.model_dump() for one in found]}


def _checks_of_hive(spark: SparkSession, catalog: CatalogSettings) -> list[Check]:
    return [("hive_columns", lambda: column_types(spark, catalog.uri))] if catalog.type == "hive" else []


def _versions(spark: SparkSession) -> Finding:
    jvm: Any = spark._jvm
    hadoop = jvm.org.apache.hadoop.util.VersionInfo.getVersion()
    iceberg = jvm.org.apache.iceberg.IcebergBuild.version()
    return ok("spark", f"Spark {spark.version}, Hadoop {hadoop}, Iceberg {iceberg}, at {spark.sparkContext.master}")


def _staging(spark: SparkSession, uri: str, text: str) -> Finding:
    found = [row.value for row in spark.read.text(uri).collect()]
    if found != [text]:
        return error(
            "staging", f"Spark reads other data than the loader staged: {found}", "check that both use the same server"
        )
    return ok("staging", "Spark reads staged files")


def _catalog(spark: SparkSession, catalog: CatalogSettings) -> Finding:
    warehouse = Warehouse(spark, catalog)
    place = f"{catalog.name} ({catalog.type}) at {catalog.warehouse}"
    if catalog.type == "hadoop" and (found := _folder(spark, catalog.warehouse, place)):
        return found
    names = warehouse.session.sql(f"SHOW NAMESPACES IN {identifier(catalog.name)}").collect()
    warehouse.metadata(_ANY)  # a Hive Metastore 4 lists namespaces, but refuses to look up a table
    return ok("catalog", f"{place}: {len(names)} namespaces")


def _folder(spark: SparkSession, warehouse: str, place: str) -> Finding | None:
    """Check the warehouse folder. Return an error, a note that it does not exist yet, or None if it can be used."""
    jvm: Any = spark._jvm
    wanted = jvm.org.apache.hadoop.fs.Path(warehouse)
    files = wanted.getFileSystem(spark._jsc.hadoopConfiguration())
    nearest = _nearest(files, wanted)
    if not files.getFileStatus(nearest).isDirectory():
        return error("catalog", f"{place}: {nearest} is not a folder", "set warehouse.path to another folder")
    if files.getScheme() == "file":
        may_write = os.access(nearest.toUri().getPath(), os.W_OK)  # Hadoop ignores that root may write everywhere
    else:
        may_write = _allowed(files, nearest, jvm.org.apache.hadoop.fs.permission.FsAction.READ_WRITE)
    if not may_write:
        return error(
            "catalog", f"{place}: {nearest} is not writable", "allow the user of the Spark jobs to write there"
        )
    return None if nearest.equals(wanted) else ok("catalog", f"{place}, which the first load creates")


def _nearest(files: Any, wanted: Any) -> Any:
    """Return the first of the path's folders, from the root on, that is a file, or the last one that exists."""
    if wanted.isRoot():
        return wanted
    parent = _nearest(files, wanted.getParent())
    if not parent.equals(wanted.getParent()) or not files.getFileStatus(parent).isDirectory():
        return parent  # a local file system refuses to look behind a file
    return wanted if files.exists(wanted) else parent


def _allowed(files: Any, path: Any, action: Any) -> bool:
    try:
        files.access(path, action)
    except Py4JJavaError as refused:
        if "AccessControlException" not in str(refused.java_exception):
            raise
        return False
    return True


if __name__ == "__main__":
    job_main(look, DoctorSpec)
