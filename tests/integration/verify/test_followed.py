"""A comparison with a server that is followed and has logged nothing since."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from infra.servers import Server
from loader import pipeline
from loader.extract.spec import TransportSettings
from loader.materialise.rules import TableRule
from loader.pipeline import pause, resume
from tests.integration.materialise.live_source import LiveSource, live_source
from tests.integration.verify.verified import by_table, verified
from tests.support.replicas import address_of, caught_up, options_of_replica, replicating, stop_replica

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]


@pytest.fixture
def promoted(fresh_server: Callable[..., Server], spark: SparkSession, tmp_path: Path) -> Iterator[LiveSource]:
    """A source with a table that is merged once in a period, and with a table that was paused before a failover."""
    old, new = fresh_server("mysql"), fresh_server("mysql", options_of_replica("mysql"))
    with live_source(spark, old, tmp_path) as source:
        rule = TableRule(tables=(f"{source.database}.slow",), every="999999d")
        source.settings = source.settings.model_copy(update={"rules": (rule,)})
        source.run("CREATE TABLE slow (id INT PRIMARY KEY)", "CREATE TABLE fast (id INT PRIMARY KEY)")
        source.load()
        replicating(old, new)
        pause(source.settings, [f"{source.database}.fast"], "ada", "why")
        source.run("INSERT INTO slow VALUES (1)", "INSERT INTO fast VALUES (1)")
        assert source.statuses(source.delta()) == {"slow": "not_due", "fast": "paused"}
        caught_up(old, new)
        stop_replica(new)
        address = address_of(new)
        transport = TransportSettings(kind="network", server=address)
        source.server = new
        source.settings = source.settings.model_copy(update={"server": address, "transport": transport})
        resume(source.settings, ["*"])
        yield source


def test_tables_behind_are_merged_before_they_are_compared(promoted: LiveSource) -> None:
    for _ in range(2):
        found = verified(promoted.spark, promoted.settings)
        assert {name: one.status for name, one in by_table(found).items()} == {"slow": "equal", "fast": "equal"}, found
        assert pipeline.chain_of(promoted.settings).require_generation().name == "0002"
    promoted.run("INSERT INTO slow VALUES (2)", "INSERT INTO fast VALUES (2)")
    found = verified(promoted.spark, promoted.settings)
    assert {name: one.status for name, one in by_table(found).items()} == {"slow": "equal", "fast": "equal"}, found


def test_a_run_merges_the_tables_behind(promoted: LiveSource) -> None:
    assert promoted.statuses(promoted.delta()) == {"slow": "not_due", "fast": "applied"}
    assert promoted.differences() == ["slow"]
