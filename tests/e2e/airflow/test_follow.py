"""Sources that begin, or go on, on another server by the form of the repair DAG, as the log of a live Airflow names it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page

from infra.servers import Server, start_server
from tests.e2e.airflow.running.browser import browsing
from tests.e2e.airflow.running.cures import printed_forms, send, send_form
from tests.e2e.airflow.running.server import Airflow, running
from tests.e2e.loaded import Loaded
from tests.support.replicas import caught_up, options_of_replica, replicating, run, stop_replica

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1800),
    pytest.mark.sweep,
]
TABLE = "CREATE DATABASE {0}; CREATE TABLE {0}.items (id INT PRIMARY KEY); INSERT INTO {0}.items VALUES (1)"
USER = ("CREATE USER loader", "GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO loader")
WITHOUT_GTIDS = {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"}
KEY = "new-20-shop"
"""Of the source `new shop`, in ids of DAGs and pools."""


@dataclass
class Servers:
    """The sources: `shop` has a replica, `plain` a copy without GTIDs, and nothing of `new shop` is loaded."""

    shop: Server
    replica: Server
    plain: Server
    copy: Server
    home: Path
    jars: str

    def configure(self, shop: Server, plain: Server) -> Path:
        """Write the configuration, with these servers of the sources."""
        loaded = Loaded(shop, self.home / "loader", self.jars)
        loaded.configure()
        dags = 'airflow.retries = 2\nairflow.schedule = { delta = "", maintain = "" }\n'
        others = {"plain": (plain.port, "plain"), '"new shop"': (self.shop.port, "fresh")}
        sections = [
            f'[sources.{name}]\nhost = "127.0.0.1"\nport = {port}\nuser = "loader"\ntables.include = ["{schema}.*"]\n'
            for name, (port, schema) in others.items()
        ]
        text = loaded.config.read_text(encoding="utf-8")
        loaded.config.write_text(text + dags + dags.join([*sections, ""]), encoding="utf-8")
        return loaded.config


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory, jars: str) -> Iterator[Servers]:
    folder = tmp_path_factory.mktemp("follow")
    options = {"shop": {}, "replica": options_of_replica("mysql"), "plain": WITHOUT_GTIDS, "copy": WITHOUT_GTIDS}
    with ExitStack() as cleanup:
        found = {name: start_server("mysql", folder / name, given) for name, given in options.items()}
        for server in found.values():
            cleanup.callback(server.kill)
        yield Servers(**found, home=folder, jars=jars)


@pytest.fixture(scope="module")
def airflow(servers: Servers) -> Iterator[Airflow]:
    replicating(servers.shop, servers.replica)
    for server, schema in ((servers.shop, "shop"), (servers.plain, "plain"), (servers.copy, "plain")):
        run(server, *TABLE.format(schema).split("; "), *USER)
    found = Airflow(servers.home / "loader" / "airflow", servers.configure(servers.shop, servers.plain))
    found.prepare("shop", "plain", KEY)
    with running(found):
        found.wait_until_known(f"{KEY}.repair")
        yield found


@pytest.fixture(scope="module")
def page(airflow: Airflow) -> Iterator[Page]:
    with browsing(airflow.url) as found:
        yield found


def end_of_log(server: Server) -> str:
    ((file, position, *_),) = run(server, "SHOW BINARY LOG STATUS")
    return f"{file}:{position}"


def failed(page: Page, airflow: Airflow, dag: str, task: str) -> list[dict[str, str]]:
    """Send the form of a DAG, whose task must fail, and return the forms that its log names."""
    found = send(page, airflow, dag)
    airflow.wait_for(dag, found, "failed")
    return printed_forms(airflow, dag, found, task)


def rows_of(airflow: Airflow, dag: str, run_id: str) -> dict[str, int]:
    """Return the rows that a delta inserted, by table."""
    path = f"{dag}/dagRuns/{run_id}/taskInstances/materialise/xcomEntries/return_value"
    return {table["table"]: table["inserts"] for table in airflow.get(path)["value"]["tables"]}


def test_transactions_that_only_the_new_server_has_are_accepted(page: Page, airflow: Airflow, servers: Servers) -> None:
    send_form(page, airflow, "shop.initial_load")
    caught_up(servers.shop, servers.replica)
    run(servers.replica, "CREATE DATABASE aside")
    run(servers.shop, "INSERT INTO shop.items VALUES (2)")
    caught_up(servers.shop, servers.replica)
    send_form(page, airflow, "shop.delta")
    stop_replica(servers.replica)
    run(servers.replica, "INSERT INTO shop.items VALUES (3)")
    servers.configure(servers.replica, servers.plain)
    forms = failed(page, airflow, "shop.delta", "plan_interval")
    ((uuid,),) = run(servers.replica, "SELECT @@server_uuid")
    assert forms == [{"action": "follow", "accept": f"{uuid}:1"}]
    send_form(page, airflow, "shop.repair", **forms[0])
    assert rows_of(airflow, "shop.delta", send_form(page, airflow, "shop.delta")) == {"shop.items": 1}
    send_form(page, airflow, "shop.check", verify="true")


def test_a_server_without_gtids_is_followed_from_a_position(page: Page, airflow: Airflow, servers: Servers) -> None:
    send_form(page, airflow, "plain.initial_load")
    for server in (servers.plain, servers.copy):
        run(server, "INSERT INTO plain.items VALUES (2)")
    send_form(page, airflow, "plain.delta")
    place = end_of_log(servers.copy)
    run(servers.copy, "INSERT INTO plain.items VALUES (3)")
    servers.configure(servers.replica, servers.copy)
    forms = failed(page, airflow, "plain.delta", "plan_interval")
    assert forms[0] == {"action": "follow", "position": "FILE:POS"}
    send_form(page, airflow, "plain.repair", action="follow", position=place)
    assert rows_of(airflow, "plain.delta", send_form(page, airflow, "plain.delta")) == {"plain.items": 1}
    send_form(page, airflow, "plain.check", verify="true")


def test_a_source_begins_with_the_log_alone(page: Page, airflow: Airflow, servers: Servers) -> None:
    place = end_of_log(servers.shop)
    run(servers.shop, "CREATE DATABASE fresh", "CREATE TABLE fresh.items LIKE shop.items")
    send_form(page, airflow, f"{KEY}.repair", action="begin", place=f" {place} ")
    run(servers.shop, "INSERT INTO fresh.items VALUES (1), (2)")
    found = send_form(page, airflow, f"{KEY}.delta")
    assert rows_of(airflow, f"{KEY}.delta", found) == {"fresh.items": 2}
    send_form(page, airflow, f"{KEY}.check", verify="true")
