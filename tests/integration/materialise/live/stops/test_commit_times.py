"""Commit times of a server whose clock was wrong, or of a session that set its own time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from infra.servers import Server
from loader.model.table import TableName
from loader.pipeline.reports.lag import source_lag
from loader.pipeline.reports.table_progress import has_time
from tests.integration.materialise.live_source import LiveSource, live_source

pytestmark = pytest.mark.integration


@pytest.fixture
def mariadb(spark: SparkSession, mariadb_server: Server, tmp_path: Path) -> Iterator[LiveSource]:
    """A database on MariaDB, which logs the time that a session has set."""
    with live_source(spark, mariadb_server, tmp_path) as found:
        yield found


@pytest.mark.sweep
def test_a_transaction_with_a_time_to_come_does_not_hide_the_lag(mariadb: LiveSource) -> None:
    mariadb.run("CREATE TABLE t (id INT PRIMARY KEY)")
    mariadb.load()
    mariadb.run("SET timestamp = UNIX_TIMESTAMP('2037-01-01')", "INSERT INTO t VALUES (1)")
    mariadb.delta()
    mariadb.run("INSERT INTO t VALUES (2)")
    after = moment_after_now()
    assert (has_goal(mariadb, after), source_lag(mariadb.settings).lag_seconds) == (False, None)
    mariadb.delta()
    assert has_goal(mariadb, after)
    mariadb.run("INSERT INTO t VALUES (3)")
    later = moment_after_now()
    assert not has_goal(mariadb, later)
    assert 0 < (source_lag(mariadb.settings).lag_seconds or 0) < 300
    mariadb.delta()
    mariadb.run("INSERT INTO t VALUES (4)")
    assert has_goal(mariadb, after)  # a later transaction proves it


def has_goal(source: LiveSource, goal: str) -> bool:
    return has_time(source.settings, TableName(source.database, "t"), goal)


def moment_after_now() -> str:
    """Return the next but one full second, and wait until it is over: the log has commit times in seconds."""
    seconds = int(time.time()) + 2
    time.sleep(max(0.0, seconds + 1.1 - time.time()))
    return datetime.fromtimestamp(seconds, UTC).isoformat()
