"""The server under test, its connections, and the history of every statement it was given."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pymysql

from infra.servers import Server
from infra.servers.process import greets, wait_until
from tests.chaos.access.columns import Column, quoted

DATABASE = "c0"
_TIMEOUTS = (
    "SET SESSION lock_wait_timeout = 3",
    "SET SESSION innodb_lock_wait_timeout = 1",
    "SET SESSION time_zone = '+00:00'",
)
_LOST = {0, 1053, 1927, 2003, 2006, 2013}
"""Numbers of errors after which a connection is of no use."""


class Statement(NamedTuple):
    """One statement, who sent it, and the error number that the server answered with (0 for none, -1 for a lost one)."""

    round: int
    writer: str
    sql: str
    error: int


class History:
    """All statements in the order in which they ended."""

    def __init__(self) -> None:
        self.statements: list[Statement] = []
        self.round = 0
        self._lock = threading.Lock()

    def add(self, writer: str, sql: str, error: int) -> None:
        with self._lock:
            self.statements.append(Statement(self.round, writer, sql, error))

    def write(self, path: Path) -> None:
        """Write it as SQL; failed statements and writers stand in comments."""
        lines, last = [], (-1, "")
        for one in self.statements:
            if last != (one.round, one.writer):
                lines.append(f"-- round {one.round}, writer {one.writer}")
                last = (one.round, one.writer)
            lines.append(one.sql + ";" if not one.error else f"-- error {one.error}: {one.sql};".replace("\n", "\\n"))
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


class Session:
    """One connection of a writer. Errors of the server are recorded and returned, never raised."""

    def __init__(
        self, server: Server, history: History, writer: str, image: str = "FULL", database: str = DATABASE
    ) -> None:
        self.server, self._history, self.writer, self.database = server, history, writer, database
        self.image = image
        self._connection: Any = None

    def execute(self, sql: str) -> int:
        """Run a statement; return 0, the error's number, or -1 when the connection was lost."""
        try:
            with self._open().cursor() as cursor:
                cursor.execute(sql)
            error = 0
        except pymysql.Error as problem:
            error = int(problem.args[0]) if problem.args else -1
            if isinstance(problem, pymysql.InterfaceError) or error in _LOST:
                self.close()
                error = -1
        self._history.add(self.writer, sql, error)
        return error

    def rows(self, sql: str, arguments: Sequence[Any] = (), *, raw: bool = False) -> list[tuple[Any, ...]]:
        """Read rows outside the history, as bytes if `raw`; none when the server is away."""
        try:
            connection = self._open()
            connection.use_unicode = not raw
            with connection.cursor() as cursor:
                cursor.execute(sql, arguments or None)
                return list(cursor.fetchall())
        except (pymysql.OperationalError, pymysql.InterfaceError) as problem:
            if problem.args and problem.args[0] not in _LOST:
                raise
            self.close()
            return []

    def close(self) -> None:
        with suppress(pymysql.Error, OSError):
            if self._connection:
                self._connection.close()
        self._connection = None

    def tables(self, pattern: str = "%") -> list[str]:
        """Base tables of the database, by name."""
        found = self.rows(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = %s AND table_type = 'BASE TABLE'"
            " AND table_name LIKE %s",
            (self.database, pattern),
        )
        return sorted(one for (one,) in found)

    def drop_lost_tables(self) -> None:
        """Drop the tables that the server cannot open any more: MariaDB sometimes loses the `.par` file of one."""
        found = self.rows(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = %s AND table_type = 'BASE TABLE'"
            " AND engine IS NULL",
            (self.database,),
        )
        for (name,) in found:
            self.execute(f"DROP TABLE {quoted(name)}")

    def columns(self, table: str) -> list[Column]:
        """Columns of a table in their order, invisible ones too."""
        found = self.rows(
            "SELECT column_name, data_type, column_type, is_nullable, character_set_name, generation_expression,"
            " coalesce(character_maximum_length, 0) FROM information_schema.columns"
            " WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
            (self.database, table),
        )
        return [
            Column(name, _str(kind).lower(), _str(declared), null == "YES", charset, bool(expression), int(length))
            for name, kind, declared, null, charset, expression, length in found
        ]

    def key(self, table: str) -> list[str]:
        """Columns of the primary key."""
        found = self.rows(
            "SELECT column_name FROM information_schema.key_column_usage WHERE table_schema = %s AND table_name = %s"
            " AND constraint_name = 'PRIMARY' ORDER BY ordinal_position",
            (self.database, table),
        )
        return [one for (one,) in found]

    def unique_columns(self, table: str) -> set[str]:
        """Columns of all unique indexes: one of them is the key of a table without a primary key."""
        found = self.rows(
            "SELECT column_name FROM information_schema.statistics"
            " WHERE table_schema = %s AND table_name = %s AND non_unique = 0",
            (self.database, table),
        )
        return {one for (one,) in found}

    def _open(self) -> Any:
        if self._connection is None:
            wait_until(lambda: greets(self.server.port), 60)  # it may be on its way back, or another one takes over
            server = self.server
            self._connection = pymysql.connect(
                host=server.host, port=server.port, user=server.user, charset="utf8mb4", autocommit=True,
                connect_timeout=5, read_timeout=120,
            )  # fmt: skip
            with self._connection.cursor() as cursor:
                for one in _TIMEOUTS:
                    cursor.execute(one)
                with suppress(pymysql.Error):
                    cursor.execute(f"USE {quoted(self.database)}")
                if self.image != "FULL":
                    image = f"SET SESSION binlog_row_image = {self.image}"
                    cursor.execute(image)
                    self._history.add(self.writer, image, 0)
        return self._connection


def _str(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
