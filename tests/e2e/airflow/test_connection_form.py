"""The connection of a source, which a person adds, tests and corrects in the pages of a real Airflow."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.airflow.running.browser import browsing
from tests.e2e.airflow.running.server import Airflow, running
from tests.e2e.loaded import Loaded

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(900),
    pytest.mark.sweep,
]
CHECK = "shop.check"
PASSWORD = "swordfish"


@pytest.fixture
def airflow(empty: Loaded) -> Iterator[Airflow]:
    """The source names a connection that does not exist."""
    text = empty.config.read_text(encoding="utf-8")
    of_server = ("host =", "port =", "user =", "password =")
    kept = "\n".join(line for line in text.splitlines() if not line.startswith(of_server))
    empty.config.write_text(kept.replace("[sources.shop]", '[sources.shop]\nserver = "airflow:shop_db"'))
    empty.execute(f"ALTER USER 'loader'@'%' IDENTIFIED BY '{PASSWORD}'")
    found = Airflow(empty.home / "airflow", empty.config)
    found.env["AIRFLOW__CORE__TEST_CONNECTION"] = "Enabled"
    found.prepare()
    with running(found):
        found.unpause(CHECK)
        yield found


def test_a_person_adds_tests_and_corrects_the_connection(airflow: Airflow, empty: Loaded) -> None:
    run = airflow.trigger(CHECK)
    airflow.wait_for(CHECK, run, "failed")
    with browsing(airflow.url) as page:
        page.goto("/connections")
        page.get_by_role("button", name="Add Connection").click()
        choose_type(page)
        fill(page, connection_id="shop_db", host=empty.server.host, login="loader", password="wrong")
        fill(page, port=str(empty.server.port))
        save(page)
        assert "the server refused the user" in answer_of(page, "Test Connection Failed")
        page.get_by_role("button", name="Edit Connection").click()
        fill(page, password=PASSWORD)
        save(page)
        answer = answer_of(page, "Test Connection Successful")
    assert re.search(r"mysql 9\.\S+ at \S+, log up to binlog\.\d+:\d+", answer)
    assert PASSWORD not in answer
    airflow.clear(run, "check_source", CHECK)
    airflow.wait_for(CHECK, run, "success", tries=2)


def choose_type(page: Page) -> None:
    page.get_by_role("dialog").get_by_role("combobox").first.click()
    page.get_by_role("option", name="binlog-loader source").click()


def fill(page: Page, **texts: str) -> None:
    for name, text in texts.items():
        page.get_by_role("dialog").locator(f"[name={name}]").fill(text)


def save(page: Page) -> None:
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog")).to_be_hidden()


def answer_of(page: Page, title: str) -> str:
    """Test the connection, and return the answer that the page shows below a title."""
    page.get_by_role("button", name="Test Connection").click()
    told = page.get_by_role("status").filter(has_text=title)
    expect(told).to_be_visible()
    return told.inner_text()
