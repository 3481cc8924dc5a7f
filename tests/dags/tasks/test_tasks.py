"""The tasks that need no Spark: the one that chooses an interval, and the purge."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from loader.airflow import tasks
from loader.airflow.reports import errors
from loader.airflow.reports.errors import TaskFailed
from loader.airflow.tasks import check_runway, check_tables, plan_interval, purge
from loader.airflow.versions import AirflowSkipException
from loader.errors import DataError, GapError, LoaderError, SourceUnavailable
from loader.pipeline import IntervalChosen, ListedTables, Removal
from loader.secret import secret_variable
from loader.settings import SourceSettings
from loader.source.retention import Runway
from loader.transport.server.connection import AccessDenied
from tests.dags.conftest import Site, Task

_CHOSEN = IntervalChosen(
    source="shop",
    generation="0001",
    start="binlog.000001:4",
    stop="binlog.000001:100",
    start_seqno=1_000_000_000_004,
    stop_seqno=1_000_000_000_100,
    through_seqno=1_000_000_000_100,
    new=True,
)
_LISTED = ListedTables(generation="0001", position="binlog.000001:90", tables=("shop.new",))
_RUNWAY = Runway(file="binlog.000001", hours=5.5, rule="age")


@pytest.fixture
def choose(
    site: Site, running: Task, monkeypatch: pytest.MonkeyPatch
) -> Callable[[IntervalChosen | LoaderError | None], dict[str, Any]]:
    """Run the task over a pipeline that gives this; what the pipeline was asked is in the task's XComs."""

    def run(outcome: IntervalChosen | LoaderError | None, until: str | None = None) -> dict[str, Any]:
        def chosen(settings: SourceSettings, run: str, until: str | None) -> IntervalChosen | None:
            running.xcoms |= {"asked": (settings.name, run, until), "environment": dict(os.environ)}
            if isinstance(outcome, LoaderError):
                raise outcome
            return outcome

        monkeypatch.setattr("loader.pipeline.plan_interval", chosen)
        monkeypatch.setattr("loader.pipeline.list_tables", lambda _: _LISTED)
        monkeypatch.setattr("loader.pipeline.find_log_position", lambda _, text: f"position of {text}")
        monkeypatch.setattr("loader.pipeline.source_runway", lambda _: _RUNWAY)
        monkeypatch.setattr(tasks, "get_current_context", lambda: running.context)
        return plan_interval.function("", until)

    return run


def test_a_run_gets_its_own_interval(choose: Callable[..., dict[str, Any]], running: Task) -> None:
    assert choose(_CHOSEN) == _CHOSEN.model_dump() | {
        "runway": _RUNWAY.model_dump(), "listed": {**_LISTED.model_dump(), "tables": ["shop.new"]},
    }  # fmt: skip
    assert running.xcoms["asked"] == ("shop", "shop.delta/manual__1", None)


def test_a_run_can_stop_at_a_place(choose: Callable[..., dict[str, Any]], running: Task) -> None:
    choose(_CHOSEN, "binlog.000001:80")
    assert running.xcoms["asked"] == ("shop", "shop.delta/manual__1", "position of binlog.000001:80")


def test_nothing_to_do_skips_the_run(choose: Callable[..., dict[str, Any]]) -> None:
    with pytest.raises(AirflowSkipException):
        choose(None)


@pytest.mark.parametrize("kind", [SourceUnavailable, GapError])
def test_an_error(kind: type[LoaderError], choose: Callable[..., dict[str, Any]], running: Task) -> None:
    error = kind("it failed", why="of this", hint="do that", source="db")
    with pytest.raises(TaskFailed) as caught:
        choose(error)
    assert caught.value.retry is kind.retryable
    assert str(caught.value) == str(error)
    assert running.xcoms["error"] == error.as_dict()


def test_an_unknown_key_is_refused(choose: Callable[..., dict[str, Any]], running: Task) -> None:
    running.conf["tables"] = []
    with pytest.raises(TaskFailed, match="unknown keys: tables"):
        choose(_CHOSEN)


