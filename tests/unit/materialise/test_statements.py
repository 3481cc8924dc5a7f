"""Any statements on any tables, in any intervals and runs: the planned merges come to the tables of a plain server."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from pathlib import Path
from random import Random
from typing import Any

import pytest

from loader.materialise.merge import source_run, table_merge
from loader.materialise.spec import MaterialiseResult, MaterialiseSpec
from loader.model.table import Column, TableName, TableSchema
from loader.staging.documents import Barrier
from loader.staging.notes.quarantine import Quarantines
from tests.integration.materialise.staged_writer import Change, Staging, number, position
from tests.support.sweep import IN_SWEEP
from tests.unit.materialise.plain_server import NAMES, PlainColumn, PlainServer, Record, Statement
from tests.unit.materialise.plain_warehouse import DELETED, OP, PlainWarehouse, Rows

SEEDS = int(os.environ.get("LOADER_STATEMENT_SEEDS", "1500" if IN_SWEEP else "15"))
FIRST = int(os.environ.get("LOADER_STATEMENT_SEED", "0"))
STEPS = 40
BEGIN = 999


class Shop:
    """A plain server, its staged log, and a warehouse that follows it."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.dice = Random(seed)
        self.server = PlainServer(self.dice)
        self.files: dict[str, tuple[TableSchema, list[Change]]] = {}
        self.warehouse = PlainWarehouse(self.files, self.dice)
        self.staging = Staging(folder)
        self.stops = [BEGIN]
        self.ahead: dict[str, int] = {}
        self.loads: set[tuple[str, int]] = set()

    def begin(self) -> None:
        """Some tables with rows, loaded."""
        for _ in range(12):
            self.server.step()
        self.server.log.clear()
        self.server.known = set(self.server.tables)
        self.server.told.clear()
        self.server.at += 100
        self.stops = [self.server.at]
        for name in self.server.tables:
            self.load(name)

    @property
    def place(self) -> str:
        return position(1, self.stops[-1])

    def work(self, steps: int) -> None:
        """Let the server work."""
        for _ in range(steps):
            self.server.step()

    def interval(self, steps: int) -> None:
        """Let the server work, and stage what it logged since the last interval."""
        self.work(steps)
        start = self.place
        log, self.server.log = self.server.log, []
        print(*log, sep="\n")
        self.stops.append(self.server.at + (self.dice.choice((0, 5)) if log else 5))
        self.server.at = self.stops[-1]
        self.server.keep_state()
        tables: dict[TableSchema, list[Change]] = {}
        for entry in log:
            if isinstance(entry, Record):
                change = Change(entry.op, number(1, entry.at), entry.place, entry.row)
                tables.setdefault(schema_of(entry.table, entry.columns), []).append(change)
        barriers = [barrier(entry) for entry in log if isinstance(entry, Statement)]
        print(f"interval up to {self.place}")
        made = self.staging.interval(start, self.place, tables.items(), barriers, parts=self.dice.randint(1, 3))
        for file in made.files:
            changes = tables[made.schema_of(file.schema_id)]
            # The writer cuts the records of a table in their order, so a file has a run of them.
            self.files[file.key] = (made.schema_of(file.schema_id), self._of(file, changes))

    def _of(self, file: Any, changes: list[Change]) -> list[Change]:
        place = sum(len(found) for _, found in (self.files[key] for key in self.files if self._beside(key, file.key)))
        return changes[place : place + file.rows]

    @staticmethod
    def _beside(one: str, other: str) -> bool:
        """Whether two keys differ in the part alone."""
        return one.rpartition("-")[0] == other.rpartition("-")[0]

    def merged(self, through: int | None = None) -> MaterialiseResult:
        spec = MaterialiseSpec(
            source=self.staging.source, generation=self.staging.generation, staging_root=self.staging.store.root,
            catalog=self.warehouse.catalog, through_seqno=through,
        )  # fmt: skip
        print(f"run through {through}")
        return source_run.materialise(None, spec)  # type: ignore[arg-type]

    def load(self, name: str) -> None:
        """Load a table, also again, as it is on the server now."""
        table = self.server.tables[name]
        rows = {key: dict(row) for key, row in table.rows.items()}
        schema, at = schema_of(name, table.columns), self.server.at
        print("loaded", name, "at", at, rows)
        if (name, at) not in self.loads:
            self.staging.load(schema, [], position(1, at))
            self.loads.add((name, at))
        self.warehouse.load(schema, rows, number(1, at), position(1, at))
        Quarantines(self.staging.store, self.staging.source).find_current(schema.name, number(1, at))
        self.server.told[name] = [("I", key) for key in rows]
        self.ahead[name] = at

    def cure(self, result: MaterialiseResult) -> bool:
        """Do what the errors of a run say; whether there are any."""
        hints = {one.table: str(one.error["hint"]) for one in result.tables if one.error}
        loads = {name for hint in hints.values() for name in re.findall(r"initial-load --table shop\.(\w+)", hint)}
        print("hints", hints)
        if not loads <= self.server.tables.keys():
            self.interval(0)  # it was dropped since
        for name in sorted(loads & self.server.tables.keys()):
            self.load(name)
        return bool(hints)

    def check(self, stop: int) -> None:
        """Every table is as it was on the server at that stop, apart from those that are loaded as they were later."""
        for name, table in self.server.states[stop].items():
            if self.ahead.get(name, 0) > stop:
                continue
            rows = self.warehouse.rows(TableName("shop", name), (column.name for column in table.columns))
            mode = self.warehouse.modes.get(name, "mirror")
            told = self.server.stories[stop].get(name, [])
            if mode == "soft_delete":
                assert rows.keys() == {key for _, key in told}, name
                rows = {key: without(row, DELETED) for key, row in rows.items() if not row[DELETED]}
            if mode == "history":
                assert sorted((row[OP], row["id"]) for row in rows.values()) == sorted(told), name
                rows = last_rows(rows, table.rows.keys())
            assert rows == table.rows, name


