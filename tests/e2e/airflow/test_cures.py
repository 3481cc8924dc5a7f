"""Every form of a source, sent by a browser to a live Airflow; each repair heals what it is for, as the log names it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page
from pyspark.sql import SparkSession

from infra.servers import start_server
from loader.config.file import load_config
from loader.materialise.iceberg.warehouse import Warehouse
from loader.transport.server.connection import connected
from tests.e2e.airflow.running.browser import browsing
from tests.e2e.airflow.running.cures import answer, printed_forms, send, send_form
from tests.e2e.airflow.running.server import DELTA, LOAD, Airflow, running
from tests.e2e.loaded import Loaded

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1800),
    pytest.mark.sweep,
]
REPAIR, REPLAY, CHECK, MAINTAIN = "shop.repair", "shop.replay", "shop.check", "shop.maintain"
ODD = "shop.a.b \"c\", 'ü' $d"
QUOTED = "`my.db`.odd `t`"
TABLES = (ODD, QUOTED, "shop.filled", "shop.orders")
_ODD, _QUOTED = "shop.`a.b \"c\", 'ü' $d`", "`my.db`.`odd ``t```"
_SETUP = (
    "CREATE DATABASE shop",
    "CREATE DATABASE `my.db`",
    "CREATE TABLE shop.orders (id INT PRIMARY KEY, day DATE)",
    "CREATE TABLE shop.filled (id INT PRIMARY KEY, code INT NOT NULL, UNIQUE (code))",
    f"CREATE TABLE {_ODD} (id INT PRIMARY KEY, day DATE)",
    f"CREATE TABLE {_QUOTED} (id INT PRIMARY KEY, day DATE)",
    "INSERT INTO shop.filled VALUES (1, 10)",
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


def told(shop: Loaded, query: str) -> tuple[Any, ...]:
    """Return the one row that the server answers."""
    with connected(shop.address) as connection, connection.cursor() as cursor:
        cursor.execute(query)
        (row,) = cursor.fetchall()
    return tuple(row)


def position(shop: Loaded) -> str:
    """Return the end of the server's log."""
    return "{}:{}".format(*told(shop, "SHOW BINARY LOG STATUS"))


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


def test_rows_that_the_log_lacks_are_read_again(page: Page, airflow: Airflow, shop: Loaded) -> None:
    for table in (_ODD, _QUOTED):
        shop.execute("SET SESSION sql_log_bin = 0", f"DELETE FROM {table} WHERE id = 1")
    run = failed(page, airflow, CHECK, verify="true", tables=f"{ODD}\n{QUOTED}")
    forms = printed_forms(airflow, CHECK, run, "verify")
    assert forms == [{"action": "load_again", "tables": f"{QUOTED}, {ODD} (one per line)"}]
    heal(page, airflow, {"action": "load_again", "tables": f"{ODD}\n{QUOTED}"})
    send_form(page, airflow, CHECK, verify="true")
    assert shop.differences(TABLES) == NOTHING_DIFFERS


def test_lost_files_are_restored(page: Page, airflow: Airflow, shop: Loaded) -> None:
    shop.execute(f"INSERT INTO {_ODD} VALUES (6, NULL)", "INSERT INTO shop.orders VALUES (6, NULL)")
    interval = shop.json("plan")["start_seqno"]
    shop.json("extract")
    before = shop.staged()
    (lost,) = [name for name in before if f"/{interval:020d}/" in name and name.endswith(".csv") and "orders" in name]
    (shop.home / "staging" / lost).unlink()
    run = failed(page, airflow, DELTA)
    forms = printed_forms(airflow, DELTA, run, "check_tables")
    assert forms[0] == {"action": "restore", "position": str(interval)}
    heal(page, airflow, *forms)
    assert shop.staged().items() >= before.items()
    assert shop.differences(TABLES) == NOTHING_DIFFERS


def test_a_missing_definition_is_given(page: Page, airflow: Airflow, shop: Loaded) -> None:
    """The log does not tell that a unique key is the key of the table now."""
    shop.execute("ALTER TABLE shop.filled DROP PRIMARY KEY", "INSERT INTO shop.filled VALUES (3, 30)")
    run = failed(page, airflow, DELTA)
    forms = printed_forms(airflow, DELTA, run, "check_tables")
    assert [form["action"] for form in forms] == ["set_schema", "stage_rows", "load_again", "release"]
    set_schema, stage_rows, _, release = forms
    shown = shop.json("schema", "show", "shop.filled", "--at", set_schema["position"])
    known = {"definition": {**shown["definition"], "key": ["code"]}, "primary": False, "sure": True, "why": ""}
    heal(page, airflow, set_schema | {"definition": json.dumps({**shown, **known})}, stage_rows, release)
    assert shop.differences(TABLES) == NOTHING_DIFFERS


