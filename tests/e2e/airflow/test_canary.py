"""The password of a connection of the type `binlog_source` is nowhere: operators, notifications, pages and lineage."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from loader.transport.server.connection import connected
from tests.e2e.airflow.running.processes import Arguments
from tests.e2e.airflow.running.server import Airflow, running
from tests.e2e.airflow.running.statsd_receiver import StatsdReceiver, receiving
from tests.e2e.airflow.test_skip import answer
from tests.e2e.changes import changes
from tests.e2e.loaded import Loaded

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1800),
    pytest.mark.sweep,
]
CANARY, WRONG = "c4n4ry-of-the-connection", "wr0ng-c4n4ry"
SECRETS = (CANARY, WRONG)
DAG = "everything"
DAG_FILE = """
from airflow.sdk import DAG

from loader.airflow import BinlogDeltaOperator, InitialLoadOperator, ReplayOperator, TableAtLeastSensor

with DAG("everything", schedule=None, max_active_runs=1):
    load = InitialLoadOperator(task_id="load", source="shop", retries=0)
    delta = BinlogDeltaOperator(task_id="delta", source="shop", retries=0)
    position = "{{ ti.xcom_pull(task_ids='delta')['stop'] }}"
    wait = TableAtLeastSensor(task_id="wait", source="shop", table="shop.orders", position=position)
    replay = ReplayOperator(task_id="replay", source="shop", start="begin", tables=["shop.orders"], retries=0)
    load >> delta >> wait >> replay
