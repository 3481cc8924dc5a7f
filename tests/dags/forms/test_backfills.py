"""Backfills by date: the first task of a delta refuses their runs. Airflow refuses backfills of the other DAGs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from loader.airflow import tasks
from loader.airflow.reports.errors import TaskFailed
from loader.airflow.reports.failure_notifier import NOTIFIED
from loader.airflow.tasks import plan_interval
from loader.airflow.versions import AIRFLOW, HAS_RUN_TYPES, AirflowException, AirflowSkipException
from tests.dags.conftest import Site, Task

_DAY = datetime(2026, 1, 31, tzinfo=UTC)


@pytest.mark.skipif(not HAS_RUN_TYPES, reason="this version of Airflow cannot refuse backfills")
def test_airflow_refuses_backfills_of_all_dags_but_the_delta(dags: Any) -> None:
    from airflow.dag_processing.dagbag import sync_bag_to_db
    from airflow.exceptions import DagRunTypeNotAllowed
    from airflow.models.backfill import _create_backfill, _do_dry_run
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.session import create_session

    with create_session() as session:
        session.merge(DagBundleModel(name="loader"))
    sync_bag_to_db(dags, "loader", None)
    dates = {"from_date": _DAY, "to_date": _DAY, "reverse": False, "dag_run_conf": {}, "reprocess_behavior": None}
    assert [dag.dag_id for dag in dags.dags.values() if "backfill" in dag.allowed_run_types] == ["shop.delta"]
    for dag in dags.dags.keys() - {"shop.delta"}:
        with pytest.raises(DagRunTypeNotAllowed) as refused:
            _create_backfill(dag_id=dag, max_active_runs=1, triggering_user_name="ada", **dates)
        assert str(refused.value) == f"Dag with dag_id: '{dag}' does not allow backfill runs"
    tried = {
        "shop.maintain": "Dag with dag_id: 'shop.maintain' does not allow backfill runs",
        "shop.replay": "shop.replay has a non-periodic schedule that does not support backfills",
    }
    if AIRFLOW < (3, 3):  # the dry run does not look at types of runs
        tried = {"shop.replay": "shop.replay has no schedule"}
    for dag, text in tried.items():
        with create_session() as session, pytest.raises(AirflowException, match=text):
            list(_do_dry_run(dag_id=dag, session=session, **dates))


@pytest.fixture
def refused(site: Site, running: Task, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """Run the first task in a backfill, and return the text of its error."""
    monkeypatch.setattr(tasks, "get_current_context", lambda: running.context)
    running.run_type, running.logical_date = "backfill", _DAY

    def run() -> str:
        with pytest.raises(TaskFailed) as failed:
            plan_interval.function("")
        assert not failed.value.retry
        return str(failed.value)

    return run


def test_a_run_of_a_backfill_names_the_replay_of_its_date(
    refused: Callable[[], str], site: Site, running: Task, caplog: pytest.LogCaptureFixture
) -> None:
    lines = [
        "this DAG cannot be backfilled by date (source shop)",
        "  why: the dates of a run select no part of the log",
        "  what to do: trigger shop.replay with from = 2026-01-31T00:00:00Z",
    ]
    assert refused().splitlines() == lines
    assert running.xcoms[NOTIFIED] is True  # the person who started it sees the error; nothing is broken
    site.stage(committed_at="2026-01-31 08:00:00.000000")
    lines[-1] += ", which is binlog.000001:4"
    assert refused().splitlines() == lines
    running.max_consecutive_failed_dag_runs = 1
    with pytest.raises(AirflowSkipException, match="this DAG cannot be backfilled by date"):
        plan_interval.function("")
    assert lines[-1] in caplog.text
