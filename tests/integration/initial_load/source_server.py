"""A real server as a source: statements, the schemas and staged lines that its log gives, its address."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from pymysql.connections import Connection

from infra.servers import Server
from loader.binlog.index import Walk
from loader.binlog.stager import Stager
from loader.binlog.table_registry import TableRegistry
from loader.model.position import Position
from loader.model.table import TableName, TableSchema
from loader.reader.files.log_walk import log_bytes
from loader.source.schemas import read_ambiguous_tables
from loader.source.server_facts import log_end
from loader.transport.file import FileTransport
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import connected

_EVERYTHING = (0, 2**62)


class SourceServer:
    """A server with a schema of its own for one test."""

    def __init__(self, server: Server, tls_ca: str = "") -> None:
        self.server = server
        self.kind = server.kind
        self.address = ServerAddress(host=server.host, port=server.port, user=server.user, tls_ca=tls_ca)
        self.schema = f"snap_{uuid.uuid4().hex[:10]}"
        self.run(f"CREATE DATABASE `{self.schema}` CHARACTER SET utf8mb4")

    @property
    def deep_recursion(self) -> str:
        """Lets recursive queries of the session make a million rows."""
        name = "cte_max_recursion_depth" if self.kind == "mysql" else "max_recursive_iterations"
        return f"SET SESSION {name} = 1000000"

    def drop(self) -> None:
        self.run(f"DROP DATABASE `{self.schema}`")

    @contextmanager
    def connected(self) -> Iterator[Connection[Any]]:
        with connected(self.address) as connection:
            yield connection

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run the statements in the test's schema, in UTC and without SQL modes; the rows of the last one."""
        with self.connected() as connection, connection.cursor() as cursor:
            if any("CREATE DATABASE" not in statement for statement in statements):
                cursor.execute(f"USE `{self.schema}`")
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def name(self, table: str) -> TableName:
        return TableName(self.schema, table)

    def log_end(self) -> Position:
        with self.connected() as connection:
            return log_end(connection)

    def ambiguous(self) -> list[TableSchema]:
        """What a plan knows of tables."""
        with self.connected() as connection:
            return read_ambiguous_tables(connection, lambda name: name.schema == self.schema)

    def logged_schemas(self, start: Position, stop: Position) -> dict[TableName, TableSchema]:
        """What the table maps of the log say."""
        _, registry, *_ = self._walked(start, stop)
        return {program.schema.name: program.schema for program in registry.programs}

    def logged_lines(self, start: Position, stop: Position, *, hex_fallback: bool = False) -> dict[TableName, bytes]:
        """What the log's row kernel stages, by table."""
        data, registry, index, checksum = self._walked(start, stop, hex_fallback)
        found: dict[TableName, bytes] = {}

        def write(schema: TableSchema, lines: memoryview) -> None:
            found[schema.name] = found.get(schema.name, b"") + bytes(lines)

        stager = Stager(registry, start.file, start.lognum, checksum, 0, False, write)
        stager.stage(data, start.logpos, index.rows, stager.timing(index.transactions))
        return found

    def _walked(
        self, start: Position, stop: Position, hex_fallback: bool = False
    ) -> tuple[Any, TableRegistry, Any, int]:
        assert start.lognum == stop.lognum, "the log was rotated meanwhile"
        registry = TableRegistry(
            lambda name: name.schema == self.schema,
            mariadb=self.kind == "mariadb",
            known={schema.name: schema for schema in self.ambiguous()}.get,
            hex_fallback=hex_fallback,
        )
        with FileTransport(str(self.server.log_dir)).open(start.file, start.logpos, stop.logpos) as log:
            checksum = log_bytes(log, start.file).form.checksum
            log.seek(start.logpos)
            data = np.frombuffer(log.read(stop.logpos - start.logpos), np.uint8).copy()
        walk = Walk(registry, start.file, start.logpos, checksum, _EVERYTHING)
        assert walk.feed(data) == len(data)
        return data, registry, walk.finish(), checksum
