"""A log that begins after transactions that were never read is refused, also if its GTIDs seem to go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.servers import Server
from loader import pipeline
from loader.model.position import Position
from loader.pipeline import plan_interval
from loader.source.continuity import LogPurged
from tests.integration.pipeline.shops import Shop, StartServer, pair, refused, sizes
from tests.integration.pipeline.test_other_order import MADE, begun, insert, logged, servers
from tests.support.replicas import caught_up, run, stop_replica

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


@pytest.mark.parametrize("pair", ["mariadb"], indirect=True)
def test_a_replica_made_from_a_backup_of_exactly_what_was_read(pair: tuple[Shop, Server]) -> None:
    """MariaDB cannot tell that nothing is between 0-1-N and 0-1-N+1, so an operator must."""
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
    refused(there, LogPurged, PURGED)
    with pytest.raises(LogPurged) as caught:
        plan_interval(there.settings)
    assert "loader follow --source shop --at FILE:POS" in caught.value.hint
    pipeline.follow_to(there.settings, Position.at(next(iter(sizes(replica))), 4))
    assert sum(file.rows for file in there.delta().files) == 2


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
