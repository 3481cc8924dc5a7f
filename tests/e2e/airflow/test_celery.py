"""Airflow's Celery executor: consecutive tasks run on different hosts, and a host is lost in the middle of a task."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from infra.s3server import S3Server
from tests.e2e.airflow.running.celery import CANARY, FIRST, SECOND, CelerySite, celery_site
from tests.e2e.airflow.running.hosts import Host, can_run_hosts, running_host
from tests.e2e.airflow.running.processes import MERGE, Arguments
from tests.e2e.airflow.running.server import DELTA, LOAD, until
from tests.e2e.airflow.test_approval import FORM, REPLAY, answer
from tests.e2e.changes import changes
from tests.e2e.loaded import NOTHING_DIFFERS, Loaded

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1800),
    pytest.mark.sweep,
]
ALPHA, BETA, GAMMA = "alpha", "beta", "gamma"


@pytest.fixture(scope="module")
def arguments() -> Iterator[Arguments]:
    with Arguments() as found:
        yield found


@pytest.fixture(scope="module")
def site(empty: Loaded, s3_server: S3Server, arguments: Arguments) -> Iterator[CelerySite]:
    """A shop that is not loaded, whose DAGs run only when they are triggered, and no worker."""
    if not can_run_hosts():
        pytest.skip("only root can give processes a host of their own")
    with celery_site(empty, s3_server) as found:
        for dag in (LOAD, DELTA, REPLAY):
            found.airflow.wait_until_known(dag)
            found.airflow.unpause(dag)
        yield found


@pytest.fixture(scope="module")
def workers(site: CelerySite) -> Iterator[tuple[Host, Host]]:
    with running_host(site.airflow, ALPHA, FIRST) as first, running_host(site.airflow, BETA, SECOND) as second:
        yield first, second


def test_a_task_needs_nothing_of_the_host_of_the_task_before(site: CelerySite, workers: tuple[Host, Host]) -> None:
    load = site.airflow.trigger(LOAD)
    site.airflow.wait_for(LOAD, load, "success")
    assert hosts(site, LOAD, load) == {"read_tables": ALPHA, "load_tables": BETA, "check_tables": BETA}
    assert site.differing_rows() == NOTHING_DIFFERS
    for number in (1, 2):
        site.shop.execute(*changes(number))
        run = site.airflow.trigger(DELTA)
        site.airflow.wait_for(DELTA, run, "success")
        assert hosts(site, DELTA, run) == {
            "plan_interval": ALPHA, "extract": BETA, "materialise": ALPHA, "check_tables": BETA, "check_runway": ALPHA
        }  # fmt: skip
        merged = site.airflow.result(run, "materialise")["tables"]
        assert {table["table"]: table["status"] for table in merged} == dict.fromkeys(NOTHING_DIFFERS, "applied")
        assert site.differing_rows() == NOTHING_DIFFERS


def test_a_replay_that_is_published_on_another_host(site: CelerySite, workers: tuple[Host, Host]) -> None:
    site.table("shop.inventory").delete("sku = 'SKU2'")
    assert site.differing_rows() == NOTHING_DIFFERS | {"shop.inventory": 1}
    run = site.airflow.trigger(REPLAY, **FORM)
    site.airflow.wait_for_question(REPLAY, run, "approve")
    answer(site.airflow, run, "Approve")
    site.airflow.wait_for(REPLAY, run, "success")
    assert hosts(site, REPLAY, run) == {"compare": ALPHA, "approve": ALPHA, "publish": BETA}
    assert site.differing_rows() == NOTHING_DIFFERS


def test_a_host_that_is_lost_in_the_middle_of_a_merge(site: CelerySite, workers: tuple[Host, Host]) -> None:
    """The task is tried again on another host, which has nothing of the first try."""
    airflow = site.airflow
    site.shop.execute(*changes(3))
    run = airflow.trigger(DELTA)
    until("Spark to run", lambda: workers[0].processes(MERGE))
    workers[0].fail()
    task = airflow.tasks(DELTA, run)["materialise"]
    assert (task["state"], task["hostname"], task["try_number"]) == ("running", ALPHA, 1)
    with running_host(airflow, GAMMA, FIRST):
        airflow.wait_for(DELTA, run, "success")
        tries = airflow.get(f"{DELTA}/dagRuns/{run}/taskInstances/materialise/tries")["task_instances"]
        assert [(one["try_number"], one["hostname"], one["state"]) for one in tries] == [
            (1, ALPHA, "failed"), (2, GAMMA, "success")
        ]  # fmt: skip
        assert "heartbeat timeout" in airflow.events(DELTA, run, "materialise")
        assert site.differing_rows() == NOTHING_DIFFERS
        site.shop.execute(*changes(4))
        after = airflow.trigger(DELTA)
        airflow.wait_for(DELTA, after, "success")
        assert hosts(site, DELTA, after) == {
            "plan_interval": GAMMA, "extract": BETA, "materialise": GAMMA, "check_tables": BETA, "check_runway": GAMMA
        }  # fmt: skip
        assert site.differing_rows() == NOTHING_DIFFERS


def test_the_password_is_nowhere(site: CelerySite, arguments: Arguments) -> None:
    """After all runs before: not in a message of the queue, a file of a host, an object on S3 or the database."""
    messages = site.messages()
    assert any(b"materialise" in message for message in messages)
    assert [message for message in messages if CANARY.encode() in message] == []
    places = dict(site.kept())
    assert {"connection", "celery_taskmeta", "task_instance"} <= places.keys()
    assert any(f"/{ALPHA}/" in place for place in places)
    assert [place for place, content in places.items() if CANARY.encode() in content] == []
    assert any("materialise" in one for one in arguments.seen)
    assert [one for one in arguments.seen if CANARY in one] == []


def hosts(site: CelerySite, dag: str, run: str) -> dict[str, str]:
    """The hosts of the tasks of a run that were not skipped."""
    tasks = site.airflow.tasks(dag, run)
    return {name: task["hostname"] for name, task in tasks.items() if task["state"] == "success"}
