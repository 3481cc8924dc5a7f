"""A real Airflow: deltas of the other tables go on while an initial load reads."""

from __future__ import annotations

from collections.abc import Iterator

import pymysql
import pytest

from tests.e2e.airflow.running.server import DELTA, LOAD, Airflow, running, until
from tests.e2e.changes import changes
from tests.e2e.loaded import TABLES, Loaded

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1200),
    pytest.mark.sweep,
]
_NEW = "shop.more_orders"


@pytest.fixture
def airflow(empty: Loaded) -> Iterator[Airflow]:
    empty.configure()
    with empty.config.open("a", encoding="utf-8") as config:
        config.write("[sources.shop.initial_load]\nreaders = 1\n")
    found = Airflow(empty.home / "airflow", empty.config)
    found.prepare()
    with running(found):
        yield found


def test_deltas_go_on_while_a_table_is_read(airflow: Airflow, empty: Loaded) -> None:
    airflow.unpause(LOAD)
    airflow.wait_for(LOAD, airflow.trigger(LOAD), "success")
    empty.execute(f"CREATE TABLE {_NEW} LIKE shop.orders", f"INSERT INTO {_NEW} SELECT * FROM shop.orders")
    server = empty.server
    with pymysql.connect(host=server.host, port=server.port, user=server.user) as other, other.cursor() as cursor:
        cursor.execute("SELECT GET_LOCK('binlog-loader reader 1', 0)")
        assert cursor.fetchone() == (1,)
        load = airflow.trigger(LOAD, tables=[_NEW])
        full = "waiting before the next chunk: 1 readers of this loader or of others read the server"
        until("a waiting reader", lambda: any(full in one.read_text() for one in airflow.home.rglob("attempt=*.log")))
        empty.execute(*changes(1))
        airflow.unpause(DELTA)
        delta = airflow.trigger(DELTA)
        airflow.wait_for(DELTA, delta, "success")
        assert empty.differences() == dict.fromkeys(TABLES, 0)
        assert airflow.tasks(LOAD, load)["read_tables"]["state"] == "running"
    airflow.wait_for(LOAD, load, "success")
    empty.execute(f"DELETE FROM {_NEW} LIMIT 3")
    airflow.wait_for(DELTA, airflow.trigger(DELTA), "success")
    assert empty.differences((*TABLES, _NEW)) == dict.fromkeys((*TABLES, _NEW), 0)