"""
LINEAGE, SENT = "lineage.jsonl", "notifications.txt"
PLACES = ("", "source?name=shop", "table?source=shop&name=shop.orders", "metrics")


@pytest.fixture(scope="module")
def seen() -> Iterator[tuple[Arguments, StatsdReceiver]]:
    """The argument lists of all processes, and what Airflow sends to StatsD."""
    with Arguments() as arguments, receiving() as metrics:
        yield arguments, metrics


@pytest.fixture(scope="module")
def airflow(empty: Loaded, seen: tuple[Arguments, StatsdReceiver]) -> Iterator[Airflow]:
    """The server of the source is in a connection, and its notifier tells all that a template can tell."""
    text = empty.config.read_text(encoding="utf-8")
    of_server = ("host =", "port =", "user =", "password =")
    kept = [line for line in text.splitlines() if not line.startswith(of_server)]
    told = {
        "file": str(empty.home / SENT),
        "text": "{{ exception }} {{ event }} {{ ti }} {{ task }} {{ params }}",
    }
    notifier = ", ".join(f"{name} = {json.dumps(value)}" for name, value in told.items())
    empty.config.write_text(
        "\n".join(kept).replace("[sources.shop]", '[sources.shop]\nserver = "airflow:shop_db"')
        + '\nairflow.schedule = { delta = "", maintain = "" }\nairflow.retries = 0\n[sources.shop.airflow.notifier]\n'
        f'type = "tests.dags.notifiers.FileNotifier"\narguments = {{ {notifier} }}\n',
        encoding="utf-8",
    )
    empty.execute(f"ALTER USER 'loader'@'%' IDENTIFIED BY '{CANARY}'")
    found = Airflow(empty.home / "airflow", empty.config)
    transport = {"type": "file", "log_file_path": str(empty.home / LINEAGE), "append": True}
    found.env |= seen[1].settings | {
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
        "AIRFLOW__CORE__TEST_CONNECTION": "Enabled",
    }
    found.add_dag_file(DAG_FILE)
    found.prepare()
    with running(found, "api-server", "scheduler", "dag-processor", "triggerer"):
        found.wait_until_known(DAG)
        found.add_connection("shop_db", **connection(empty, CANARY))
        yield found


def connection(empty: Loaded, password: str) -> dict[str, Any]:
    server = empty.server
    return {
        "conn_type": "binlog_source", "host": server.host, "port": server.port, "login": "loader", "password": password
    }  # fmt: skip


def test_the_password_is_nowhere(airflow: Airflow, empty: Loaded, seen: tuple[Arguments, StatsdReceiver]) -> None:
    answers = [form_of_connection(airflow, empty, password) for password in SECRETS]
    assert [answer["status"] for answer in answers] == [True, False]
    for dag in (DAG, *(f"shop.{use}" for use in ("delta", "check", "repair", "replay", "maintain"))):
        airflow.unpause(dag)
    empty.execute(*changes(1))
    runs = [finished(airflow, DAG, "success")]
    empty.execute(*changes(2))
    runs += [finished(airflow, "shop.delta", "success"), finished(airflow, "shop.check", "success", verify=True)]
    orders = {"tables": ["shop.orders"]}
    runs += [
        finished(airflow, "shop.repair", "success", **form)
        for form in (
            {"action": "pause", "reason": "a test", **orders},
            {"action": "resume", **orders},
            {"action": "load_again", **orders},
        )
    ]
    runs += [finished(airflow, "shop.replay", "success", **{"from": "begin", **orders})]
    runs += [finished(airflow, "shop.maintain", "success"), skipped(airflow, empty)]
    runs += [finished(airflow, "shop.delta", "success")]

    change_password(airflow, empty, WRONG)
    runs += [finished(airflow, "shop.delta", "failed"), finished(airflow, DAG, "failed")]
    runs += [finished(airflow, "shop.repair", "failed", action="load_again", **orders)]
    pages = [airflow.page(f"/binlog-loader/{place}") for place in PLACES]
    change_password(airflow, empty, CANARY)
    pages += [airflow.page(f"/binlog-loader/{place}") for place in PLACES]
    assert "shop.orders" in pages[-2] and "binlog_loader_up" in pages[-1]

    answers += [{"page": page} for page in pages]
    answers += [answer for dag, run in runs for answer in shown(airflow, dag, run)]
    assert not [answer for answer in map(json.dumps, answers) if has_secret(answer)]
    arguments, metrics = seen
    assert any("materialise" in one or "delta" in one for one in arguments.seen)
    assert not [one for one in arguments.seen if has_secret(one)]
    assert not [line for line in metrics.lines if has_secret(line)]
    assert "the server refused the user" in (empty.home / SENT).read_text(encoding="utf-8")
    assert '"FAIL"' in (empty.home / LINEAGE).read_text(encoding="utf-8")
    assert [file for file in empty.home.rglob("*") if file.is_file() and has_secret(file.read_bytes())] == []


def has_secret(text: str | bytes) -> bool:
    data = text.encode() if isinstance(text, str) else text
    return any(secret.encode() in data for secret in SECRETS)


def form_of_connection(airflow: Airflow, empty: Loaded, password: str) -> dict[str, Any]:
    """Press the button "Test" of the form of a connection, and return the answer."""
    return airflow.request(
        "POST", "/api/v2/connections/test", {"connection_id": "shop_db", **connection(empty, password)}
    )


def change_password(airflow: Airflow, empty: Loaded, password: str) -> None:
    fields = {"connection_id": "shop_db", **connection(empty, password)}
    airflow.request("PATCH", "/api/v2/connections/shop_db", fields)


def finished(airflow: Airflow, dag: str, state: str, **conf: object) -> tuple[str, str]:
    run = airflow.trigger(dag, **conf)
    airflow.wait_for(dag, run, state)
    return dag, run


def skipped(airflow: Airflow, empty: Loaded) -> tuple[str, str]:
    """Skip a transaction, with an approval. Return the run of the repair."""
    with connected(empty.address) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOG STATUS")
        file, offset, *_ = cursor.fetchone()
    empty.execute("INSERT INTO shop.reviews (customer_id, sku) VALUES (1, 'NEW1')")
    form = {"action": "skip", "transaction": f"{file}:{offset}", "tables": ["shop.reviews"], "reason": "a test"}
    run = airflow.trigger("shop.repair", **form)
    assert answer(airflow, run, "Approve") == "success"
    airflow.wait_for("shop.repair", run, "success")
    return "shop.repair", run


def shown(airflow: Airflow, dag: str, run: str) -> Iterator[dict[str, Any]]:
    """Return what Airflow shows of a run: tasks with rendered fields, XComs, events of assets, and its events."""
    for task, shown_task in airflow.tasks(dag, run).items():
        yield shown_task
        entries = f"{dag}/dagRuns/{run}/taskInstances/{task}/xcomEntries"
        for entry in airflow.get(entries)["xcom_entries"]:
            yield airflow.get(f"{entries}/{entry['key']}")
    yield {"assets": airflow.asset_events(dag, run)}
    yield airflow.request("GET", f"/api/v2/eventLogs?dag_id={dag}")
    yield airflow.request("GET", "/api/v2/connections/shop_db")
