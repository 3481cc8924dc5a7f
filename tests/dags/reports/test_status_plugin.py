"""The status pages in Airflow's API server: who may see them, what they show, and where their links lead."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from loader.errors import DataError
from loader.page.site import BUTTON_HEADERS
from loader.staging.notes.quarantine import Quarantines
from tests.unit.page.reading import Element, read_page
from tests.unit.pipeline.site import Site, shop
from tests.unit.pipeline.test_gauges import samples

PAGES = "/binlog-loader/"
CANARY = "c4n4ry-of-a-connection"


class Client:
    """A browser of Airflow's API server, whose users log in by a token in a cookie."""

    def __init__(self) -> None:
        from airflow.api_fastapi.app import create_app, get_auth_manager
        from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

        self._client = TestClient(create_app(apps="core"))
        manager = get_auth_manager()
        pairs = (pair.split(":") for pair in os.environ["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"].split(","))
        self._users = {name: SimpleAuthManagerUser(username=name, role=role or None) for name, role in pairs}
        self._token = manager.generate_jwt

    def get(self, path: str, user: str = "") -> tuple[int, str]:
        self._client.cookies.clear()
        if user:
            self._client.cookies.set("_token", self._token(self._users[user]))
        answer = self._client.get(PAGES + path, follow_redirects=False)
        assert BUTTON_HEADERS.items() <= {name.title(): value for name, value in answer.headers.items()}.items()
        assert CANARY not in answer.text
        return answer.status_code, answer.text

    def page(self, path: str, user: str = "viewer") -> Element:
        status, text = self.get(path, user)
        assert status == 200
        return read_page(text)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The staged source `shop`, with a quarantined table."""
    log, ends = shop(6)
    found = Site(tmp_path_factory.mktemp("status"), log)
    plans = [found.plan(end) for end in ends[1::2]]
    for plan in plans:
        found.extract(plan)
    found.publish(plans[0], "shop.orders", "shop.items")
    error = DataError("a value does not fit", hint="widen the column").as_dict()
    name = next(file.name for file in found.extract(plans[0]).files)
    Quarantines(found.store, "shop").begin(name, error, None, (plans[1].stop, plans[1].stop_seqno))
    return found


@pytest.fixture(scope="module")
def config(site: Site) -> Path:
    """Three sources: `shop` is staged, `crm` has a connection with its password, `erp` one that does not exist."""
    text = f'[staging]\nroot = "{site.settings.staging_root}"\n[warehouse]\npath = "/w"\n[spark]\njars = "/jars"\n'
    for name in ("shop", "crm", "erp"):
        password = "" if name == "shop" else f'password = "airflow:{name}_db"\n'
        text += f'[sources.{name}]\nhost = "127.0.0.1"\nport = 1\nuser = "u"\ntables.include = ["shop.*"]\n{password}'
    file = site.folder / "loader.toml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def client(airflow_db: None, config: Path) -> Iterator[Client]:
    from airflow.api_fastapi.app import purge_cached_app

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOADER_CONFIG", str(config))
        patch.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")
        patch.setenv("AIRFLOW__CORE__AUTH_MANAGER", "tests.support.dag_rights.DagRights")
        patch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS", "viewer:viewer,nobody:,only-crm:user,only-hr:admin")
        patch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS", "False")
        patch.setenv("AIRFLOW_CONN_CRM_DB", json.dumps({"conn_type": "binlog_source", "password": CANARY}))
        yield Client()
        purge_cached_app()


@pytest.mark.parametrize(
    "path", ["", "source?name=shop", "table?source=shop&name=shop.orders", "metrics", "docs", "openapi.json"]
)
def test_without_a_login_nothing_is_shown(path: str, client: Client) -> None:
    status, text = client.get(path)
    assert status == 401
    assert read_page(text).one("main").text == "Log inLog in to Airflow, then come back."


def test_a_token_of_somebody_else_is_refused(client: Client) -> None:
    client._client.cookies.clear()
    client._client.cookies.set("_token", "forged")
    answer = client._client.get(PAGES)
    assert answer.status_code in {401, 403}
    assert "shop" not in answer.text


@pytest.mark.parametrize("user", ["nobody", "only-hr"])
@pytest.mark.parametrize("path", ["", "source?name=shop", "metrics"])
def test_a_user_who_may_read_no_dag_of_a_source_sees_no_source(user: str, path: str, client: Client) -> None:
    status, text = client.get(path, user)
    assert status == 403
    assert read_page(text).one("main").text == "ForbiddenYou may not read the DAGs of any source."


def test_a_user_sees_the_sources_whose_dags_it_may_read(client: Client) -> None:
    assert [row[0] for row in client.page("").rows("Sources")] == ["shop", "crm", "erp"]
    assert [row[0] for row in client.page("", "only-crm").rows("Sources")] == ["crm"]
    for path in ("source?name=shop", "table?source=shop&name=shop.orders"):
        status, text = client.get(path, "only-crm")
        assert (status, read_page(text).one("h1").text) == (404, "Not found")


def test_prometheus_reads_the_gauges_of_the_sources_whose_dags_it_may_read(client: Client) -> None:
    """It sends a token of Airflow's API in a header."""
    client._client.cookies.clear()
    token = client._token(client._users["only-crm"])
    answer = client._client.get(f"{PAGES}metrics", headers={"Authorization": f"Bearer {token}"})
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert samples(answer.text) == {'binlog_loader_up{source="crm"}': "0"}
    _, text = client.get("metrics", "viewer")
    found = samples(text)
    assert found['binlog_loader_up{source="shop"}'] == "1"
    assert found['binlog_loader_quarantined_tables{source="shop"}'] == "1"
    assert found['binlog_loader_server_up{source="shop"}'] == "0"  # it is down


