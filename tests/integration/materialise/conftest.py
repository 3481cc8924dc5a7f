"""The Spark that these tests share with the contract of catalogs."""

from tests.integration.materialise.live_source import live
from tests.support.catalogs import (
    hive_catalog,
    mysql_catalog,
    postgres,
    postgres_server,
    postgresql_catalog,
    rest_catalog,
)
from tests.support.spark import jars, lake, new_lake, settings, spark

__all__ = [
    "hive_catalog",
    "jars",
    "lake",
    "live",
    "mysql_catalog",
    "new_lake",
    "postgres",
    "postgres_server",
    "postgresql_catalog",
    "rest_catalog",
    "settings",
    "spark",
]
