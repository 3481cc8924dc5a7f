"""Forms of a source, sent by a browser to a live Airflow. A repair heals what it is for, as the log of the task names it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from infra.servers import start_server
from loader.transport.server.connection import connected
from tests.e2e.airflow_cures import printed_forms, send, send_form
from tests.e2e.airflow_server import DELTA, LOAD, Airflow, running
from tests.e2e.browser import browsing
from tests.e2e.loaded import Loaded

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1800),
    pytest.mark.skipif("LOADER_SWEEP" not in os.environ, reason="one of the long tests"),
]
REPAIR = "shop.repair"
ODD = "shop.a.b \"c\", 'ü' $d"
QUOTED = "`my.db`.odd `t`"
TABLES = (ODD, QUOTED, "shop.filled", "shop.orders")
_ODD, _QUOTED = "shop.`a.b \"c\", 'ü' $d`", "`my.db`.`odd ``t```"
_SETUP = (
    "CREATE DATABASE shop",
    "CREATE DATABASE `my.db`",
    "CREATE TABLE shop.orders (id INT PRIMARY KEY, day DATE)",
    "CREATE TABLE shop.filled (id INT PRIMARY KEY, kind ENUM('a', 'ä') CHARACTER SET latin1)",
    f"CREATE TABLE {_ODD} (id INT PRIMARY KEY, day DATE)",
    f"CREATE TABLE {_QUOTED} (id INT PRIMARY KEY, day DATE)",
    "INSERT INTO shop.filled VALUES (1, 'a')",
    *(f"INSERT INTO {table} VALUES (1, '2026-01-01'), (2, NULL)" for table in ("shop.orders", _ODD, _QUOTED)),
    "CREATE USER loader",
    "GRANT SELECT, TRIGGER, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO loader",
)
NOTHING_DIFFERS = dict.fromkeys(TABLES, 0)


@pytest.fixture(scope="module")
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, jars: str) -> Iterator[Loaded]:
    """A server whose log lacks the names of columns, so that definitions can be missing. Nothing is loaded."""
    folder: Path = tmp_path_factory.mktemp("cures")
    with start_server("mysql", folder / "server", {"binlog_row_metadata": "MINIMAL"}) as server:
        found = Loaded(server, folder / "loader", jars, spark=lambda: request.getfixturevalue("spark"))
        found.configure()
        text = found.config.read_text(encoding="utf-8").replace('["shop.*"]', '["shop.*", "`my.db`.*"]')
        dags = 'airflow.retries = 2\nairflow.schedule = { delta = "", maintain = "" }\n'
        found.config.write_text(text + dags, encoding="utf-8")
        found.execute(*_SETUP)
        yield found


@pytest.fixture(scope="module")
def airflow(shop: Loaded) -> Iterator[Airflow]:
    found = Airflow(shop.home / "airflow", shop.config)
    found.prepare()
    with running(found):
        yield found


@pytest.fixture(scope="module")
def page(airflow: Airflow) -> Iterator[Page]:
    with browsing(airflow.url) as found:
        yield found


def position(shop: Loaded) -> str:
    """Return the end of the server's log."""
    with connected(shop.address) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOG STATUS")
        (row,) = cursor.fetchall()
    return f"{row[0]}:{row[1]}"


def failed(page: Page, airflow: Airflow, dag: str, **fields: str) -> str:
    run = send(page, airflow, dag, **fields)
    airflow.wait_for(dag, run, "failed")
    return run


def heal(page: Page, airflow: Airflow, *forms: dict[str, str]) -> None:
    """Send forms of repairs, then a delta, after which every table is up to date."""
    for form in forms:
        send_form(page, airflow, REPAIR, **form)
    send_form(page, airflow, DELTA)


def xcom(airflow: Airflow, dag: str, run: str, task: str) -> object:
    return airflow.get(f"{dag}/dagRuns/{run}/taskInstances/{task}/xcomEntries/return_value")["value"]


def test_tables_with_odd_names_are_loaded(page: Page, airflow: Airflow, shop: Loaded) -> None:
    run = send_form(page, airflow, LOAD, tables=f"  {ODD} \n\n{QUOTED}\n")
    tables = xcom(airflow, LOAD, run, "load_tables")
    assert isinstance(tables, dict)
    assert sorted(table["table"] for table in tables["tables"]) == sorted((ODD, QUOTED))
    send_form(page, airflow, LOAD)
    assert shop.differences(TABLES) == NOTHING_DIFFERS


def test_a_delta_stops_at_a_position(page: Page, airflow: Airflow, shop: Loaded) -> None:
    shop.execute(f"INSERT INTO {_ODD} VALUES (3, '2026-01-03')")
    place = position(shop)
    shop.execute(f"INSERT INTO {_ODD} VALUES (4, '2026-01-04')")
    send_form(page, airflow, DELTA, until=f" {place} ", now="true")
    assert shop.json("status")["applied"] == place
    assert shop.differences(TABLES) == NOTHING_DIFFERS | {ODD: 1}
    send_form(page, airflow, DELTA)
    assert shop.differences(TABLES) == NOTHING_DIFFERS


def test_a_quarantined_table_is_released(page: Page, airflow: Airflow, shop: Loaded) -> None:
    for table in (_ODD, _QUOTED):
        shop.execute("SET SESSION sql_mode = ''", f"INSERT INTO {table} VALUES (5, '0000-00-00')")
    run = failed(page, airflow, DELTA)
    printed = printed_forms(airflow, DELTA, run, "check_tables")
    forms = [{"action": "release", "tables": table} for table in (ODD, QUOTED)]
    assert [form for form in printed if form["action"] == "release"] in (forms, forms[::-1])
    for table in (_ODD, _QUOTED):
        shop.execute(f"UPDATE {table} SET day = NULL WHERE id = 5")
    heal(page, airflow, *forms)
    assert shop.differences(TABLES) == NOTHING_DIFFERS
    assert shop.json("status")["quarantined"] == []
