"""The status pages in a real browser: those of `loader ui`, and those inside Airflow with its login."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Dialog, Page, expect

from infra.servers import Server
from loader.cli.demo.shop import TABLES
from loader.errors import DataError
from loader.model.position import Position
from loader.model.table import TableName
from loader.page import figures
from loader.page.addresses import interval_address
from loader.staging.notes.quarantine import Quarantines
from loader.transport.server.connection import connected
from tests.e2e.airflow.running.browser import browsing
from tests.e2e.airflow.running.server import Airflow, running, until
from tests.e2e.changes import changes
from tests.e2e.loaded import Loaded
from tests.integration.initial_load.source_server import SourceServer
from tests.integration.initial_load.test_load_status import Loading
from tests.unit.page.reading import Element, read_page
from tests.unit.page.test_html import EVIL
from tests.unit.pipeline.site import Site, shop

pytestmark = [pytest.mark.e2e]
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A staged source with a quarantined table whose error is hostile, and its configuration."""
    log, ends = shop(12)
    found = Site(tmp_path_factory.mktemp("status"), log)
    plans = [found.plan(end) for end in ends[1::2]]
    for plan in plans:
        found.extract(plan)
    found.publish(plans[2], "shop.orders")
    error = DataError("a value does not fit", why=EVIL[:-1], hint="widen the column").as_dict()
    stop = (plans[2].stop, plans[2].stop_seqno)
    Quarantines(found.store, "shop").begin(TableName("shop", "items"), error, None, stop)
    (found.folder / "loader.toml").write_text(
        f'[staging]\nroot = "{found.settings.staging_root}"\n[warehouse]\npath = "/w"\n[spark]\njars = "/jars"\n'
        '[sources.shop]\nhost = "127.0.0.1"\nport = 1\nuser = "u"\ntables.include = ["shop.*"]\n',
        encoding="utf-8",
    )
    return found


