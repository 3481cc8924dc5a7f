"""Servers with a shop whose chain has begun, and a source and its replica."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from infra.servers import Server
from infra.servers.process import wait_until
from loader import pipeline
from loader.errors import LoaderError
from loader.extract.extraction import extract
from loader.extract.spec import TransportSettings
from loader.pipeline import IntervalChosen, chain_of, plan_interval
from loader.settings import SourceSettings
from loader.spark.workers import Threads
from loader.staging.documents import Generation, Manifest
from loader.transport.server.connection import connected, log_sizes
from tests.integration.pipeline.conftest import settings_of
from tests.support.replicas import address_of, options_of_replica, replicating, run

StartServer = Callable[..., Server]


@dataclass
class Shop:
    """A server with one table, and the settings of a source on it."""

    server: Server
    settings: SourceSettings

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        return run(self.server, *statements)

    def insert(self, *numbers: int) -> None:
        self.run(*(f"INSERT INTO shop.orders VALUES ({number}, 'x')" for number in numbers))

    def delta(self) -> Manifest:
        """Plan the next interval and extract it."""
        chosen = plan_interval(self.settings)
        assert chosen is not None
        return self.extract(chosen)

    def extract(self, chosen: IntervalChosen) -> Manifest:
        job = pipeline.extract_job(self.settings, chosen.start_seqno)
        extract(Threads(2), cast("Any", job.spec))
        found = chain_of(self.settings).manifest(chosen.generation, chosen.start_seqno)
        assert found is not None
        return found

    def at(self, server: Server) -> Shop:
        """The same source, pointed at another server."""
        address = address_of(server)
        transport = TransportSettings(kind="network", server=address)
        return Shop(server, self.settings.model_copy(update={"server": address, "transport": transport}))


def sizes(server: Server) -> dict[str, int]:
    with connected(address_of(server)) as connection:
        return log_sizes(connection)


def purge(server: Server, upto: str) -> None:
    """Purge the files before that one; MariaDB keeps them until InnoDB has no need of them."""

    def purged() -> bool:
        run(server, f"PURGE BINARY LOGS TO '{upto}'")
        return next(iter(sizes(server))) == upto

    assert wait_until(purged, 60)


def begun(server: Server, folder: Path) -> Shop:
    run(server, "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY, name VARCHAR(100))")
    settings = settings_of(address_of(server), "shop.*", folder)
    pipeline.begin(settings)
    return Shop(server, settings)


@pytest.fixture(params=["mysql", "mariadb"])
def shop(request: pytest.FixtureRequest, fresh_server: StartServer, tmp_path: Path) -> Iterator[Shop]:
    made = begun(fresh_server(request.param), tmp_path)
    made.insert(1, 2)
    made.delta()
    yield made


def refused(shop: Shop, kind: type[LoaderError], says: str) -> None:
    """Twice the same error, and nothing is planned."""
    chain = chain_of(shop.settings)
    for _ in range(2):
        with pytest.raises(kind, match=says) as caught:
            plan_interval(shop.settings)
        assert type(caught.value) is kind
        assert caught.value.hint
        assert chain.unfinished(chain.require_generation().name) == []


def reset(shop: Shop) -> None:
    shop.run("RESET BINARY LOGS AND GTIDS" if shop.server.kind == "mysql" else "RESET MASTER")


@pytest.fixture(params=["mysql", "mariadb"])
def pair(request: pytest.FixtureRequest, fresh_server: StartServer, tmp_path: Path) -> tuple[Shop, Server]:
    """A shop, and a replica that writes a log of its own, with other offsets."""
    shop = begun(fresh_server(request.param), tmp_path)
    replica = fresh_server(request.param, options_of_replica(request.param))
    replicating(shop.server, replica)
    shop.insert(1, 2)
    return shop, replica


def generation_start(chain: Any, name: str) -> int:
    generation: Generation = chain.require_generation(name)
    return generation.start_position.seqno(generation.shift)
