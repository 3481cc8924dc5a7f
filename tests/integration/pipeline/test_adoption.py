"""The place of an adoption in the log of real servers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest

from infra.servers import Server
from loader import pipeline
from loader.errors import UnsupportedError, UsageError
from loader.materialise.rules import TableRule
from loader.model.position import Position
from loader.pipeline import chain_of, find_log_position
from loader.pipeline.chain.chain_begin import check_server
from loader.source.continuity import ServerRestored
from tests.integration.pipeline.conftest import settings_of
from tests.integration.pipeline.shops import Shop, generation_start, pair
from tests.support.replicas import address_of, caught_up, stop_replica

pytestmark = pytest.mark.integration
__all__ = ["pair"]  # a fixture


@pytest.fixture(params=["mysql", "mariadb"])
def shop(request: pytest.FixtureRequest, fresh_server: Callable[..., Server], tmp_path: Path) -> Iterator[Shop]:
    """A server with a table with a key and one without."""
    server = fresh_server(request.param)
    shop = Shop(server, settings_of(address_of(server), "shop.*", tmp_path))
    shop.run(
        "CREATE DATABASE shop",
        "CREATE TABLE shop.orders (id INT PRIMARY KEY, name VARCHAR(100))",
        "CREATE TABLE shop.log (message TEXT)",
    )
    yield shop


def interleaved(shop: Shop) -> str:
    """Commit a transaction outside of the returned GTID set, and then one of it, as after a replica of several sources."""
    if shop.server.kind == "mysql":
        ((before, uuid),) = shop.run("SELECT @@global.gtid_executed, @@server_uuid")
        shop.insert(1)
        shop.run(
            f"SET gtid_next = '{uuid}:1000'", "INSERT INTO shop.orders VALUES (2, 'x')", "SET gtid_next = AUTOMATIC"
        )
        return f"{before}:1000"
    shop.run("SET SESSION gtid_domain_id = 7", "INSERT INTO shop.orders VALUES (1, 'x')")
    shop.insert(2)
    ((after,),) = shop.run("SELECT @@global.gtid_binlog_pos")
    return ",".join(gtid for gtid in str(after).split(",") if not gtid.startswith("7-"))


def test_a_gtid_set_with_others_in_between(shop: Shop) -> None:
    pipeline.begin_at(shop.settings, "begin")
    place = check_server(shop.settings)[1]
    gtids = interleaved(shop)
    until = check_server(shop.settings)[1]
    shop.insert(3)
    adoption = pipeline.plan_adoption(shop.settings, ("shop.orders",), gtids)
    assert [plan.position for plan in adoption.plans] == [str(place)]
    assert adoption.exact_at == until
    with pytest.raises(UnsupportedError, match="cannot be adopted after this GTID set"):
        pipeline.plan_adoption(shop.settings, ("shop.log",), gtids)
    history = shop.settings.model_copy(update={"rules": (TableRule(tables=("shop.orders",), mode="history"),)})
    with pytest.raises(UnsupportedError, match="a history cannot be adopted after this GTID set"):
        pipeline.plan_adoption(history, ("shop.orders",), gtids)


def test_a_chain_that_begins_after_the_set_skips_its_transactions(shop: Shop) -> None:
    place = check_server(shop.settings)[1]
    gtids = interleaved(shop)
    shop.insert(3)
    for _ in range(2):
        adoption = pipeline.plan_adoption(shop.settings, ("shop.orders", "shop.log"), gtids)
        assert {plan.position for plan in adoption.plans} == {str(place)}
        assert adoption.exact_at == place
    assert sum(file.inserts for file in shop.delta().files) == 2  # not the transaction of the set
    with pytest.raises(UsageError, match="is staged without some transactions"):
        pipeline.plan_adoption(shop.settings, ("shop.orders",), str(place))
    assert pipeline.plan_adoption(shop.settings, ("shop.orders",), "end").exact_at == check_server(shop.settings)[1]


def test_a_place_before_the_chain_is_refused(shop: Shop) -> None:
    early = check_server(shop.settings)[1]
    shop.insert(1)
    pipeline.begin_at(shop.settings, "end")
    with pytest.raises(UsageError, match="the log of the source is read from"):
        pipeline.plan_adoption(shop.settings, ("shop.orders",), str(early))
    with pytest.raises(UsageError, match="cannot be read from or to"):
        pipeline.plan_adoption(shop.settings, ("shop.orders",), f"{early.file}:{early.logpos + 30}")


def test_a_place_before_the_newest_load_of_the_table_is_refused(shop: Shop) -> None:
    """For example, a table that was adopted at a wrong place, dropped and copied again."""
    pipeline.begin_at(shop.settings, "begin")
    early = check_server(shop.settings)[1]
    shop.insert(1)
    adoption = pipeline.plan_adoption(shop.settings, ("shop.orders",), "end")
    (plan,) = adoption.plans
    pipeline.record_adoption(shop.settings, adoption, {"tables": [{"table": "shop.orders", "error": None}]})
    with pytest.raises(UsageError, match="has an initial load or an adoption after this place") as refused:
        pipeline.plan_adoption(shop.settings, ("shop.orders",), str(early))
    assert f"its newest one is at {plan.position}" in str(refused.value.why)
    shop.insert(2)
    for place in (plan.position, "end"):
        assert pipeline.plan_adoption(shop.settings, ("shop.orders",), place).plans
    assert pipeline.plan_adoption(shop.settings, ("shop.log",), str(early)).plans


def test_a_refused_adoption_begins_no_chain(shop: Shop) -> None:
    shop.run("ALTER TABLE shop.log ENGINE = MyISAM")
    for name in ("shop.absent", "shop.log"):
        with pytest.raises(UsageError):
            pipeline.plan_adoption(shop.settings, (name,), "begin", compared=True)
    assert chain_of(shop.settings).generation() is None


def test_tables_whose_rows_cannot_be_compared_are_refused(shop: Shop) -> None:
    shop.run("ALTER TABLE shop.log ENGINE = MyISAM")
    with pytest.raises(UsageError, match="cannot be compared with the source") as refused:
        pipeline.plan_adoption(shop.settings, ("shop.log",), "end", compared=True)
    assert refused.value.why == "a table of engine MyISAM cannot be read as of one position of the log"
    assert pipeline.plan_adoption(shop.settings, ("shop.log",), "end").plans
    assert pipeline.plan_adoption(shop.settings, ("shop.orders",), "end", compared=True).plans
    history = shop.settings.model_copy(update={"rules": (TableRule(tables=("shop.orders",), mode="history"),)})
    with pytest.raises(UsageError, match="cannot be compared with the source"):
        pipeline.plan_adoption(history, ("shop.orders",), "end", compared=True)


def test_a_place_of_another_server_is_in_its_generation(pair: tuple[Shop, Server]) -> None:
    """The source points at another server since the last run."""
    shop, replica = pair
    shop.delta()
    caught_up(shop.server, replica)
    there = shop.at(replica)
    there.insert(3)
    adoption = pipeline.plan_adoption(there.settings, ("shop.orders",), "end")
    (plan,) = adoption.plans
    chain = chain_of(there.settings)
    assert (plan.generation, plan.identity.server_id) == ("0002", 2)
    assert (
        plan.seqno > generation_start(chain, "0002")
        and Position.parse(plan.position) == check_server(there.settings)[1]
    )


def test_a_place_of_a_server_that_lacks_what_was_read_is_refused(pair: tuple[Shop, Server]) -> None:
    shop, replica = pair
    stop_replica(replica)
    shop.insert(3)
    shop.delta()
    with pytest.raises(ServerRestored):
        pipeline.plan_adoption(shop.at(replica).settings, ("shop.orders",), "end")


def test_a_time_is_no_place_of_an_adoption(shop: Shop) -> None:
    """MariaDB logs when a statement began. Rows read at that time lack its changes, and the place is after them."""
    slow = Thread(target=shop.run, args=("INSERT INTO shop.orders SELECT 1, 'x' FROM (SELECT SLEEP(3)) AS s",))
    slow.start()
    time.sleep(1.2)
    ((at, read),) = shop.run("SELECT DATE_FORMAT(UTC_TIMESTAMP(), '%Y-%m-%dT%TZ'), (SELECT COUNT(*) FROM shop.orders)")
    slow.join()
    after = check_server(shop.settings)[1]
    shop.insert(2)
    assert read == 0
    assert (find_log_position(shop.settings, at) < after) == (shop.server.kind == "mysql")
    with pytest.raises(UsageError, match="cannot be adopted as of a time"):
        pipeline.plan_adoption(shop.settings, ("shop.orders",), at)
    assert chain_of(shop.settings).generation() is None
