"""A transaction that is skipped by the form of a real Airflow, once a person approved it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.e2e.airflow.running.browser import browsing
from tests.e2e.airflow.running.dag_form import Form
from tests.e2e.airflow.running.server import LOAD, Airflow, running
from tests.e2e.loaded import Loaded

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1800),
    pytest.mark.sweep,
]
REPAIR = "shop.repair"


@pytest.fixture(scope="module")
def airflow(empty: Loaded) -> Iterator[Airflow]:
    """The table `words` is quarantined before a row that cannot be staged."""
    empty.execute("CREATE TABLE shop.words (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET hebrew)")
    found = Airflow(empty.home / "airflow", empty.config)
    found.prepare()
    with running(found):
        found.unpause(LOAD)
        found.unpause(REPAIR)
        found.wait_for(LOAD, found.trigger(LOAD), "success")
        empty.execute("INSERT INTO shop.words VALUES (1, _hebrew X'61A1')", "INSERT INTO shop.words VALUES (2, 'b')")
        assert empty.loader("run").returncode == 4
        yield found


def asked(airflow: Airflow, empty: Loaded) -> tuple[str, dict[str, Any]]:
    """Send the form that the error names, and wait for the question: the run, and the question."""
    (stopped,) = empty.json("status")["quarantined"]
    position = stopped["error"]["where"]["position"]
    conf = {"action": "skip", "transaction": position, "tables": ["shop.words"], "reason": "wrong bytes"}
    run = str(airflow.post(f"{REPAIR}/dagRuns", logical_date=None, conf=conf)["dag_run_id"])
    airflow.wait_for_question(REPAIR, run, "approve_skip")
    return run, airflow.get(_question(run))


def _question(run: str) -> str:
    return f"{REPAIR}/dagRuns/{run}/taskInstances/approve_skip/-1/hitlDetails"


def answer(airflow: Airflow, run: str, option: str) -> str:
    """Answer, and return the state of the task that skips."""
    airflow.patch(_question(run), chosen_options=[option])
    airflow.wait_for(REPAIR, run, "success")
    return str(airflow.tasks(REPAIR, run)["skip"]["state"])


def test_only_an_approved_skip_is_recorded_and_the_table_goes_on(airflow: Airflow, empty: Loaded) -> None:
    run, question = asked(airflow, empty)
    assert "| shop.words | 1 | 1 | 0 | 0 |" in question["body"] and "wrong bytes" in question["body"]
    assert answer(airflow, run, "Reject") == "skipped"
    assert empty.json("status")["skips"] == []

    run, _ = asked(airflow, empty)
    assert answer(airflow, run, "Approve") == "success"
    (skipped,) = empty.json("status")["skips"]
    assert (skipped["state"], skipped["reason"], skipped["tables"]) == ("used", "wrong bytes", ["shop.words"])
    assert skipped["by"]
    empty.json("release", "shop.words")
    empty.json("run")
    assert empty.differences(("shop.words",)) == {"shop.words": 1}
    airflow.clear(run, "skip", REPAIR)
    airflow.wait_for(REPAIR, run, "success", tries=2)
    assert empty.json("status")["skips"] == [skipped]


def test_a_person_records_a_skip_and_withdraws_it_in_a_browser(airflow: Airflow, empty: Loaded) -> None:
    place = empty.json("status")["log_end"]
    empty.execute("INSERT INTO shop.reviews (customer_id, sku) VALUES (1, 'NEW1')")
    with browsing(airflow.url) as page:
        run = sent(page, "skip: leave a transaction out", place, "a test order")
        airflow.wait_for_question(REPAIR, run, "approve_skip")
        page.goto(f"/dags/{REPAIR}/runs/{run}/tasks/approve_skip/required_actions")
        page.get_by_role("button", name="Approve").click()
        airflow.wait_for(REPAIR, run, "success")
        assert [one["state"] for one in empty.json("status")["skips"]] == ["used", "waiting"]
        run = sent(page, "withdraw_skip:", place, "it was a real order")
        airflow.wait_for(REPAIR, run, "success")
    _, withdrawn = empty.json("status")["skips"]
    assert (withdrawn["state"], withdrawn["reason"]) == ("withdrawn", "a test order")
    assert withdrawn["why"].endswith(": it was a real order")
    empty.json("run")
    assert empty.differences(("shop.reviews",)) == {"shop.reviews": 0}


def sent(page: Page, action: str, place: str, reason: str) -> str:
    """Fill in the form and send it, and return the run."""
    form = Form(page, REPAIR)
    form.choose(action)
    form.fill(transaction=place, reason=reason)
    form.trigger()
    return form.run