def test_a_password_is_lent_to_the_environment(
    choose: Callable[..., dict[str, Any]], site: Site, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.configure(password="airflow:shop_db")
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DB", json.dumps({"conn_type": "generic", "password": "hunter2"}))
    choose(_CHOSEN)
    assert running.xcoms["environment"][secret_variable("shop_db")] == "hunter2"
    assert secret_variable("shop_db") not in os.environ


def test_a_run_fails_before_the_log_is_purged(site: Site, running: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "get_current_context", lambda: running.context)
    config = site.folder / "loader.toml"
    with pytest.raises(TaskFailed, match=r"will purge a log file that is still needed in 5\.5 hours"):
        check_runway.function("", {"start": "binlog.000001:4", "runway": _RUNWAY.model_dump()})
    assert running.xcoms["error"]["error"] == "RunwayTooShort"
    text = config.read_text()
    for limit in ("5.5", "0"):
        config.write_text(text.replace("port = 1", f"port = 1\nmin_runway_hours = {limit}"))
        check_runway.function("", {"start": "binlog.000001:4", "runway": _RUNWAY.model_dump()})


def test_a_run_without_an_interval_has_no_runway() -> None:
    with pytest.raises(AirflowSkipException):
        check_runway.function("", None)


def test_tables_that_did_not_go_on_fail_the_run_in_the_end(
    site: Site, running: Task, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tasks, "get_current_context", lambda: running.context)
    error = DataError("an invalid date", hint="set on_misfit", table="shop.items").as_dict()
    loads = {
        "tables": [{"table": "shop.new", "status": "failed", "error": error}, {"table": "a.b", "status": "staged"}]
    }
    merges = {"tables": [{"table": "a.b", "status": "applied", "error": None}]}
    stopped = {"tables": [{"table": "shop.items", "status": "quarantined", "error": error}]}
    check_tables.function("", [merges])
    with pytest.raises(TaskFailed, match=r"1 of 2 tables failed \(tables shop.new\)") as caught:
        check_tables.function("", [loads, merges])
    assert (caught.value.retry, caught.value.code) == (False, 4)
    site.quarantine("shop.items")
    with pytest.raises(TaskFailed, match="what to do: set on_misfit"):
        check_tables.function("", [merges, stopped])
    assert (
        caplog.records[-1].getMessage()
        == "  read on: docs/runbook.md, section A table is quarantined, and others go on"
    )
    site.release("shop.items")  # so that the next run attempts it
    check_tables.function("", [merges, stopped])
    staged = {"tables": [{"table": "a.b", "inserts": 1, "updates": 0, "deletes": 0}]}
    check_tables.function("", [staged | {"failed": SourceUnavailable("the server is down").as_dict()}, merges])
    with pytest.raises(TaskFailed, match="a log file is gone"):
        check_tables.function("", [staged | {"failed": GapError("a log file is gone").as_dict()}, merges])


def test_the_log_of_a_task_links_to_its_error(site: Site, running: Task, caplog: pytest.LogCaptureFixture) -> None:
    config = site.folder / "loader.toml"
    config.write_text('docs_url = "https://docs.example.org/"\n' + config.read_text())
    with pytest.raises(TaskFailed), errors.reported(running.context):
        raise GapError("a log file that is still needed is gone")
    link = "https://docs.example.org/reference/errors.html#log-file-missing"
    assert caplog.records[-2].getMessage() == f"  read on: {link}"
    config.write_text("not TOML")
    with pytest.raises(TaskFailed, match="is gone"), errors.reported(running.context):
        raise GapError("a log file that is still needed is gone")
    assert "read on: docs/runbook.md" in caplog.records[-1].getMessage()


def test_control_characters_do_not_reach_the_log_of_a_task(running: Task, caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("loader.materialise")
    with caplog.at_level("INFO"), errors.reported(running.context):
        logger.info("table %s", "shop.\x1b[2Ja\nERROR forged")
        logging.getLogger("airflow.task").info("a\nb")
    logger.info("a\nb")
    first, second, after = (record.getMessage() for record in caplog.records)
    assert "\x1b" not in first
    assert "\nERROR" not in first
    assert (second, after) == ("a\nb", "a\nb")


def test_the_runbook_has_the_sections_that_logs_name() -> None:
    text = Path(__file__).resolve().parents[3].joinpath(errors.RUNBOOK).read_text(encoding="utf-8")
    for section in (errors.OUTAGE, errors.FAILED, errors.RUNWAY, errors.QUARANTINED):
        assert f"\n## {section}\n" in text


def test_a_refused_user_is_explained_with_outages(running: Task, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(TaskFailed), errors.reported(running.context):
        raise AccessDenied("the server refused the user", hint="check the password")
    assert caplog.messages[-1] == f"  read on: docs/runbook.md, section {errors.OUTAGE}"


def test_a_purge_keeps_what_the_configuration_says(site: Site, running: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    removal = Removal(
        what="interval", generation="0001", start="binlog.000001:4", start_seqno=4, attempt="a", files=1, bytes=2
    )
    asked: list[timedelta | None] = []

    def removed(settings: SourceSettings, keep: timedelta | None) -> list[Removal]:
        asked.append(keep)
        return [removal]

    monkeypatch.setattr("loader.pipeline.purge", removed)
    monkeypatch.setattr(tasks, "get_current_context", lambda: running.context)
    assert purge.function("") == [removal.model_dump()]
    config = site.folder / "loader.toml"
    config.write_text(config.read_text().replace("[staging]", '[staging]\nkeep = "30d"'))
    purge.function("shop")
    assert asked == [None, timedelta(days=30)]
    running.conf["tables"] = []
    with pytest.raises(TaskFailed, match="unknown keys: tables"):
        purge.function("")
