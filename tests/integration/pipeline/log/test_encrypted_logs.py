"""A log that MariaDB encrypts has START_ENCRYPTION before GTID_LIST: the GTIDs before a file are found behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from infra.servers import Server, start_server
from loader import pipeline
from loader.errors import GapError
from loader.pipeline import chain_of
from loader.staging.chain import PlanChain
from loader.staging.documents import Manifest
from tests.integration.pipeline.conftest import settings_of
from tests.integration.pipeline.log.test_other_order import logged
from tests.integration.pipeline.shops import Shop, purge, sizes
from tests.support.replicas import address_of, run
from tests.unit.binlog.reading import fields, records

pytestmark = pytest.mark.integration

Start = Callable[[str, bool], Server]
MADE = [("0-1-1", "CREATE DATABASE shop"), ("0-1-2", "CREATE TABLE shop.k (id INT)")]


@pytest.fixture
def start() -> Iterator[Start]:
    """A function that starts a MariaDB with this server id; encrypted or not."""
    with ExitStack() as cleanup:

        def started(server_id: str, encrypted: bool) -> Server:
            folder = Path(cleanup.enter_context(TemporaryDirectory(prefix="loader-encrypted-")))
            keys = folder / "keys.txt"
            keys.write_text("1;770A8A65DA156D24EE2A093277530142\n")
            options = {"server_id": server_id, "log_slave_updates": "ON", "gtid_strict_mode": "OFF"}
            if encrypted:
                options |= {
                    "plugin_load_add": "file_key_management",
                    "file_key_management_filename": str(keys),
                    "encrypt_binlog": "ON",
                }
            server = start_server("mariadb", folder / "server", options)
            cleanup.callback(server.kill)
            run(server, "RESET MASTER")
            return server

        yield started


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
def test_the_gtids_before_a_file(start: Start, encrypted: bool, tmp_path: Path) -> None:
    server = start("1", encrypted)
    logged(server, *MADE)
    run(server, "FLUSH BINARY LOGS")
    settings = settings_of(address_of(server), "shop.*", tmp_path)
    assert pipeline.begin(settings).gtids == "0-1-2"


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
def test_a_set_whose_next_transactions_are_purged(start: Start, encrypted: bool, tmp_path: Path) -> None:
    """0-1-3 is applied elsewhere; 0-1-4 is in a purged file: there is no place to begin at."""
    server = start("1", encrypted)
    logged(server, *MADE, ("0-1-3", "INSERT INTO shop.k VALUES (3)"), ("0-1-4", "INSERT INTO shop.k VALUES (4)"))
    run(server, "FLUSH BINARY LOGS")
    purge(server, list(sizes(server))[-1])
    logged(server, ("0-1-5", "INSERT INTO shop.k VALUES (5)"))
    settings = settings_of(address_of(server), "shop.*", tmp_path)
    with pytest.raises(GapError):
        pipeline.begin_at(settings, "0-1-3")


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
def test_a_domain_before_the_chain_is_not_read_again(start: Start, encrypted: bool, tmp_path: Path) -> None:
    """Domain 7 was logged before the chain began, in an earlier file. After a failover its rows come again."""
    a, b = start("1", encrypted), start("2", encrypted)
    before = [*MADE, ("7-1-1", "INSERT INTO shop.k VALUES (1)"), ("7-1-2", "DELETE FROM shop.k WHERE id = 1")]
    before += [("7-1-3", "INSERT INTO shop.k VALUES (2)")]
    for server in (a, b):
        logged(server, *before)
        run(server, "FLUSH BINARY LOGS")
    settings = settings_of(address_of(a), "shop.*", tmp_path)
    pipeline.begin(settings)
    shop = Shop(a, settings)
    late = ("0-1-3", "INSERT INTO shop.k VALUES (3)")
    logged(a, late)
    first = shop.delta()
    logged(b, late, ("0-2-4", "INSERT INTO shop.k VALUES (4)"))
    second = shop.at(b).delta()
    found = [fields(line)[5] for one in (first, second) for line in lines(chain_of(settings), one)]
    assert found == ["3", "4"]


def lines(chain: PlanChain, manifest: Manifest) -> list[bytes]:
    return [line for file in manifest.files for line in records(chain.store.get(file.key))]
