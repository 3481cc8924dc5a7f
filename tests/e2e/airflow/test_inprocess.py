"""The DAGs without a scheduler, as the demonstration runs them, and a DAG file of a user."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from loader.cli.demo.dags import Airflow
from loader.errors import LoaderError
from tests.docs.pages import write_dag_files
from tests.e2e.changes import changes
from tests.e2e.loaded import NOTHING_DIFFERS, Loaded
from tests.support.airflow_version import AIRFLOW
from tests.support.sweep import IN_SWEEP

pytestmark = pytest.mark.e2e
_TEXT = "{{ event.kind }}|{{ event.table }}|{{ event.position }}|{{ event.title }}|{{ event.status_page }}"
_POSITION = r"binlog\.\d+:\d+"


def _notify_into(shop: Loaded) -> Path:
    """Let the DAGs write a line for each event to a file, and return the file."""
    file = shop.home / "sent"
    file.unlink(missing_ok=True)
    with shop.config.open("a", encoding="utf-8") as config:
        config.write('airflow.notifier.type = "tests.dags.notifiers.FileNotifier"\n')
        config.write(f'airflow.notifier.arguments = {{ file = "{file}", text = "{_TEXT}" }}\n')
    return file


def _table_event(kind: str, table: str, title: str) -> re.Pattern[str]:
    page = re.escape(f"/binlog-loader/table?source=shop&name={table}")
    return re.compile(rf"{kind}\|{table}\|{_POSITION}\|{title}\|{page}")


_ALTERED = _table_event("schema_change", "shop.customers", "the schema of shop.customers of source shop changed")
_SHORT_RUNWAY = re.compile(rf"runway\|\|{_POSITION}\|source shop: the server will purge .*\?name=shop")


@pytest.mark.skipif(AIRFLOW == (3, 2), reason="this version of Airflow cannot run DAGs in one process")
def test_load_and_follow(empty: Loaded, tmp_path: Path) -> None:
    write_dag_files(tmp_path)
    sent = _notify_into(empty)
    with Airflow(empty.home / "airflow", empty.config, empty.home / "airflow.log", tmp_path) as airflow:
        with pytest.raises(LoaderError, match="nothing was loaded from this source yet"):
            airflow.run("shop.delta")
        loaded = airflow.run("shop.initial_load", tables=["shop.orders", "shop.customers"])
        assert {table["table"] for table in loaded["load_tables"]["tables"]} == {"shop.customers", "shop.orders"}
        loaded = airflow.run("shop.initial_load")
        assert {table["table"]: table["status"] for table in loaded["load_tables"]["tables"]} == dict.fromkeys(
            NOTHING_DIFFERS, "applied"
        ) | {"shop.customers": "already", "shop.orders": "already"}
        empty.execute(*changes(1), "ALTER TABLE shop.customers ADD COLUMN nick VARCHAR(20)")
        delta = airflow.run("shop.delta")
        assert delta["extract"]["stop_seqno"] == delta["plan_interval"]["stop_seqno"]
        quiet = airflow.run("shop.delta")
        assert quiet["extract"] == delta["extract"] | {"status": "already"}
        if IN_SWEEP:
            _one_task_does_all(airflow, empty)
        _an_alarm_stops_nothing(airflow, empty)
    assert empty.differences() == NOTHING_DIFFERS
    never_loaded, altered, short = sent.read_text().splitlines()
    assert never_loaded.startswith(
        "failure|||shop.delta.plan_interval failed: nothing was loaded from this source yet|"
    )
    assert _ALTERED.fullmatch(altered)
    assert _SHORT_RUNWAY.fullmatch(short)  # the first of two runs


def _one_task_does_all(airflow: Airflow, shop: Loaded) -> None:
    """The short form of test_operators."""
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


@pytest.mark.sweep
@pytest.mark.skipif(AIRFLOW == (3, 2), reason="this version of Airflow cannot run DAGs in one process")
def test_events_are_told_once(empty: Loaded) -> None:
    """A schema change and a quarantined table in the first of three runs, and a short runway from the second run on."""
    empty.configure()
    sent = _notify_into(empty)
    with empty.config.open("a", encoding="utf-8") as config:
        config.write("min_runway_hours = 0\n")
    with Airflow(empty.home / "airflow", empty.config, empty.home / "airflow.log") as airflow:
        airflow.run("shop.initial_load")
        empty.execute(
            "ALTER TABLE shop.customers ADD COLUMN nickname VARCHAR(20)",
            "SET SESSION sql_mode = ''",
            "UPDATE shop.orders SET placed_at = '0000-00-00' WHERE id = 1",
        )
        with pytest.raises(LoaderError, match="1 of 6 tables failed"):
            airflow.run("shop.delta")
        quarantined, altered = sent.read_text().splitlines()
        empty.config.write_text(empty.config.read_text().replace("hours = 0", "hours = 100000"))
        empty.execute("INSERT INTO shop.reviews VALUES (999999, 'SKU1', 1, '', NULL)")
        for _ in range(2):
            with pytest.raises(LoaderError, match="1 of 6 tables failed"):
                airflow.run("shop.delta")
    stopped = _table_event("quarantine", "shop.orders", "table shop.orders of source shop is quarantined")
    assert stopped.fullmatch(quarantined)
    assert _ALTERED.fullmatch(altered)
    (short,) = sent.read_text().splitlines()[2:]
    assert _SHORT_RUNWAY.fullmatch(short)