def test_tables_are_paused_and_resumed(page: Page, airflow: Airflow, shop: Loaded) -> None:
    send_form(page, airflow, REPAIR, action="pause", tables="shop.a.b*\n`my.db`.*", reason="a migration")
    shop.execute(*(f"INSERT INTO {table} VALUES (8, NULL)" for table in (_ODD, _QUOTED, "shop.orders")))
    run = send_form(page, airflow, DELTA)
    behind = [line for line in airflow.log(DELTA, run, "check_tables") if "is left behind: " in line]
    assert [re.sub(r"since .* by .*: ", "since ... ", line) for line in sorted(behind)] == [
        f"{table} is left behind: paused since ... a migration" for table in sorted((ODD, QUOTED))
    ]
    assert shop.differences(TABLES) == NOTHING_DIFFERS | {ODD: 1, QUOTED: 1}
    heal(page, airflow, {"action": "resume", "tables": f"{ODD}\n{QUOTED}"})
    assert shop.differences(TABLES) == NOTHING_DIFFERS


def test_a_skip_of_an_odd_table_is_approved_and_withdrawn(page: Page, airflow: Airflow, shop: Loaded) -> None:
    place = position(shop)
    shop.execute(f"INSERT INTO {_ODD} VALUES (9, NULL)")
    run = send(page, airflow, REPAIR, action="skip", transaction=f" {place}", tables=ODD, reason="a test")
    answer(page, airflow, REPAIR, run, "approve_skip", "Approve")
    airflow.wait_for(REPAIR, run, "success")
    (waiting,) = shop.json("status")["skips"]
    assert (waiting["state"], waiting["tables"], waiting["reason"]) == ("waiting", [ODD], "a test")
    heal(page, airflow, {"action": "withdraw_skip", "transaction": place, "tables": ODD, "reason": "it was real"})
    assert shop.json("status")["skips"][0]["state"] == "withdrawn"
    assert shop.differences(TABLES) == NOTHING_DIFFERS


def test_a_replay_corrects_an_odd_table(page: Page, airflow: Airflow, shop: Loaded, spark: SparkSession) -> None:
    lake = Warehouse(spark, load_config(str(shop.config)).source().catalog).session
    (name,) = [row["tableName"] for row in lake.sql("SHOW TABLES IN lake.shop").collect() if "ü" in row["tableName"]]
    lake.sql(f"UPDATE lake.shop.`{name}` SET day = DATE '1999-01-01' WHERE id = 8")
    tables, form = f"{ODD}\nshop.ord*", {"from": " begin "}
    run = send_form(page, airflow, REPLAY, tables=tables, **form)
    assert {one["table"]: one["status"] for one in xcom(airflow, REPLAY, run, "compare")["tables"]} == {
        ODD: "differs", "shop.orders": "same"
    }  # fmt: skip
    fields = {"dry_run": "false", "restore_files": "true", "approval": "true", **form}
    run = send(page, airflow, REPLAY, tables=tables, **fields)
    answer(page, airflow, REPLAY, run, "approve", "Approve")
    airflow.wait_for(REPLAY, run, "success")
    assert shop.differences(TABLES) == NOTHING_DIFFERS


def test_a_replay_starts_and_ends_where_people_say(page: Page, airflow: Airflow, shop: Loaded) -> None:
    before = position(shop)
    known, time = told(shop, "SELECT @@GLOBAL.gtid_executed, DATE_FORMAT(UTC_TIMESTAMP(), '%Y-%m-%d %H:%i:%s')")
    shop.execute("UPDATE shop.orders SET day = '2026-02-02'")
    after = position(shop)
    send_form(page, airflow, DELTA)
    number, offset = before.removeprefix("binlog.").split(":")
    forms = [
        {"lognum": str(int(number)), "logpos": offset},
        {"from": before},
        {"from": known.replace("\n", "")},
        {"from": time},
        {"from": before, "to": after},
    ]
    for form in forms:
        run = send_form(page, airflow, REPLAY, tables="shop.orders", **form)
        (found,) = xcom(airflow, REPLAY, run, "compare")["tables"]
        assert (found["table"], found["status"]) == ("shop.orders", "same"), form


def test_maintenance_leaves_all_rows(page: Page, airflow: Airflow, shop: Loaded) -> None:
    run = send_form(page, airflow, MAINTAIN)
    assert {name: task["state"] for name, task in airflow.tasks(MAINTAIN, run).items()} == {
        "maintain": "success", "purge": "success"
    }  # fmt: skip
    assert shop.differences(TABLES) == NOTHING_DIFFERS
