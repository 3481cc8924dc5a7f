"""Filters that are set between two runs, by which a server leaves changes of captured tables out of its log."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.servers import Kind
from loader.pipeline import plan_interval
from loader.source.server_facts import WrongSettings
from tests.integration.pipeline.shops import StartServer, begun
from tests.support.sweep import IN_SWEEP

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("kind", ["mysql", "mariadb"] if IN_SWEEP else ["mysql"])
def test_a_filter_of_the_log(fresh_server: StartServer, kind: Kind, tmp_path: Path) -> None:
    shop = begun(fresh_server(kind), tmp_path)
    shop.insert(1)
    shop.delta()
    shop.server.restart({"binlog_ignore_db": "shop"})
    shop.run("USE shop", "INSERT INTO orders VALUES (2, 'x')")
    for _ in range(2):
        with pytest.raises(WrongSettings, match="does not log changes of shop") as caught:
            plan_interval(shop.settings)
        assert caught.value.why == "binlog_do_db or binlog_ignore_db leaves them out of its log"
    shop.server.restart({"binlog_ignore_db": "other"})
    shop.insert(3)
    assert [file.inserts for file in shop.delta().files] == [1]
    shop.server.restart({"binlog_do_db": "other"})
    with pytest.raises(WrongSettings, match="does not log changes of shop"):
        plan_interval(shop.settings)
