"""The server killed (SIGKILL) again and again under load, and started again: what is staged is what its tables have."""

from __future__ import annotations

import csv
import io
import random
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymysql
import pytest

from infra.servers import Server
from infra.servers.process import wait_until
from loader.errors import LoaderError
from loader.extract.spec import TransportSettings
from loader.model.position import Position
from loader.pipeline import chain_of, plan_interval
from loader.settings import IntervalLimits
from loader.source.server_facts import log_end
from loader.spark.job import failure
from loader.staging.documents import Manifest
from loader.store.registry import open_store
from loader.transport.server.connection import connected
from tests.integration.pipeline.shops import Shop, begun
from tests.support.replicas import address_of
from tests.support.sweep import IN_SWEEP

pytestmark = pytest.mark.integration

StartServer = Callable[..., Server]

_KEYS = 200
_KILLS = 5 if IN_SWEEP else 2


class Writer(threading.Thread):
    """Transactions of one row and of many on keys of its own, small and of megabytes, over one connection after another."""

    def __init__(self, server: Server, number: int) -> None:
        super().__init__(daemon=True)
        self._server, self._first = server, number * 300
        self._random = random.Random(number)
        self._done = threading.Event()
        self.committed = 0
        self._begun = 0
        self.broken = 0

    def run(self) -> None:
        while not self._done.is_set():
            try:
                with connected(address_of(self._server)) as connection, connection.cursor() as cursor:
                    while not self._done.is_set():
                        self._transaction(cursor)
                        self.committed += 1
            except LoaderError:
                self.broken += 1
                wait_until(lambda: self._server.running or self._done.is_set(), 60)

    def goes_on(self, transactions: int) -> None:
        """Wait until it has committed so many more."""
        goal = self.committed + transactions
        assert wait_until(lambda: self.committed >= goal, 60)

    def stop(self) -> None:
        self._done.set()
        self.join()

    def _transaction(self, cursor: Any) -> None:
        key = self._first + self._random.randrange(_KEYS)
        name = self._random.choice(["", "x", 'a,b\\\n"c" é', "z" * 90])
        cursor.execute("BEGIN")
        if self._random.random() < 0.05:
            cursor.execute(
                "UPDATE shop.orders SET name = %s WHERE id BETWEEN %s AND %s",
                (f"{key} {'w' * 80}", self._first, self._first + _KEYS),
            )
        cursor.execute("REPLACE INTO shop.orders VALUES (%s, %s), (%s, %s)", (key, name, key + 1, f"{key}"))
        self._begun += 1
        journal = 1_000_000 * (1 + self._first) + self._begun  # never touched again, so that no lost record is hidden
        cursor.execute("INSERT INTO shop.orders VALUES (%s, 'kept')", (journal,))
        cursor.execute("DELETE FROM shop.orders WHERE id = %s", (self._first + self._random.randrange(_KEYS),))
        cursor.execute("ROLLBACK" if self._random.random() < 0.05 else "COMMIT")


