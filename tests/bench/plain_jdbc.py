"""What a person writes without a loader: `spark.read.jdbc` into a new Iceberg table.

python plain_jdbc.py URL USER TABLE COLUMN LOW HIGH PARTITIONS FETCH_ROWS WAREHOUSE
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession


def main() -> None:
    """Copy the table."""
    url, user, table, column, low, high, partitions, fetch, warehouse = sys.argv[1:]
    spark = (
        SparkSession.builder.config("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.lake.type", "hadoop")
        .config("spark.sql.catalog.lake.warehouse", warehouse)
        .getOrCreate()
    )
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.bench")
    rows = spark.read.jdbc(
        url,
        table,
        column=column,
        lowerBound=low,
        upperBound=high,
        numPartitions=int(partitions),
        properties={"user": user, "driver": "com.mysql.cj.jdbc.Driver", "fetchsize": fetch},
    )
    rows.writeTo(f"lake.{table}").using("iceberg").create()
    print(spark.table(f"lake.{table}").count())
    spark.stop()


if __name__ == "__main__":
    main()
