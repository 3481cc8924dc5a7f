"""XA transactions that were prepared in log files which the server has purged, and are decided later."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.errors import UnsupportedError
from loader.materialise.plan.ddl_events import collect_events
from loader.model.table import TableName
from tests.integration.pipeline.shops import StartServer, begun, purge, sizes
from tests.support.replicas import run

pytestmark = pytest.mark.integration

ORDERS = TableName("shop", "orders")


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
@pytest.mark.parametrize("outcome", ["ROLLBACK", "COMMIT"])
def test_a_rollback_passes_and_a_commit_stops_the_tables(
    kind: str, outcome: str, fresh_server: StartServer, tmp_path: Path
) -> None:
    server = fresh_server(kind)
    run(server, "CREATE DATABASE early", "CREATE TABLE early.t (id INT PRIMARY KEY)")
    run(server, "USE early", "XA START 'x'", "INSERT INTO t VALUES (1)", "XA END 'x'", "XA PREPARE 'x'")
    run(server, "FLUSH BINARY LOGS")
    run(server, "FLUSH BINARY LOGS")
    purge(server, list(sizes(server))[-1])
    shop = begun(server, tmp_path)
    shop.insert(1)
    run(server, f"XA {outcome} 'x'")
    shop.insert(2)
    found = shop.delta()
    assert sum(file.rows for file in found.files) == 2
    after = (found.start_seqno, found.stop_seqno)
    if outcome == "ROLLBACK":
        assert found.barriers == ()
        return
    with pytest.raises(UnsupportedError, match="whose rows are in no available log file"):
        collect_events(ORDERS, [found], *after)
    shop.insert(3)
    later = shop.delta()
    assert collect_events(ORDERS, [later], later.start_seqno, later.stop_seqno) == []