def without(row: dict[str, Any], name: str) -> dict[str, Any]:
    return {column: value for column, value in row.items() if column != name}


def last_rows(changes: Rows, live: Collection[int]) -> dict[int, dict[str, Any]]:
    """The newest values of the live rows of a history."""
    found = {row["id"]: without(row, OP) for _, row in sorted(changes.items()) if row[OP] != "D"}
    return {key: row for key, row in found.items() if key in live}


def schema_of(name: str, columns: tuple[PlainColumn, ...]) -> TableSchema:
    return TableSchema(TableName("shop", name), tuple(Column(one.name, one.type) for one in columns), ("id",))


def barrier(entry: Statement) -> Barrier:
    return Barrier(
        seqno=number(1, entry.at), position=position(1, entry.at - 5), statement=entry.text, database="shop",
        sql_mode=1 << 21, mariadb=False, tables=tuple(f"shop.{name}" for name in entry.tables),
    )  # fmt: skip


@pytest.fixture
def shop(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    shop = Shop(request.param, tmp_path)
    monkeypatch.setattr(source_run, "Warehouse", lambda *_: shop.warehouse)
    monkeypatch.setattr(source_run, "WarehousePool", lambda *_: shop.warehouse)
    monkeypatch.setattr(source_run, "tables_at_once", lambda _: 1)
    monkeypatch.setattr(
        table_merge, "_attempt", lambda planner, *rest, **how: planner.warehouse.attempt(planner, *rest, **how)
    )
    shop.server.renames = "modes" not in request.node.name
    if not shop.server.renames:
        shop.warehouse.modes = {name: shop.dice.choice(("mirror", "soft_delete", "history")) for name in NAMES}
    shop.begin()
    return shop


@pytest.mark.parametrize("shop", range(FIRST, FIRST + SEEDS), indirect=True)
def test_planned_merges_come_to_what_a_plain_server_has(shop: Shop) -> None:
    for _ in range(shop.dice.randint(2, 5)):
        for _ in range(shop.dice.randint(1, 4)):
            shop.interval(shop.dice.randint(0, STEPS // 4))
        shop.warehouse.outages = shop.dice.choice((0, 0, 0.1, 0.3))
        for _ in range(shop.dice.randint(0, 2)):
            through = shop.dice.choice((None, number(1, shop.dice.choice(shop.stops[1:]))))
            shop.merged(through)
        shop.warehouse.outages = 0
        result = shop.merged()
        assert [one.error for one in result.tables if one.error] == []
        shop.check(shop.stops[-1])
        again = shop.merged()
        assert {one.status for one in again.tables} <= {"already", "unchanged"}
        shop.check(shop.stops[-1])


@pytest.mark.parametrize("shop", range(FIRST, FIRST + SEEDS), indirect=True)
def test_tables_of_all_modes_come_to_what_a_plain_server_has(shop: Shop) -> None:
    for _ in range(shop.dice.randint(2, 5)):
        for _ in range(shop.dice.randint(1, 4)):
            shop.interval(shop.dice.randint(0, STEPS // 4))
        shop.warehouse.outages = shop.dice.choice((0, 0, 0.1, 0.3))
        for _ in range(shop.dice.randint(0, 2)):
            shop.merged(shop.dice.choice((None, number(1, shop.dice.choice(shop.stops[1:])))))
        shop.warehouse.outages = 0
        result = shop.merged()
        assert [one.error for one in result.tables if one.error] == []
        shop.check(shop.stops[-1])
        shop.merged()
        shop.check(shop.stops[-1])


@pytest.mark.parametrize("shop", range(FIRST, FIRST + SEEDS), indirect=True)
def test_the_cures_of_tables_that_stop_bring_them_to_what_a_plain_server_has(shop: Shop) -> None:
    shop.server.untold = 2
    for _ in range(shop.dice.randint(2, 5)):
        for _ in range(shop.dice.randint(1, 4)):
            shop.interval(shop.dice.randint(0, STEPS // 4))
        shop.warehouse.outages = shop.dice.choice((0, 0, 0.1, 0.3))
        for _ in range(shop.dice.randint(0, 2)):
            shop.merged()
        shop.warehouse.outages = 0
        shop.work(shop.dice.choice((0, 0, 3, 6)))
        if shop.server.tables and shop.dice.random() < 0.2:
            shop.load(shop.dice.choice(sorted(shop.server.tables)))
        runs = 1
        while shop.cure(shop.merged()):
            runs += 1
            assert runs < 6
        shop.check(shop.stops[-1])
