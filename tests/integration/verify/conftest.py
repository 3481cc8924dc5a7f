"""Both servers, each with a schema for the test, and the Spark of the tests."""

from tests.integration.initial_load.conftest import mysql, source
from tests.integration.materialise.conftest import (
    jars,
    lake,
    live,
    new_lake,
    postgres_server,
    postgresql_catalog,
    settings,
    spark,
)

__all__ = [
    "jars",
    "lake",
    "live",
    "mysql",
    "new_lake",
    "postgres_server",
    "postgresql_catalog",
    "settings",
    "source",
    "spark",
]