@contextmanager
def served(config: Path) -> Iterator[str]:
    """The address of `loader ui`."""
    command = [sys.executable, "-m", "loader", "--config", str(config), "--json", "ui", "--port=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def url(site: Site) -> Iterator[str]:
    with served(site.folder / "loader.toml") as found:
        yield found


@contextmanager
def silent(page: Page) -> Iterator[None]:
    """Nothing fails and nothing is asked elsewhere: a violation of the policy of content is a message."""
    said: list[str] = []
    hosts: set[str] = set()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
    yield
    assert said == []
    assert len(hosts) == 1


def test_a_person_goes_from_the_sources_to_a_table(url: str) -> None:
    with browsing(url) as page, silent(page):
        page.goto(url)
        page.get_by_role("link", name="shop").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("shop")
        expect(page.get_by_text("shop.items is quarantined")).to_be_visible()
        expect(page.get_by_text("widen the column; then, unless the table was loaded again")).to_be_visible()
        chart = page.get_by_role("img", name="Rows by operation")
        assert chart.locator("rect").count() == 6
        bars = [bar.bounding_box() for bar in chart.locator("rect").all()]
        assert all(bar and bar["width"] > 10 and bar["height"] > 50 for bar in bars)
        lag = page.get_by_role("img", name="Lag of the newest commit")
        expect(lag).to_be_visible()
        assert lag.locator("rect.staged").count() == 6
        page.get_by_text("Numbers").first.click()
        expect(page.get_by_role("table", name="Rows by operation")).to_be_visible()
        page.get_by_role("searchbox").fill("ord")
        page.get_by_role("button", name="Find").click()
        expect(page.get_by_role("table", name="1 of 2 tables")).to_be_visible()
        page.get_by_role("link", name="shop.orders").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("shop.orders")
        page.get_by_role("link", name="stop refreshing").click()
        expect(page.get_by_role("link", name="refresh every 30 s")).to_be_visible()
        page.get_by_role("link", name="shop", exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_have_text("shop")


def test_a_link_of_a_task_shows_its_interval(url: str) -> None:
    with browsing(url) as page, silent(page):
        page.set_viewport_size(PHONE)  # type: ignore[arg-type]
        page.goto(f"{url}{interval_address('shop', 'binlog.000001:4')}")
        expect(page.locator(":target")).to_have_text("binlog.000001:4")
        expect(page.locator(":target")).to_be_in_viewport()


def test_a_running_load_on_the_page_of_its_source(mysql_server: Server, tmp_path: Path) -> None:
    source = SourceServer(mysql_server)
    loading = Loading(source, tmp_path)
    loading.read(0)
    loading.read(1)
    loading.command("status")
    with served(tmp_path / "loader.toml") as url, browsing(url) as page, silent(page):
        page.goto(f"{url}source?name=shop")
        row = page.get_by_role("table", name="Initial loads").get_by_role("row").nth(1)
        shown = [
            f"{source.schema}.orders",
            "2 of 4",
            "2 of 4",
            "6",
            re.compile("^[0-9]+ bytes$"),
            re.compile("^[0-9]+$"),
        ]
        expect(row.locator("th, td")).to_have_text([*shown, re.compile("ago$"), re.compile("^about ")])
        expect(row.get_by_role("progressbar", name="2 of 4 chunks")).to_have_js_property("position", 0.5)
        assert page.get_by_role("columnheader", name="rows/s").is_visible()
        page.set_viewport_size(PHONE)  # type: ignore[arg-type]
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    source.drop()


def test_hostile_text_runs_nothing(url: str) -> None:
    with browsing(url) as page:
        asked: list[str] = []
        page.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
        page.goto(f"{url}source?name=shop")
        expect(page.get_by_text("<script>alert('1')</script>").first).to_be_visible()
        assert page.locator("script").count() == 0
        assert asked == []


def test_light_and_dark_on_a_phone_without_scripts(url: str) -> None:
    with browsing(url) as first:
        assert first.context.browser is not None
        colours = []
        for scheme in ("light", "dark"):
            context = first.context.browser.new_context(
                viewport=PHONE,  # type: ignore[arg-type]
                color_scheme=scheme,  # type: ignore[arg-type]
                java_script_enabled=False,
            )
            page = context.new_page()
            with silent(page):
                page.goto(f"{url}source?name=shop")
                box = page.locator("main").bounding_box()
                assert box is not None
                assert box["width"] <= PHONE["width"]
                whole = page.locator("html").bounding_box()
                assert whole is not None
                assert whole["width"] == PHONE["width"]
                expect(page.get_by_role("heading", name="Tables")).to_be_visible()
                colours.append(page.screenshot(clip={"x": 0, "y": 0, "width": 2, "height": 2}))
            context.close()
        assert colours[0] != colours[1]


@pytest.mark.sweep
def test_the_pages_follow_a_loaded_shop(loaded: Loaded) -> None:
    loaded.execute(*changes(50))
    loaded.json("run")
    with served(loaded.config) as url:

        def page() -> Element:
            with urllib.request.urlopen(f"{url}source?name=shop") as answer:  # noqa: S310 - ours
                return read_page(answer.read().decode())

        def applied() -> list[str]:
            return page().rows("Positions")[3]

        before = page()
        names = sorted(table["table"] for table in loaded.json("status")["tables"])
        assert set(TABLES) <= set(names)
        position = str(log_end(loaded))
        assert before.rows("Positions")[0] == ["end of the log", position]
        assert applied() == ["applied to all tables", position]
        assert before.figures() | {"runway": ""} == {
            "lag": "0 s",
            "log not applied": "0 bytes",
            "runway": "",
            "intervals staged, not applied": "0",
            "quarantined tables": "0",
        }
        shown = before.rows(f"{len(names)} of {len(names)} tables")
        assert [row[:3] for row in shown] == [[name, "exact", position] for name in names]
        loaded.execute(*changes(60))
        later = log_end(loaded)
        until("the end of the log", lambda: page().rows("Positions")[0] == ["end of the log", str(later)])
        assert page().figures()["log not applied"] == figures.size(later.logpos - int(position.rpartition(":")[2]))
        done = loaded.json("run")
        until("the new position", lambda: applied() == ["applied to all tables", done["intervals"][-1]["stop"]])
        newest = page().rows("Intervals")[0]
        listed = loaded.json("intervals")[-1]
        assert newest[:2] == [listed["start"], listed["stop"]]
        assert newest[5:8] == [f"{listed[name]:,}" for name in ("inserts", "updates", "deletes")]


def log_end(loaded: Loaded) -> Position:
    """The end of the log, as the server says."""
    with connected(loaded.address) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOG STATUS")
        file, position = cursor.fetchone()[:2]  # type: ignore[index]
        return Position.at(file, position)


WAITS = "shop.repair is paused, so the run waits. Unpause it?"


@pytest.fixture(scope="module", params=["", "/airflow"], ids=["at the root", "below a path"])
def airflow(site: Site, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Airflow]:
    folder: Path = tmp_path_factory.mktemp("airflow")
    found = Airflow(folder / "airflow", site.folder / "loader.toml")
    found.serve_below(request.param)
    found.require_login(ann="admin", vera="viewer", nobody="")
    found.prepare()
    subprocess.run(found.command("dags", "reserialize"), env=found.env, check=True, capture_output=True)
    with running(found, "api-server"):
        yield found


def log_in(page: Page, airflow: Airflow, name: str) -> None:
    page.goto(f"{airflow.url}/")
    page.locator("[name=username]").fill(name)
    page.locator("[name=password]").fill(name)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("link", name="Dags").or_(page.get_by_role("button", name="Dags")).first).to_be_visible()


@pytest.mark.sweep
def test_without_a_login_airflow_shows_nothing(airflow: Airflow) -> None:
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"{airflow.url}/binlog-loader/source?name=shop")  # noqa: S310 - ours
    assert caught.value.code == 401
    answer = caught.value.read().decode()
    assert "binlog.000001" not in answer
    assert '<a href="../">' in answer


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["ann", "vera"])
def test_a_person_goes_from_the_navigation_to_the_pages_and_to_a_dag(name: str, airflow: Airflow) -> None:
    with browsing(airflow.url) as page:
        log_in(page, airflow, name)
        page.get_by_role("button", name="Browse").click()
        with page.expect_popup() as opened:
            page.get_by_role("menuitem", name="Binlog loader").click()
        pages = opened.value
        with silent(pages):
            pages.reload()
            pages.get_by_role("link", name="shop").click()
            expect(pages.get_by_role("heading", level=1)).to_have_text("shop")
            form = pages.get_by_role("link", name="trigger shop.repair with action = release, tables = shop.items")
            expect(form).to_be_visible()
            for word, dag in {"Run": "delta", "Replay": "replay", "Repair": "repair", "Check": "check"}.items():
                link = pages.get_by_role("link", name=f"{word}: shop.{dag}")
                assert link.evaluate("link => link.href") == f"{airflow.url}/dags/shop.{dag}"
        form.click()
        expect(pages).to_have_url(f"{airflow.url}/dags/shop.repair")
        expect(pages.get_by_role("heading", name="shop.repair")).to_be_visible()


