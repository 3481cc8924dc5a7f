"""A real server as the source: runs statements, marks positions in its log, and stages the log between marks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pymysql

from infra.servers import Server
from loader.extract.checkpoint import read_checkpoint
from loader.extract.log_ranges import whole_segment
from loader.extract.manifest_writer import build_manifest
from loader.extract.range_task import RangeExtractor
from loader.extract.xa.outcomes import plan_releases, settle_groups
from loader.model.position import Interval, Position
from loader.model.table import Column, TableName, TableSchema
from loader.source.server_facts import log_end, read_identity
from loader.staging.documents import HeldGroup, Manifest, Plan, TableFilter
from loader.store.base import Store
from loader.store.local import LocalStore
from loader.transport.base import Transport
from loader.transport.file import FileTransport
from loader.transport.network import NetworkTransport
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import connected
from tests.unit.binlog.reading import fields, records
from tests.unit.binlog.values.test_floats import expected_double, expected_float

Row = tuple[str | None, ...]
PART_BYTES = 64 * 1024


@dataclass
class Staged:
    """An extracted interval: its manifest, the bytes of its files, and its records."""

    manifest: Manifest
    files: dict[str, bytes]

    def records(self, table: str) -> list[list[str | None]]:
        """Records of `schema.table`, in log order."""
        keys = [file.key for file in self.manifest.files if str(file.name) == table]
        found = [fields(line) for key in keys for line in records(self.files[bare(key)])]
        return sorted(found, key=lambda line: (int(line[1] or 0), int(line[2] or 0)))

    def schema(self, table: str) -> TableSchema:
        """The newest schema of a table."""
        return self.manifest.schema_of([f.schema_id for f in self.manifest.files if str(f.name) == table][-1])


def bare(key: str) -> str:
    """A key without its attempt."""
    parts = key.split("/")
    return "/".join(parts[:3] + parts[4:])


class Source:
    """One server, with a schema that is the test's own."""

    def __init__(self, server: Server, schema: str, tls_ca: str = "") -> None:
        self.server = server
        self.schema = schema
        self.kind = server.kind
        self.address = ServerAddress(host=server.host, port=server.port, user=server.user, tls_ca=tls_ca)
        self._connection = pymysql.connect(
            host=server.host, port=server.port, user=server.user, charset="utf8mb4", autocommit=True,
            init_command="SET time_zone = '+00:00', sql_mode = ''", ssl={"ca": tls_ca} if tls_ca else None,
        )  # fmt: skip
        self.run(
            f"DROP DATABASE IF EXISTS {schema}", f"CREATE DATABASE {schema} CHARACTER SET utf8mb4", f"USE {schema}"
        )

    def close(self) -> None:
        """Leave the server as it was."""
        self.run(f"DROP DATABASE IF EXISTS {self.schema}")
        self._connection.close()

    def run(self, *statements: str) -> None:
        """Run statements."""
        with self._connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with self._connection.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())

    def mark(self) -> Position:
        """Where the log ends now."""
        with connected(self.address) as connection:
            return log_end(connection)

    @property
    def files(self) -> FileTransport:
        """The server's own log files."""
        return FileTransport(str(self.server.log_dir))

    @property
    def network(self) -> NetworkTransport:
        """A dump."""
        return NetworkTransport(self.address)

    def staged(
        self,
        folder: Path,
        start: Position,
        stop: Position | None = None,
        transport: Transport | None = None,
        **plan: Any,
    ) -> Staged:
        """Extract what was logged between two marks."""
        return extracted(self, transport or self.files, folder, Interval(start, stop or self.mark()), **plan)


def extracted(
    source: Source,
    transport: Transport,
    folder: Path | Store,
    interval: Interval,
    held: Sequence[HeldGroup] = (),
    **changes: Any,
) -> Staged:
    """Extract an interval by that transport, into a folder or another store."""
    with connected(source.address) as connection:
        identity = read_identity(connection)
    settings = {"tables": TableFilter(include=(f"{source.schema}.*",)), "part_bytes": PART_BYTES, **changes}
    plan = Plan(
        source="s", generation="0001", identity=identity, start=str(interval.start), stop=str(interval.stop), shift=0,
        **settings,
    )  # fmt: skip
    store = LocalStore(f"file://{folder}") if isinstance(folder, Path) else folder
    extractor = RangeExtractor(plan, "attempt", transport, store)
    results = [
        extractor.extract(whole_segment(file, int(file.rpartition(".")[2]), begin, end, plan.part_bytes))
        for file, begin, end in transport.segments(interval)
        if begin < end
    ]
    settled = settle_groups(plan, held, transport, results)
    released = [extractor.release(run) for run in plan_releases(plan, settled)]
    manifest = build_manifest(
        plan,
        read_checkpoint(transport, interval.start, transport.segments(interval)[0][2]),
        transport.segments(interval),
        results,
        settled,
        released,
    )
    return Staged(manifest, {bare(file.key): store.get(file.key) for file in manifest.files})


def quoted(name: str) -> str:
    """A name in backticks."""
    return "`" + name.replace("`", "``") + "`"


def shown(column: Column) -> str:
    """The expression by which the server shows a value as it is staged."""
    name = quoted(column.name)
    if column.type.endswith(("blob", "binary")) or column.type in {"geometry", "vector"}:
        return f"LOWER(HEX({name}))"
    if column.type == "bit":
        return f"CAST({name} + 0 AS CHAR)"
    if column.type == "float":
        return f"CAST({name} AS DOUBLE)"
    if column.type == "decimal" or column.type.endswith("int"):
        return f"CAST({name} + 0 AS CHAR)"  # without the zeros of ZEROFILL
    return name if column.type in {"double"} or column.type.endswith("char") else f"CAST({name} AS CHAR)"


def expected(column: Column, value: Any) -> str | None:
    """A shown value as staged text: floats in their shortest form."""
    if value is None:
        return None
    if column.type == "float":
        return expected_float(np.float32(value))
    if column.type == "vector":
        numbers = np.frombuffer(bytes.fromhex(value), "<f4")
        return "[" + ",".join(map(expected_float, numbers)) + "]"
    return expected_double(float(value)) if column.type == "double" else str(value)


def table_rows(source: Source, schema: TableSchema, order: Sequence[str] = ()) -> list[Row]:
    """A table as the server shows it, in the order of its key."""
    by = ", ".join(quoted(name) for name in order or schema.key)
    columns = ", ".join(shown(column) for column in schema.columns)
    found: Iterable[tuple[Any, ...]] = source.rows(
        f"SELECT {columns} FROM {quoted(schema.name.schema)}.{quoted(schema.name.table)} ORDER BY {by}"
    )
    return [tuple(expected(column, value) for column, value in zip(schema.columns, row, strict=True)) for row in found]


def name_of(source: Source, table: str) -> TableName:
    """A table of the test's schema."""
    return TableName(source.schema, table)
