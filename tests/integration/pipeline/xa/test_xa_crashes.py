"""MariaDB killed between the log and the engine of an XA COMMIT: the transaction is prepared again after its commit."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from loader.errors import LoaderError, UnsupportedError
from loader.materialise.plan.ddl_events import collect_events
from loader.model.table import TableName
from loader.pipeline import plan_interval
from loader.staging.documents import Manifest
from loader.transport.server.connection import connected
from tests.integration.pipeline.shops import Shop, StartServer, begun
from tests.support.replicas import address_of, run

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]

ORDERS = TableName("shop", "orders")
_WRITERS = 8
_CRASHES = 20


def write(shop: Shop, first: int) -> int:
    """Commit XA transactions of one row until the server is killed. Return the key of the last one that was begun."""
    number = first
    try:
        with connected(address_of(shop.server)) as connection, connection.cursor() as cursor:
            while True:
                number += 1
                xid = f"'{number}'"
                cursor.execute(f"XA START {xid}")
                cursor.execute(f"INSERT INTO shop.orders VALUES ({number}, 'x')")
                for step in ("END", "PREPARE", "COMMIT"):
                    cursor.execute(f"XA {step} {xid}")
    except LoaderError:
        return number


def committed_in_the_log(shop: Shop) -> set[str]:
    return {
        bytes.fromhex(text.split("'")[1]).decode()
        for (file, *_) in shop.run("SHOW BINARY LOGS")
        for *_, text in shop.run(f"SHOW BINLOG EVENTS IN '{file}'")
        if text.startswith("XA COMMIT")
    }


def crashed(shop: Shop) -> list[str]:
    """Kill the server until transactions are prepared whose commit is in the log. Return them."""
    for number in range(_CRASHES):
        with ThreadPoolExecutor(_WRITERS) as pool:
            writers = [pool.submit(write, shop, 1_000_000 * number + 100_000 * n) for n in range(_WRITERS)]
            time.sleep(0.5)
            shop.server.kill()
            for writer in writers:
                writer.result()
        shop.server.start()
        prepared = {row[3].decode() if isinstance(row[3], bytes) else row[3] for row in shop.run("XA RECOVER")}
        found = prepared & committed_in_the_log(shop)
        for other in prepared - found:
            shop.run(f"XA ROLLBACK '{other}'")
        if found:
            return sorted(found)
    pytest.skip("no crash was between the two steps")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("read", [False, True], ids=["one interval", "two intervals"])
def test_a_rollback_after_the_commit_stops_the_tables(read: bool, fresh_server: StartServer, tmp_path: Path) -> None:
    shop = begun(fresh_server("mariadb", {"sync_binlog": "1", "innodb_flush_log_at_trx_commit": "1"}), tmp_path)
    xids = crashed(shop)
    if read:
        assert shop.delta().barriers == ()
    for xid in xids:
        run(shop.server, f"XA ROLLBACK '{xid}'")
    assert shop.run(f"SELECT COUNT(*) FROM shop.orders WHERE id IN ({','.join(xids)})") == [(0,)]
    manifest = staged(shop)
    assert [barrier.statement[:11] for barrier in manifest.barriers] == ["XA ROLLBACK"] * len(xids)
    with pytest.raises(UnsupportedError, match="rolled back after its commit was logged") as caught:
        collect_events(ORDERS, [manifest], manifest.start_seqno, manifest.stop_seqno)
    assert "loader initial-load" in caught.value.hint


def staged(shop: Shop) -> Manifest:
    chosen = plan_interval(shop.settings)
    assert chosen is not None and chosen.new
    return shop.extract(chosen)