def folded(shop: Shop, manifests: list[Manifest]) -> dict[int, str]:
    """The rows that come of all staged records, the last one of each key."""
    store = open_store(shop.settings.staging_root)
    last: dict[int, tuple[int, int, str, str]] = {}
    for manifest in manifests:
        for file in manifest.files:
            text = store.get(file.key).decode("utf-8")
            for op, seqno, offset, _, _, key, name in csv.reader(io.StringIO(text, newline="\n")):
                record = (int(seqno), int(offset), op, name)
                assert manifest.start_seqno < record[0] <= manifest.stop_seqno
                last[int(key)] = max(last.get(int(key), (0, 0, "", "")), record)
    return {key: name.replace("\\n", "\n").replace("\\\\", "\\") for key, (_, _, op, name) in last.items() if op != "D"}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_a_server_that_is_killed_under_load(kind: str, fresh_server: StartServer, tmp_path: Path) -> None:
    shop = begun(fresh_server(kind), tmp_path)
    writers = [Writer(shop.server, number) for number in range(4)]
    for writer in writers:
        writer.start()
    for number in range(_KILLS):
        for writer in writers:
            writer.goes_on(20)
        shop.delta()
        chosen = plan_interval(shop.settings) if number % 2 else None
        with pymysql.connect(host=shop.server.host, port=shop.server.port, user="root") as open_one:
            with open_one.cursor() as cursor:
                cursor.execute("BEGIN")
                cursor.executemany("INSERT INTO shop.orders VALUES (%s, 'never')", [(-n,) for n in range(1, 2000)])
            delta = threading.Thread(target=_tried, args=(shop,), daemon=True)
            delta.start()
            shop.server.kill()
        shop.server.start()
        delta.join()
        if chosen:
            shop.extract(chosen)
    for writer in writers:
        writer.stop()
    while (chosen := plan_interval(shop.settings)) and chosen.new:
        shop.extract(chosen)
    chain = chain_of(shop.settings)
    generation = chain.require_generation()
    manifests = [found for plan in chain.plans(generation) if (found := chain.manifest("0001", plan.start_seqno))]
    assert len(manifests) == len(chain.plans(generation)) > _KILLS
    assert all(writer.broken >= _KILLS for writer in writers)
    rows = dict(shop.run("SELECT id, name FROM shop.orders"))
    assert rows and min(rows) >= 0
    assert folded(shop, manifests) == rows
    assert chain.require_generation().name == "0001"


def _tried(shop: Shop) -> None:
    """A delta while the server dies: it is done, or can be done again."""
    try:
        shop.delta()
    except Exception as error:
        found = failure(error)
        assert found["retryable"], found


def torn(shop: Shop, transaction: bytes, at: int) -> bytes:
    """A transaction of the log's as it would be written next at that byte: offsets, GTID and checksums are right."""
    data, place = bytearray(transaction), 0
    while place < len(data):
        size = int.from_bytes(data[place + 9 : place + 13], "little")
        data[place + 13 : place + 17] = (at + place + size).to_bytes(4, "little")
        if place == 0:
            gtid = place + (36 if shop.server.kind == "mysql" else 19)
            data[gtid : gtid + 8] = (int.from_bytes(data[gtid : gtid + 8], "little") + 1).to_bytes(8, "little")
        data[place + size - 4 : place + size] = zlib.crc32(data[place : place + size - 4]).to_bytes(4, "little")
        place += size
    return bytes(data)


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
@pytest.mark.parametrize("transport", ["network", "file"])
@pytest.mark.parametrize("left", ["an event", "an event and a bit", "all but a byte"])
def test_a_transaction_that_the_killed_server_had_half_written(
    kind: str, left: str, transport: str, fresh_server: StartServer, tmp_path: Path
) -> None:
    """MySQL cuts it off when it starts again; MariaDB leaves it, and begins another file."""
    shop = begun(fresh_server(kind), tmp_path)
    if transport == "file":
        read = TransportSettings(kind="file", server=shop.settings.server, path=str(shop.server.log_dir))
        shop = Shop(shop.server, shop.settings.model_copy(update={"transport": read}))
    shop.insert(1)
    shop.delta()
    begin = end_of(shop)
    shop.insert(2)
    end = end_of(shop)
    planned = plan_interval(shop.settings)
    shop.server.kill()
    log = shop.server.log_dir / end.file
    data = log.read_bytes()
    assert len(data) == end.logpos
    half = torn(shop, data[begin.logpos :], end.logpos)
    first = int.from_bytes(half[9:13], "little")
    log.write_bytes(data + half[: {"an event": first, "an event and a bit": first + 30}.get(left, len(half) - 1)])
    size = log.stat().st_size
    shop.server.start()
    assert planned is not None
    assert sum(file.rows for file in shop.extract(planned).files) == 1
    shop.insert(3)
    limits = IntervalLimits(transactions=1)
    over = Shop(shop.server, shop.settings.model_copy(update={"interval": limits})).delta()
    assert sum(file.rows for file in over.files) == 1
    assert over.balance is not None
    left_out = sum(over.balance.skipped.values())
    assert left_out == (size - len(data) if kind == "mariadb" else 0)
    shop.insert(4)
    assert sum(file.rows for file in shop.delta().files) == 1


def end_of(shop: Shop) -> Position:
    with connected(address_of(shop.server)) as connection:
        return log_end(connection)