def test_a_source_has_links_to_its_dags_and_forms(client: Client) -> None:
    page = client.page("source?name=shop")
    links = {one.text: one.attributes["href"] for one in page.all("a")}
    for name, word in {"delta": "Run", "replay": "Replay", "repair": "Repair", "check": "Check"}.items():
        assert links[f"{word}: shop.{name}"] == f"../dags/shop.{name}"
    unreachable, quarantined = page.panels()
    assert unreachable.startswith("the server does not answer\n")
    (table,) = [row[0] for row in page.rows("2 of 2 tables") if row[1] == "quarantined"]
    form = f"trigger shop.repair with action = release, tables = {table}"
    assert quarantined.split("\n")[-1] == f"in Airflow: {form} Trigger shop.repair: release"
    assert links[form] == "../dags/shop.repair"
    assert (
        client.page(f"table?source=shop&name={table}").panels()[0].split("\n")[-1]
        == f"in Airflow: {form} Trigger shop.repair: release"
    )
    buttons = {one.text: one.attributes for one in page.all("button") if "data-runs" in one.attributes}
    assert set(buttons) == {"Trigger shop.delta", "Trigger shop.check", "Trigger shop.repair: release"}
    release = buttons["Trigger shop.repair: release"]
    assert release["data-runs"] == "../api/v2/dags/shop.repair/dagRuns"
    assert json.loads(release["data-conf"]) == {"action": "release", "tables": [table]}


def test_the_password_of_a_connection_is_used_and_not_shown(client: Client) -> None:
    assert client.page("source?name=crm").panels()[0].startswith("nothing was loaded from this source yet\n")
    assert (
        client.page("source?name=erp")
        .panels()[0]
        .startswith("the Airflow connection does not exist, or cannot be parsed\nwhere: connection erp_db\n")
    )


def test_a_wrong_configuration_is_shown_to_those_who_may_read_dags(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADER_CONFIG", "/nowhere/loader.toml")
    assert client.get("", "nobody")[0] == 403
    assert client.get("", "only-crm")[0] == 403
    status, text = client.get("", "viewer")
    assert status == 503
    assert "/nowhere/loader.toml" in read_page(text).panels()[0]


def test_files_need_no_login(client: Client) -> None:
    assert client.get("style.css")[0] == 200
    assert client.get("icon.svg")[0] == 200


def test_the_plugin_is_light_until_a_page_is_asked_for() -> None:
    code = "import sys, loader.airflow.status_plugin as p; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert set(done.stdout.split()) & {"fastapi", "pymysql", "loader.pipeline", "loader.page.site"} == set()
