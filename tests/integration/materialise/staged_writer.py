"""Writes staged files and manifests as the extraction does, and folds the same records in Python."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loader.model.identity import Identity
from loader.model.position import SEQNO_UNIT, Position
from loader.model.table import Column, TableName, TableSchema
from loader.staging.chain import PlanChain
from loader.staging.documents import (
    Barrier,
    Generation,
    IncompleteTable,
    Manifest,
    Mark,
    Plan,
    StagedFile,
    TableFilter,
)
from loader.staging.layout import interval_folder, load_folder, part_key
from loader.store.base import Store
from loader.store.local import LocalStore
from loader.types.column_type import Form
from loader.types.warehouse import form

IDENTITY = Identity(kind="mysql", version="9.4.0", server_id=1, uuid="11111111-1111-1111-1111-111111111111")
COMMITTED = "2026-01-02 03:04:05.678901"
EVERYTHING = TableFilter(include=("*",))
SOURCE, GENERATION = "shop", "g1"
_MARK = Mark(log="", last=0, event="")


def _begun(source: str, name: str) -> Generation:
    return Generation(source=source, name=name, identity=IDENTITY, start="binlog.000001:4", mark=_MARK)


LOG = _begun(SOURCE, GENERATION).log


@dataclass(frozen=True)
class Change:
    """One record; `values` in column order (None: NULL, bytes for binary columns, text for everything else)."""

    op: str
    seqno: int
    offset: int
    values: tuple[Any, ...]
    absent: str = ""


def field_text(column: Column, value: Any) -> str:
    """A value in the dialect of staged files; bytes in a text column are such that are no text."""
    if value is None:
        return "\\N"
    shape = form(column)
    if shape is Form.HEX:
        return f'"{value.hex()}"'
    if isinstance(value, bytes):
        return f'"\\x{value.hex()}"'
    if shape is Form.TEXT:
        escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\0", "\\0")
        return '"' + escaped.replace('"', '""') + '"'
    return str(value)


def line(schema: TableSchema, change: Change) -> str:
    """A whole staged line."""
    meta = [change.op, str(change.seqno), str(change.offset), COMMITTED, change.absent]
    return ",".join(meta + [field_text(c, v) for c, v in zip(schema.columns, change.values, strict=True)]) + "\n"


def seqno(position: str) -> int:
    return Position.parse(position).seqno()


@dataclass
class Staging:
    """A staging root of one source, written interval by interval."""

    root: Path
    source: str = SOURCE
    generation: str = GENERATION
    store: Store = field(init=False)

    def __post_init__(self) -> None:
        self.move_to(LocalStore(f"file://{self.root}"))

    def move_to(self, store: Store) -> None:
        """Begin on another store, without what was staged."""
        self.store = store
        PlanChain(self.store, self.source).begin(_begun(self.source, self.generation))

    def part(
        self,
        folder: str,
        schema: TableSchema,
        changes: Sequence[Change],
        number: int = 0,
        attempt: str = "a1",
    ) -> StagedFile:
        key = part_key(folder, attempt, schema.name, schema.schema_id, f"000001-{number:04d}")
        data = "".join(line(schema, change) for change in changes).encode("utf-8")
        with self.store.writing(key) as sink:
            sink.write(data)
        ops = [change.op for change in changes]
        numbers = [change.seqno for change in changes]
        return StagedFile(
            key=key,
            schema_name=schema.name.schema,
            table=schema.name.table,
            schema_id=schema.schema_id,
            inserts=ops.count("I"),
            updates=ops.count("U"),
            deletes=ops.count("D"),
            bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            min_seqno=min(numbers),
            max_seqno=max(numbers),
        )

    def interval(
        self,
        start: str,
        stop: str,
        tables: Iterable[tuple[TableSchema, Sequence[Change]]] = (),
        barriers: Sequence[Barrier] = (),
        parts: int = 1,
        captured: TableFilter = EVERYTHING,
        left_out: Sequence[IncompleteTable] = (),
    ) -> Manifest:
        """An extracted interval with its plan and manifest; each table's records are cut into `parts` files."""
        folder = interval_folder(self.source, self.generation, seqno(start))
        self.plan(start, stop, captured)
        schemas, files = {}, []
        for schema, changes in tables:
            schemas[schema.schema_id] = schema.as_dict()
            size = -(-len(changes) // parts)
            pieces = [changes[i : i + size] for i in range(0, len(changes), size)]
            files += [self.part(folder, schema, piece, number) for number, piece in enumerate(pieces)]
        return self.manifest(f"{folder}/manifest.json", start, stop, files, schemas, tuple(barriers), left_out=left_out)

    def plan(self, start: str, stop: str, captured: TableFilter = EVERYTHING) -> None:
        plan = Plan(
            source=self.source,
            generation=self.generation,
            identity=IDENTITY,
            start=start,
            stop=stop,
            shift=0,
            tables=captured,
        )
        folder = interval_folder(self.source, self.generation, seqno(start))
        assert self.store.create(f"{folder}/plan.json", plan.canonical())

    def load(
        self,
        schema: TableSchema,
        rows: Sequence[tuple[Any, ...]],
        position: str,
        parts: int = 1,
        exact: str = "",
    ) -> str:
        """An initial load; the key of its manifest."""
        at = seqno(position)
        folder = f"{load_folder(self.source, self.generation, schema.name)}/{at:020d}"
        changes = [Change("I", at, 0, row) for row in rows]
        size = max(1, -(-len(changes) // parts))
        pieces = [changes[i : i + size] for i in range(0, len(changes), size)]
        files = [self.part(folder, schema, piece, number) for number, piece in enumerate(pieces)]
        key = f"{folder}/manifest.json"
        self.manifest(key, position, position, files, {schema.schema_id: schema.as_dict()}, exact=exact)
        return key

    def manifest(
        self,
        key: str,
        start: str,
        stop: str,
        files: Sequence[StagedFile],
        schemas: dict[str, dict[str, Any]],
        barriers: tuple[Barrier, ...] = (),
        exact: str = "",
        left_out: Sequence[IncompleteTable] = (),
    ) -> Manifest:
        manifest = Manifest(
            source=self.source,
            generation=self.generation,
            identity=IDENTITY,
            start=start,
            stop=stop,
            start_seqno=seqno(start),
            stop_seqno=seqno(stop),
            files=tuple(files),
            schemas=schemas,
            barriers=barriers,
            left_out=tuple(left_out),
            exact_at=exact,
            exact_at_seqno=seqno(exact) if exact else 0,
            loader_version="0.1.0",
        )
        assert self.store.create(key, manifest.canonical())
        return manifest


def fold(
    schema: TableSchema, rows: Iterable[tuple[Any, ...]], applied: int, changes: Iterable[Change]
) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """The rows by key after the records newer than `applied`, one after the other: what a merge must come to."""
    names = [column.name for column in schema.columns]
    places = [names.index(name) for name in schema.key]

    def key(row: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(row[place] for place in places)

    state = {key(row): row for row in rows}
    for change in sorted(changes, key=lambda change: (change.seqno, change.offset)):
        if change.seqno <= applied:
            continue
        if change.op == "D":
            state.pop(key(change.values), None)
        else:
            state[key(change.values)] = change.values
    return state


def table(name: str, columns: Sequence[Column], key: Sequence[str], database: str = "shop") -> TableSchema:
    return TableSchema(TableName(database, name), tuple(columns), tuple(key))


def position(file: int, offset: int) -> str:
    return f"binlog.{file:06d}:{offset}"


def barrier(offset: int, statement: str, *tables: str) -> Barrier:
    """A statement about tables of `shop` that ends at an offset of the first log file."""
    return Barrier(
        seqno=number(1, offset),
        position=position(1, offset - 5),
        statement=statement,
        database="shop",
        sql_mode=1 << 21,
        mariadb=False,
        tables=tuple(f"shop.{name}" for name in tables),
    )


def number(file: int, offset: int) -> int:
    return file * SEQNO_UNIT + offset
