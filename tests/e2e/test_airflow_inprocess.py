"""The DAGs without a scheduler, as the demonstration runs them."""

from __future__ import annotations

import pytest

from loader.cli.demo.dags import Airflow
from loader.errors import LoaderError
from tests.e2e.changes import changes
from tests.e2e.loaded import NOTHING_DIFFERS, Loaded

pytestmark = pytest.mark.e2e


def test_load_and_follow(empty: Loaded) -> None:
    with Airflow(empty.home / "airflow", empty.config, empty.home / "airflow.log") as airflow:
        with pytest.raises(LoaderError, match="nothing was loaded from this source yet"):
            airflow.run("continuous_delta")
        loaded = airflow.run("initial_load", tables=["shop.orders", "shop.customers"])
        assert {table["table"] for table in loaded["load"]["tables"]} == {"shop.customers", "shop.orders"}
        loaded = airflow.run("initial_load")
        assert {table["table"]: table["status"] for table in loaded["load"]["tables"]} == dict.fromkeys(
            NOTHING_DIFFERS, "applied"
        ) | {"shop.customers": "already", "shop.orders": "already"}
        empty.execute(*changes(1))
        delta = airflow.run("continuous_delta")
        assert delta["extract"]["stop_seqno"] == delta["snapshot_position"]["stop_seqno"]
        quiet = airflow.run("continuous_delta")
        assert quiet["extract"] == delta["extract"] | {"status": "already"}
    assert empty.differences() == NOTHING_DIFFERS
