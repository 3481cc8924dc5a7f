"""An address leads to two servers, as a name with two addresses does: no position of the other server is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from infra.servers import Server
from loader import pipeline
from loader.errors import LoaderError
from loader.pipeline import plan_interval
from loader.settings import SourceSettings
from tests.integration.pipeline.conftest import settings_of
from tests.integration.pipeline.shops import Shop
from tests.integration.transport.proxy import breaking
from tests.support.replicas import address_of, run

pytestmark = pytest.mark.integration

TABLES = ("CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY, name VARCHAR(100))")
_CONNECTIONS = 15


@pytest.fixture(params=["mysql", "mariadb"])
def servers(request: pytest.FixtureRequest, fresh_server: Callable[..., Server], tmp_path: Path) -> tuple[Shop, Server]:
    """A server whose chain has begun, and another server whose log is longer."""
    server, other = fresh_server(request.param), fresh_server(request.param, {"server_id": "2"})
    for one in (server, other):
        run(one, *TABLES)
    shop = Shop(server, settings_of(address_of(server), "shop.*", tmp_path))
    pipeline.begin_at(shop.settings, "begin")
    shop.insert(1)
    run(other, *(f"INSERT INTO shop.orders VALUES ({key}, 'other')" for key in range(20)))
    return shop, other


def moved(shop: Shop, other: Server) -> Iterator[SourceSettings]:
    """Yield settings whose first, then second connection, and so on, leads to the other server."""
    for stray in range(1, _CONNECTIONS):
        with breaking(shop.server, [], other=other, stray=stray) as proxy:
            server = shop.settings.server.model_copy(update={"port": proxy.port})
            yield shop.settings.model_copy(update={"server": server})


@pytest.mark.parametrize("compared", [False, True], ids=["a run", "a comparison"])
def test_rows_of_one_server_are_staged_once(servers: tuple[Shop, Server], compared: bool) -> None:
    """`compared`: the log is planned up to a snapshot of the server. Rows of the other server would be staged."""
    shop, other = servers
    staged: dict[tuple[str, int], int] = {}
    refused = 0
    for key, settings in enumerate(moved(shop, other), 2):
        shop.insert(key)
        try:
            with pipeline.verification(settings) if compared else nullcontext():
                plan_interval(settings)
        except LoaderError:
            refused += 1
        for _ in range(3):  # what was planned already, and then the rest
            manifest = shop.delta()
            staged[manifest.generation, manifest.start_seqno] = sum(file.inserts for file in manifest.files)
        assert sum(staged.values()) == key
    assert refused >= (2 if compared else 1)
