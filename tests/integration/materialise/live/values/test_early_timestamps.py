"""MariaDB stores the fractions of the first second of 1970, which are no zero dates."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from infra.servers import Server
from loader.materialise.rules import TableRule
from tests.integration.materialise.live_source import LiveSource, live_source

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]


@pytest.fixture
def source(spark: SparkSession, mariadb_server: Server, tmp_path: Path) -> Iterator[LiveSource]:
    with live_source(spark, mariadb_server, tmp_path) as found:
        rule = TableRule(tables=("*.t",), on_misfit="null")
        found.settings = found.settings.model_copy(update={"rules": (rule,)})
        yield found


def test_a_fraction_of_the_first_second_is_no_invalid_date(source: LiveSource) -> None:
    utc = "SET time_zone = '+00:00', sql_mode = ''"
    source.run("CREATE TABLE t (id INT PRIMARY KEY, at TIMESTAMP(6) NULL)")
    source.run(utc, "INSERT INTO t VALUES (4, '1970-01-01 00:00:00.5')")
    source.load()
    source.run(
        utc,
        "INSERT INTO t VALUES (1, '1970-01-01 00:00:00.5'), (2, '1970-01-01 00:00:00.000001'), (3, '0000-00-00')",
    )
    assert source.delta().exit_code == 0
    first = datetime(1970, 1, 1, tzinfo=UTC)
    half, least = first.replace(microsecond=500_000), first.replace(microsecond=1)
    assert set(source.warehouse_rows("t") or ()) == {(half, 1), (least, 2), (None, 3), (half, 4)}
