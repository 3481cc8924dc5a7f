"""The forms of the DAGs in a real browser: each can be triggered, as it is and after its fields were typed in and cleared."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from loader.airflow.actions.repair_form import check_form
from tests.e2e.airflow.running.browser import browsing
from tests.e2e.airflow.running.dag_form import Form
from tests.e2e.airflow.running.server import Airflow, running
from tests.support.airflow_version import AIRFLOW

pytestmark = [pytest.mark.e2e]

_REPLAY = {
    "from": None,
    "lognum": 54,
    "logpos": None,
    "to": None,
    "tables": [],
    "restore_files": False,
    "dry_run": True,
}
_REPLAY["approval"] = False


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    folder: Path = tmp_path_factory.mktemp("forms")
    found = Airflow(folder / "airflow", folder / "loader.toml")
    found.prepare()
    _configure(found, "shop", "crm")
    with running(found, "api-server"):
        yield found


@pytest.fixture(scope="module")
def page(airflow: Airflow) -> Iterator[Page]:
    with browsing(airflow.url) as found:
        yield found


@pytest.fixture
def form(page: Page) -> Callable[[str], Form]:
    return lambda dag: Form(page, dag)


def _configure(airflow: Airflow, *sources: str) -> None:
    """Write the configuration, and let Airflow parse the DAG file."""
    places = '[staging]\nroot = "file:///staging"\n[warehouse]\npath = "/warehouse"\n[spark]\njars = "/jars"\n'
    tables = [f'[sources.{name}]\nhost = "h"\nuser = "u"\ntables.include = ["shop.*"]\n' for name in sources]
    (airflow.home.parent / "loader.toml").write_text(places + "".join(tables), encoding="utf-8")
    subprocess.run(airflow.command("dags", "reserialize"), env=airflow.env, check=True, capture_output=True)


@pytest.mark.parametrize("source", ["shop", pytest.param("crm", marks=pytest.mark.sweep)])
def test_every_dag_of_a_source_runs_by_its_defaults(source: str, form: Callable[[str], Form]) -> None:
    assert form(f"{source}.delta").trigger() == {"until": None, "now": False}
    assert form(f"{source}.maintain").trigger() == {"tables": []}
    assert form(f"{source}.check").trigger() == {"verify": False, "tables": []}
    assert form(f"{source}.initial_load").trigger() == {"tables": []}
    replay = form(f"{source}.replay")
    replay.field("lognum").fill("54")
    assert replay.trigger() == _REPLAY


def test_a_field_that_is_typed_in_and_cleared_is_empty(form: Callable[[str], Form]) -> None:
    load = form("shop.initial_load")
    load.type_and_clear("tables", "shop.orders")
    assert not load.trigger()["tables"]
    load = form("shop.initial_load")
    load.field("tables").fill("shop.orders\nshop.customers")
    assert load.trigger()["tables"] == ["shop.orders", "shop.customers"]
    replay = form("shop.replay")
    replay.field("lognum").fill("54")
    replay.type_and_clear("logpos", "123")
    replay.type_and_clear("tables", "shop.*")
    found = replay.trigger()
    cleared = None if AIRFLOW >= (3, 2) else 4  # 3.1 turns an empty number into the smallest one
    assert (found["logpos"], found["tables"] or []) == (cleared, [])


_TEXTS = ("position", "accept", "definition", "place", "reason", "transaction")
_REPAIR = dict.fromkeys(_TEXTS) | {"tables": [], "all_tables": False}


def test_a_repair_is_chosen_from_a_list(form: Callable[[str], Form]) -> None:
    repair = form("shop.repair")
    expect(repair.button).to_be_disabled()
    repair.choose("release: let quarantined tables continue")
    repair.field("tables").fill("shop.orders")
    assert repair.trigger() == _REPAIR | {"action": "release", "tables": ["shop.orders"]}
    repair = form("shop.repair")
    repair.choose("restore:")
    repair.type_and_clear("accept", "0-1-7")
    repair.field("position").fill("binlog.000054:123")
    found = repair.trigger()
    assert check_form(found) == "restore"
    assert found["position"] == "binlog.000054:123"
    repair = form("shop.repair")
    repair.choose("set_schema:")
    repair.field("position").fill("somewhere")
    assert "does not match" in repair.refused()


def test_a_skip_is_asked_for_and_withdrawn(form: Callable[[str], Form]) -> None:
    for action, option in (("skip", "skip: leave a transaction out"), ("withdraw_skip", "withdraw_skip:")):
        repair = form("shop.repair")
        repair.choose(option)
        repair.fill(transaction="binlog.000054:123", tables="shop.orders", reason="wrong bytes")
        found = repair.trigger()
        assert found == _REPAIR | {
            "action": action, "transaction": "binlog.000054:123", "tables": ["shop.orders"], "reason": "wrong bytes",
        }  # fmt: skip
        assert check_form(found) == action
