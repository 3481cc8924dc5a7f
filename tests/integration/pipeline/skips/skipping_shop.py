"""A real server whose transactions operators skip."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from infra.servers import Options, Server
from loader import pipeline
from loader.errors import LoaderError
from loader.extract.extraction import extract, reextract, restore
from loader.extract.gtids.skipped_transactions import BY_OPERATOR, SKIPPED
from loader.model.position import Position
from loader.pipeline import IntervalChosen, chain_of, plan_interval
from loader.pipeline.skips.states import SkipState, SkipStates
from loader.spark.workers import Threads
from loader.staging.documents import Manifest
from loader.store.registry import open_store
from loader.transport.server.connection import connected, log_sizes
from tests.integration.pipeline.conftest import settings_of
from tests.integration.pipeline.shops import Shop
from tests.support.replicas import address_of, run
from tests.unit.binlog.reading import fields, records

UNCAPTURED = "row events of tables that are not captured"
WHOLE = SKIPPED[BY_OPERATOR]
NO_GTIDS = {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"}
SERVERS: dict[str, tuple[str, Options]] = {
    "mysql": ("mysql", {}), "no-gtids": ("mysql", NO_GTIDS), "mariadb": ("mariadb", {}),
    "compressed": ("mysql", {"binlog_transaction_compression": "ON"}),
}  # fmt: skip
TABLES = (
    "CREATE DATABASE shop",
    "CREATE DATABASE other",
    "CREATE TABLE shop.orders (id INT PRIMARY KEY, name VARCHAR(20) CHARACTER SET hebrew)",
    "CREATE TABLE shop.items (id INT PRIMARY KEY)",
    "CREATE TABLE other.notes (id INT PRIMARY KEY)",
)


class SkippingShop(Shop):
    """A shop whose transactions can be skipped."""

    def transaction(self, *statements: str) -> tuple[Position, Position]:
        """Run a transaction; return its positions."""
        start = self.end()
        self.run("BEGIN", *statements, "COMMIT")
        return start, self.end()

    def end(self) -> Position:
        with connected(address_of(self.server)) as connection:
            return Position.at(*list(log_sizes(connection).items())[-1])

    def gtid(self, stop: Position) -> str:
        """The GTID of the newest transaction."""
        if self.server.kind == "mariadb":
            return str(self.run("SELECT @@gtid_binlog_pos")[0][0])
        text = str(self.run("SELECT @@global.gtid_executed")[0][0])
        return f"{text.partition(':')[0]}:{text.rpartition(':')[2].rpartition('-')[2]}" if text else str(stop.seqno())

    def skip(self, place: str, *tables: str) -> pipeline.TransactionRows:
        return pipeline.skip_transaction(self.settings, place, tables, reason="poison", by="ann")

    def withdraw(self, place: str, *tables: str) -> tuple[SkipState, ...]:
        return pipeline.withdraw_skip(self.settings, place, tables, reason="wrong one", by="bob")

    def states(self) -> list[SkipState]:
        return list(SkipStates(chain_of(self.settings)).all())

    def again(self, manifest: Manifest, threads: int = 2) -> tuple[object, ...]:
        spec = cast("Any", pipeline.extract_job(self.settings, manifest.start_seqno).spec)
        return reextract(Threads(threads), spec).differences

    def restore(self, manifest: Manifest) -> int:
        spec = cast("Any", pipeline.extract_job(self.settings, manifest.start_seqno).spec)
        return restore(Threads(2), spec).files

    def stage_again(self, manifest: Manifest) -> Manifest:
        extract(Threads(2), cast("Any", pipeline.extract_job(self.settings, manifest.start_seqno).spec))
        found = chain_of(self.settings).manifest(manifest.generation, manifest.start_seqno)
        assert found is not None
        return found

    def staged(self, manifest: Manifest) -> dict[str, list[list[str | None]]]:
        """Operations and values by table."""
        store, found = open_store(self.settings.staging_root), dict[str, list[list[str | None]]]()
        for file in manifest.files:
            lines = found.setdefault(str(file.name), [])
            lines += [[line[0], *line[5:]] for line in map(fields, records(store.get(file.key)))]
        return found

    def planned(self) -> IntervalChosen:
        chosen = plan_interval(self.settings)
        assert chosen is not None
        return chosen

    def refused(self, kind: type[LoaderError], place: str, *tables: str) -> LoaderError:
        """A skip that is an error, with and without a reason, and that leaves no record."""
        before = self.states()
        with pytest.raises(kind):
            pipeline.find_skippable(self.settings, place, tables)
        with pytest.raises(kind) as caught:
            self.skip(place, *tables)
        assert self.states() == before
        assert caught.value.hint
        return caught.value


def begun(server: Server, folder: Path) -> SkippingShop:
    run(server, *TABLES)
    settings = settings_of(address_of(server), "shop.*", folder).model_copy(update={"part_bytes": 4096})
    pipeline.begin(settings)
    return SkippingShop(server, settings)


def skipped(manifest: Manifest) -> dict[str, int]:
    assert manifest.balance
    return manifest.balance.skipped


def ids(lines: Sequence[Sequence[str | None]]) -> list[int]:
    return sorted(int(line[1] or 0) for line in lines)
