"""Check the configuration of a Hive Metastore, by the client that Spark has."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from loader.doctor.finding import Finding, ok, warning

_SETTING = "hive.metastore.disallow.incompatible.col.type.changes"


def column_types(spark: SparkSession, uri: str) -> Finding:
    """Check that the metastore accepts another type at the place of a column.

    Args:
        spark: any session.
        uri: of the metastore; empty for the one of hive-site.xml.
    """
    jvm: Any = spark._jvm
    hadoop = spark._jsc.hadoopConfiguration()  # has the properties of Kerberos
    conf = jvm.org.apache.hadoop.hive.conf.HiveConf(hadoop, hadoop.getClass())
    if uri:
        conf.set("hive.metastore.uris", uri)
    client = jvm.org.apache.hadoop.hive.metastore.HiveMetaStoreClient(conf)
    try:
        value = str(client.getConfigValue(_SETTING, "true"))
    finally:
        client.close()
    if value.lower() == "false":
        return ok("hive_columns", f"{_SETTING} is {value}")
    return warning(
        "hive_columns",
        f"{_SETTING} is {value}: a table stops when its source drops, moves or replaces a column",
        f"set {_SETTING} to false in the configuration of the metastore, and restart it",
    )
