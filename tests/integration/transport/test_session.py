"""Connections to servers whose own settings would cut results short, or let other rows in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pymysql
import pytest
from pymysql.connections import Connection

from infra.servers import NEW_MARIADB
from infra.servers.process import wait_until
from loader.errors import UsageError
from loader.initial_load.result_set.reader import ResultReader, prepare_session
from loader.source.bulk_schemas import read_tables
from loader.source.schemas import find_tables, read_key, read_schemas
from loader.source.server_facts import WrongSettings, check_settings, query
from loader.transport.server.connection import log_sizes
from loader.transport.server.session import COMMON, set_variables
from tests.conftest import StartServer
from tests.integration.initial_load.loading import plan_of, read_chunks
from tests.integration.initial_load.source_server import SourceServer

pytestmark = pytest.mark.integration

HOSTILE = {
    "completion_type": "RELEASE",
    "autocommit": "0",
    "time_zone": "+05:00",
    "sql_mode": "ANSI_QUOTES,PAD_CHAR_TO_FULL_LENGTH",
    "net_write_timeout": "1",
    "wait_timeout": "1",
    "max_join_size": "1",
    "sql_big_selects": "0",
    "sql_select_limit": "2",
}
OF_ONE_KIND = {
    "mysql": {"max_execution_time": "1", "transaction_isolation": "READ-UNCOMMITTED"},
    "mariadb": {
        "max_statement_time": "0.000001",
        "tx_isolation": "READ-UNCOMMITTED",
        "idle_transaction_timeout": "1",
        "idle_readonly_transaction_timeout": "1",
    },
}


@pytest.fixture(params=["mysql", "mariadb", NEW_MARIADB])
def hostile(request: pytest.FixtureRequest, fresh_server: StartServer) -> SourceServer:
    """A server with a few tables and such settings."""
    kind = "mysql" if request.param == "mysql" else "mariadb"
    source = SourceServer(fresh_server(kind, {}, request.param if request.param == NEW_MARIADB else None))
    source.run(
        *(f"CREATE TABLE t{n} (b INT, a INT, c VARCHAR(9), PRIMARY KEY (a, b, c))" for n in range(5)),
        "INSERT INTO t1 VALUES (1, 1, 'x'), (2, 2, 'x'), (3, 3, 'x'), (4, 4, 'x')",
        "FLUSH BINARY LOGS",
        "FLUSH BINARY LOGS",
        "FLUSH BINARY LOGS",
        "SET GLOBAL binlog_row_image = MINIMAL",
    )
    for name, value in (OF_ONE_KIND[kind] | HOSTILE).items():
        source.run(f"SET GLOBAL {name} = {value if value.replace('.', '').isdecimal() else repr(value)}")
    return source


def test_nothing_is_cut_by_the_settings_of_a_server(hostile: SourceServer, tmp_path: Path) -> None:
    names = [hostile.name(f"t{n}") for n in range(5)]
    with hostile.connected() as connection:
        assert find_tables(connection, lambda name: name.schema == hostile.schema) == names
        assert list(read_tables(connection, lambda name: name.schema == hostile.schema).tables) == names
        schema = read_schemas(connection, names)[1]
        assert [column.name for column in schema.columns] == ["b", "a", "c"]
        key = read_key(connection, names[1])
        assert key is not None and key.names == ("a", "b", "c")
        assert len(log_sizes(connection)) == 4
        with pytest.raises(WrongSettings, match="binlog_row_image"):
            check_settings(connection)
        assert query(connection, f"SELECT COUNT(*) FROM {hostile.schema}.t1, {hostile.schema}.t1 x") == [(16,)]
    plan = plan_of(hostile, tmp_path, "t1", 3)
    assert plan.bounds == (("3", "3", "78"),)
    assert [len(chunk) for chunk in read_chunks(hostile, plan)] == [3, 1]


def test_idle_connections_are_kept(hostile: SourceServer) -> None:
    """A connection of another program is closed meanwhile."""
    other = pymysql.connect(host=hostile.server.host, port=hostile.server.port, user=hostile.server.user)
    with hostile.connected() as asking, hostile.connected() as idle:
        query(idle, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
        alive = f"SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {other.thread_id()}"
        assert wait_until(lambda: query(asking, alive) == [(0,)], 30)
        assert query(idle, f"SELECT COUNT(*) FROM {hostile.schema}.t1") == [(4,)]


def test_only_committed_rows_are_read_and_transactions_end_as_they_should(hostile: SourceServer) -> None:
    with hostile.connected() as writer, hostile.connected() as connection:
        schema = read_schemas(connection, [hostile.name("t0")])[0]
        query(writer, "BEGIN")
        query(writer, f"INSERT INTO {hostile.schema}.t0 VALUES (1, 1, '')")
        prepare_session(connection)
        reader = ResultReader(connection, schema, b"")
        assert reader.read(f"SELECT b, a, c FROM {hostile.schema}.t0", lambda _: None) == 0
        query(connection, "START TRANSACTION")
        query(connection, "ROLLBACK")
        assert query(connection, "SELECT 1") == [(1,)]
        query(writer, "ROLLBACK")


def test_variables_that_a_session_does_not_keep(hostile: SourceServer) -> None:
    """As behind a proxy that gives each statement to another connection."""

    class Elsewhere:
        def __init__(self, connection: Connection[Any]) -> None:
            self._connection = connection

        def cursor(self) -> Any:
            query(self._connection, "SET SESSION sql_select_limit = 1000")
            return self._connection.cursor()

    with hostile.connected() as connection:
        set_variables(connection)
        with pytest.raises(UsageError, match="session variables of a connection changed") as caught:
            set_variables(Elsewhere(connection))
    assert caught.value.why == f"sql_select_limit is '1000' and not '{COMMON['sql_select_limit']}'"