@pytest.mark.sweep
def test_buttons_trigger_runs_with_the_rights_of_the_person(airflow: Airflow) -> None:
    asked: list[str] = []

    def accept(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.accept()

    with browsing(airflow.url) as page:
        page.on("dialog", accept)
        log_in(page, airflow, "vera")
        page.goto(f"{airflow.url}/binlog-loader/source?name=shop")
        page.get_by_role("button", name="Trigger shop.delta").click()
        expect(page.get_by_role("alert")).to_have_text("refused: you may not trigger this DAG")
        page.context.clear_cookies()
        log_in(page, airflow, "ann")
        page.goto(f"{airflow.url}/binlog-loader/source?name=shop")
        expect(page.get_by_role("button", name="Trigger")).to_have_text(
            ["Trigger shop.delta", "Trigger shop.check", "Trigger shop.repair: release"]
        )
        repair = f"{airflow.url}/api/v2/dags/shop.repair"
        assert page.request.get(repair).json()["is_paused"]
        with silent(page):
            page.get_by_role("button", name="Trigger shop.repair: release").click()
            page.wait_for_url(f"{airflow.url}/dags/shop.repair/runs/*")
        assert not page.request.get(repair).json()["is_paused"]
        (run,) = page.request.get(f"{airflow.url}/api/v2/dags/shop.repair/dagRuns").json()["dag_runs"]
    assert run["conf"] | {"action": "release", "tables": ["shop.items"]} == run["conf"]
    assert run["triggering_user_name"] == "ann"
    assert asked == ["Trigger shop.delta?", "Trigger shop.repair: release?", WAITS]


@pytest.mark.sweep
def test_buttons_of_a_table(airflow: Airflow) -> None:
    table = f"{airflow.url}/binlog-loader/table?source=shop&name=shop.orders"
    with browsing(airflow.url) as page:
        page.on("dialog", lambda dialog: dialog.accept("too slow") if dialog.type == "prompt" else dialog.accept())
        log_in(page, airflow, "ann")
        for button, dag, conf in (
            ("Trigger shop.repair: pause", "repair", {"action": "pause", "reason": "too slow"}),
            ("Trigger shop.replay: dry run", "replay", {"from": "binlog.000001:4", "dry_run": True}),
        ):
            page.goto(table)
            page.get_by_role("button", name=button).click()
            page.wait_for_url(f"{airflow.url}/dags/shop.{dag}/runs/*")
            newest = f"{airflow.url}/api/v2/dags/shop.{dag}/dagRuns?order_by=-id&limit=1"
            (run,) = page.request.get(newest).json()["dag_runs"]
            assert run["conf"] | {"tables": ["shop.orders"], **conf} == run["conf"]


@pytest.mark.sweep
def test_a_user_without_rights_is_refused(airflow: Airflow) -> None:
    with browsing(airflow.url) as page:
        page.goto(f"{airflow.url}/")
        page.locator("[name=username]").fill("nobody")
        page.locator("[name=password]").fill("nobody")
        with page.expect_response(lambda answer: answer.url.endswith("/auth/token")) as answered:
            page.get_by_role("button", name="Sign in").click()
        assert answered.value.status == 201
        page.wait_for_url(lambda url: "/auth/" not in url)  # which Airflow opens by itself
        found = page.goto(f"{airflow.url}/binlog-loader/source?name=shop")
        assert found is not None
        assert found.status == 403
        expect(page.get_by_role("heading", level=1)).to_have_text("Forbidden")
