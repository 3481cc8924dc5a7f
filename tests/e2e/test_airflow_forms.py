"""The forms of the DAGs in a real browser: each can be triggered, as it is and after its fields were typed in and cleared."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.airflow_server import Airflow, running
from tests.e2e.browser import browsing

pytestmark = [pytest.mark.e2e]

_ONE = "[sources.shop]\n"
_TWO = "[sources.shop]\n[sources.crm]\n"
_REPLAY = {"source": "shop", "lognum": 54, "logpos": 4, "tables": [], "dry_run": True}


class Form:
    """The form of a DAG, which a person has opened by the button "Trigger"."""

    def __init__(self, page: Page, dag: str) -> None:
        self._page, self._dag = page, dag
        page.goto(f"/dags/{dag}")
        page.get_by_role("button", name="Trigger").first.click()
        self._dialog = page.get_by_role("dialog")
        self._fields = self._dialog.get_by_test_id("config-form")
        self.button = self._dialog.get_by_role("button", name="Trigger", exact=True)
        expect(self._fields).to_be_visible()

    def field(self, name: str) -> Locator:
        return self._fields.locator(f"[name=element_{name}]")

    def choose(self, source: str) -> None:
        self._fields.get_by_role("combobox").click()
        self._page.get_by_role("option", name=source, exact=True).click()

    def offered(self) -> list[str]:
        """The sources of the drop-down list."""
        self._fields.get_by_role("combobox").click()
        return self._page.get_by_role("option").all_inner_texts()

    def type_and_clear(self, name: str, text: str) -> None:
        self.field(name).fill(text)
        self.field(name).blur()
        self.field(name).fill("")
        self.field(name).blur()

    def says(self, text: str) -> None:
        expect(self._fields).to_contain_text(text)

    def trigger(self) -> dict[str, Any]:
        """The conf of the run, as Airflow took it from the form."""
        expect(self.button).to_be_enabled()
        with self._page.expect_response(lambda answer: answer.url.endswith(f"/{self._dag}/dagRuns")) as answered:
            self.button.click()
        assert answered.value.status == 200, answered.value.text()
        found: dict[str, Any] = answered.value.json()["conf"]
        return found


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    folder: Path = tmp_path_factory.mktemp("forms")
    found = Airflow(folder / "airflow", folder / "loader.toml")
    found.prepare()
    _configure(found, _ONE)
    with running(found, "api-server"):
        yield found


@pytest.fixture(scope="module")
def page(airflow: Airflow) -> Iterator[Page]:
    with browsing(airflow.url) as found:
        yield found


@pytest.fixture
def form(page: Page) -> Callable[[str], Form]:
    return lambda dag: Form(page, dag)


def _configure(airflow: Airflow, text: str) -> None:
    """Write the configuration, and let Airflow parse the DAG files once more."""
    (airflow.home.parent / "loader.toml").write_text(text, encoding="utf-8")
    subprocess.run(airflow.command("dags", "reserialize"), env=airflow.env, check=True, capture_output=True)


def test_with_one_source_every_dag_runs_by_its_defaults(airflow: Airflow, form: Callable[[str], Form]) -> None:
    assert form("continuous_delta").trigger() == {"source": "shop"}
    assert form("maintain_tables").trigger() == {"source": "shop"}
    assert form("initial_load").trigger() == {"source": "shop", "tables": []}
    replay = form("replay_binlog")
    expect(replay.button).to_be_disabled()  # nobody but the person knows from where on
    replay.field("lognum").fill("54")
    assert replay.trigger() == _REPLAY


def test_a_field_that_is_typed_in_and_cleared_is_empty(airflow: Airflow, form: Callable[[str], Form]) -> None:
    load = form("initial_load")
    load.type_and_clear("tables", "shop.orders")
    assert not load.trigger()["tables"]
    load = form("initial_load")
    load.field("tables").fill("shop.orders\nshop.customers")
    assert load.trigger()["tables"] == ["shop.orders", "shop.customers"]
    replay = form("replay_binlog")
    replay.field("lognum").fill("54")
    replay.type_and_clear("logpos", "123")
    replay.type_and_clear("tables", "shop.*")
    found = replay.trigger()
    assert (found["logpos"], found["tables"] or []) == (None, [])


def test_of_several_sources_one_is_chosen_from_a_list(airflow: Airflow, form: Callable[[str], Form]) -> None:
    _configure(airflow, _TWO)
    load = form("initial_load")
    expect(load.button).to_be_disabled()
    assert load.offered() == ["shop", "crm"]
    load = form("initial_load")
    load.choose("crm")
    assert load.trigger() == {"source": "crm", "tables": []}
    delta = form("continuous_delta")
    delta.says("that of LOADER_SOURCE")
    delta.choose("shop")
    assert delta.trigger() == {"source": "shop"}


def test_without_a_configuration_the_source_can_be_typed_or_left_empty(
    airflow: Airflow, form: Callable[[str], Form]
) -> None:
    _configure(airflow, "")
    assert form("maintain_tables").trigger() == {"source": None}
    load = form("initial_load")
    load.says("has no [sources.NAME].")
    load.type_and_clear("source", "shop")
    assert load.trigger() == {"source": None, "tables": []}
    replay = form("replay_binlog")
    replay.field("lognum").fill("54")
    replay.field("source").fill("shop")
    assert replay.trigger() == _REPLAY
