"""Log files that a crash of MariaDB cut off, where older files are searched, or the log of a followed server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loader import pipeline
from tests.integration.pipeline.conftest import settings_of
from tests.integration.pipeline.log.test_other_order import MADE, begun, gtids, insert, logged, rows, servers
from tests.integration.pipeline.shops import Shop, StartServer
from tests.integration.pipeline.test_crashes import end_of, torn
from tests.support.replicas import address_of, run

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_a_prepared_transaction_before_a_cut_file(kind: Any, fresh_server: StartServer, tmp_path: Path) -> None:
    server = fresh_server(kind)
    run(server, "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY, name VARCHAR(100))")
    run(server, "XA START 'x'", "INSERT INTO shop.orders VALUES (1, 'x')", "XA END 'x'", "XA PREPARE 'x'")
    run(server, "FLUSH BINARY LOGS")
    shop = Shop(server, settings_of(address_of(server), "shop.*", tmp_path))
    begin = end_of(shop)
    shop.insert(2)
    end = end_of(shop)
    server.kill()
    log = server.log_dir / end.file
    data = log.read_bytes()
    half = torn(shop, data[begin.logpos :], end.logpos)
    log.write_bytes(data + half[:-1])
    server.start()
    pipeline.begin(shop.settings)
    shop.insert(3)
    run(server, "XA COMMIT 'x'")
    assert sum(file.rows for file in shop.delta().files) == 2


def test_a_followed_server_with_a_cut_file(fresh_server: StartServer, tmp_path: Path) -> None:
    """B crashed once. Its log has transactions that were read before on both sides of the cut."""
    a, b = servers(fresh_server, "mariadb")
    made = list(zip(gtids("mariadb", 1, 2, 3), MADE, strict=True))
    shop = begun(a, tmp_path, made)
    logged(a, ("1-1-1", insert(1)))
    first = shop.delta()
    logged(a, ("0-1-4", insert(2)))
    there = shop.at(b)
    logged(b, *made)
    begin = end_of(there)
    logged(b, ("0-1-4", insert(2)))
    end = end_of(there)
    b.kill()
    log = b.log_dir / end.file
    data = log.read_bytes()
    log.write_bytes(data + torn(there, data[begin.logpos :], end.logpos)[:-1])
    b.start()
    logged(b, ("1-1-1", insert(1)), ("0-2-5", insert(3)))
    second = there.delta()
    assert rows(there, first) + rows(there, second) == [1, 2, 3]
