"""A log that begins after transactions that were never read is refused, also if its GTIDs seem to go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.servers import Server
from loader import pipeline
from loader.errors import GapError
from loader.extract.spec import TransportSettings
from loader.model.position import Position
from loader.pipeline import chain_of, plan_interval
from loader.settings import SourceSettings
from loader.source.continuity import LogPurged
from tests.integration.pipeline.conftest import settings_of
from tests.integration.pipeline.log.test_other_order import MADE, begun, insert, logged, servers
from tests.integration.pipeline.shops import Shop, StartServer, pair, refused, sizes
from tests.support.replicas import address_of, caught_up, replicating, run, stop_replica

pytestmark = pytest.mark.integration
__all__ = ["pair"]  # a fixture

PURGED = "the server purged transactions from its log before they were read"


def forget_log(replica: Server) -> None:
    """Empty the log of a stopped replica and go on replicating, like a replica that was made from a new backup."""
    if replica.kind == "mysql":
        executed = run(replica, "SELECT @@global.gtid_executed")[0][0]
        run(replica, "RESET BINARY LOGS AND GTIDS", f"SET GLOBAL gtid_purged = '{executed}'", "START REPLICA")
    else:
        run(replica, "RESET MASTER", "START SLAVE")


@pytest.mark.parametrize("rotated", [False, True], ids=["first file", "after a rotation"])
def test_a_replica_made_from_a_newer_backup(pair: tuple[Shop, Server], rotated: bool) -> None:
    shop, replica = pair
    shop.delta()
    shop.insert(3, 4, 5)  # only in the backup
    caught_up(shop.server, replica)
    stop_replica(replica)
    forget_log(replica)
    shop.insert(6)
    caught_up(shop.server, replica)
    if rotated:
        run(replica, "FLUSH BINARY LOGS")
    stop_replica(replica)
    shop.server.kill()
    there = shop.at(replica)
    there.insert(7)
    refused(there, LogPurged, PURGED)


def test_a_replica_made_from_a_backup_of_exactly_what_was_read(pair: tuple[Shop, Server]) -> None:
    """MariaDB cannot tell that nothing is between 0-1-N and 0-1-N+1, so an operator must. MySQL has `gtid_purged`."""
    shop, replica = pair
    shop.delta()
    caught_up(shop.server, replica)
    stop_replica(replica)
    forget_log(replica)
    shop.insert(3)
    caught_up(shop.server, replica)
    stop_replica(replica)
    shop.server.kill()
    there = shop.at(replica)
    there.insert(4)
    if replica.kind == "mariadb":
        refused(there, LogPurged, PURGED)
        with pytest.raises(LogPurged) as caught:
            plan_interval(there.settings)
        assert "loader follow --at FILE:POS" in caught.value.hint
        pipeline.follow_to(there.settings, Position.at(next(iter(sizes(replica))), 4))
    assert sum(file.rows for file in there.delta().files) == 2
    there.insert(5)
    run(replica, "FLUSH BINARY LOGS")
    there.insert(6)
    assert sum(file.rows for file in there.delta().files) == 2


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_a_server_made_from_a_backup_is_a_source(kind: str, fresh_server: StartServer, tmp_path: Path) -> None:
    shop, _ = made_from_backup(fresh_server, kind, tmp_path)
    pipeline.begin(shop.settings)
    for number in (5, 6):
        shop.run(insert(number))
        assert sum(file.rows for file in shop.delta().files) == 1
        shop.run("FLUSH BINARY LOGS")


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "with a hole"])
def test_another_mariadb_domain_comes_before_the_hole(whole: bool, fresh_server: StartServer, tmp_path: Path) -> None:
    """MariaDB sends the transaction of the other domain before it reaches the hole."""
    old, new = servers(fresh_server, "mariadb")
    made = list(zip(("0-1-1", "0-1-2", "0-1-3"), MADE, strict=True))
    shop = begun(old, tmp_path, made)
    logged(old, ("0-1-4", insert(1)))
    shop.delta()
    logged(new, *made, ("0-1-4", insert(1)))
    if not whole:
        logged(new, ("0-1-5", insert(2)))
        run(new, "RESET MASTER")
    logged(new, ("1-1-1", insert(3)), ("0-1-6", insert(4)))
    there = shop.at(new)
    if whole:
        assert sum(file.rows for file in there.delta().files) == 2
    else:
        refused(there, LogPurged, PURGED)


def made_from_backup(fresh_server: StartServer, kind: str, folder: Path) -> tuple[Shop, str]:
    """A replica whose log lacks two transactions after a GTID set, and that set."""
    old, new = servers(fresh_server, kind)
    source = run(old, "SELECT @@server_uuid")[0][0] + ":1-" if kind == "mysql" else "0-1-"
    run(old, *MADE, insert(1))  # 1 to 4: a dump has them
    replicating(old, new)
    run(old, insert(2), insert(3))  # 5 and 6: only the backup has them
    caught_up(old, new)
    stop_replica(new)
    forget_log(new)
    run(old, insert(4))
    caught_up(old, new)
    return Shop(new, settings_of(address_of(new), "shop.*", folder)), source


def from_files(shop: Shop) -> SourceSettings:
    """The same source, read from the files of its server."""
    transport = TransportSettings(kind="file", server=shop.settings.server, path=str(shop.server.log_dir))
    return shop.settings.model_copy(update={"transport": transport})


@pytest.mark.parametrize("files", [False, True], ids=["network", "files"])
@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_a_chain_does_not_begin_after_a_set_before_the_log(
    kind: str, files: bool, fresh_server: StartServer, tmp_path: Path
) -> None:
    shop, source = made_from_backup(fresh_server, kind, tmp_path)
    settings = from_files(shop) if files else shop.settings
    message = PURGED if kind == "mysql" else "transactions outside the GTID set are in log files that are missing"
    for _ in range(2):
        with pytest.raises(GapError, match=message) as caught:
            pipeline.begin_at(settings, f"{source}4")
        assert (f"{source[:-2]}5-6" if kind == "mysql" else "0-1-4") in caught.value.why.replace(":1-", ":")
    assert chain_of(settings).generation() is None
    assert pipeline.begin_at(settings, f"{source}7").gtids == f"{source}7"


@pytest.mark.parametrize("rotated", [False, True], ids=["one file", "two files"])
def test_a_chain_begins_after_a_set_in_files(rotated: bool, fresh_server: StartServer, tmp_path: Path) -> None:
    """The newest transaction of each domain is in a file, or in the GTID list of a file."""
    server, _ = servers(fresh_server, "mariadb")
    logged(server, *zip(("0-1-1", "0-1-2", "0-1-3"), MADE, strict=True), ("5-1-1", insert(1)))
    if rotated:
        run(server, "FLUSH BINARY LOGS")
    logged(server, ("0-1-4", insert(2)), ("0-1-5", insert(3)))
    shop = Shop(server, settings_of(address_of(server), "shop.*", tmp_path))
    shop = Shop(server, from_files(shop))
    pipeline.begin_at(shop.settings, "0-1-4,5-1-1")
    assert sum(file.rows for file in shop.delta().files) == 1
