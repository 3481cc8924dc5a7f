"""The DAGs without a scheduler, as the demonstration runs them, and a DAG file of a user."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.cli.demo.dags import Airflow
from loader.errors import LoaderError
from tests.docs.pages import write_dag_files
from tests.e2e.changes import changes
from tests.e2e.loaded import NOTHING_DIFFERS, Loaded
from tests.support.airflow_version import AIRFLOW

pytestmark = pytest.mark.e2e


@pytest.mark.skipif(AIRFLOW == (3, 2), reason="this version of Airflow cannot run DAGs in one process")
def test_load_and_follow(empty: Loaded, tmp_path: Path) -> None:
    write_dag_files(tmp_path)
    with Airflow(empty.home / "airflow", empty.config, empty.home / "airflow.log", tmp_path) as airflow:
        with pytest.raises(LoaderError, match="nothing was loaded from this source yet"):
            airflow.run("shop.delta")
        loaded = airflow.run("shop.initial_load", tables=["shop.orders", "shop.customers"])
        assert {table["table"] for table in loaded["load_tables"]["tables"]} == {"shop.customers", "shop.orders"}
        loaded = airflow.run("shop.initial_load")
        assert {table["table"]: table["status"] for table in loaded["load_tables"]["tables"]} == dict.fromkeys(
            NOTHING_DIFFERS, "applied"
        ) | {"shop.customers": "already", "shop.orders": "already"}
        empty.execute(*changes(1))
        delta = airflow.run("shop.delta")
        assert delta["extract"]["stop_seqno"] == delta["plan_interval"]["stop_seqno"]
        quiet = airflow.run("shop.delta")
        assert quiet["extract"] == delta["extract"] | {"status": "already"}
        _one_task_does_all(airflow, empty)
        _an_alarm_stops_nothing(airflow, empty)
    assert empty.differences() == NOTHING_DIFFERS


def _one_task_does_all(airflow: Airflow, shop: Loaded) -> None:
    """The short form of test_airflow_operators."""
    shop.execute(*changes(2))
    done = airflow.run("shop_and_marts")
    assert {table["status"] for table in done["load"]["tables"]} == {"already"}
    assert done["build_marts"] == sorted(NOTHING_DIFFERS)


def _an_alarm_stops_nothing(airflow: Airflow, shop: Loaded) -> None:
    """The log is kept for less than is asked for: that fails a run, but where a failed run pauses the DAG."""
    with shop.config.open("a", encoding="utf-8") as config:
        config.write("min_runway_hours = 100000\n")
        config.flush()
        with pytest.raises(LoaderError, match=r"will purge a log file that is still needed"):
            airflow.run("shop.delta")
        config.write("airflow.pause_on_failure = true\n")
        config.flush()
        assert airflow.run("shop.delta")["materialise"] is not None
        # Neither does a typing error in the conf of one run.
        assert airflow.run("shop.delta", lognmu=5)["materialise"] is None
