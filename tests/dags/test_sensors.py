"""Waiting for a table: what counts as reached, and how the sensor, its trigger and an error end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from loader.airflow.reports.errors import TaskFailed
from loader.airflow.sensors import TableAtLeastSensor, TableAtLeastTrigger, ask, is_reached
from loader.airflow.sources import settings_of
from loader.airflow.versions import TaskDeferred
from loader.errors import DataError, LoaderError, SourceUnavailable, UsageError
from loader.model.position import Position
from loader.model.table import TableName
from loader.staging.documents import Followed
from loader.staging.layout import load_folder, loaded_key
from loader.staging.notes.finished_work import Loaded
from loader.staging.notes.overtaken_loads import OvertakenLoads
from loader.staging.notes.quarantine import Quarantines
from loader.transport.server.connection import AccessDenied
from tests.dags.conftest import Site, Task
from tests.dags.operators import publish

COMMITTED = "2026-01-01 12:00:00.000000"


@pytest.fixture
def published(site: Site) -> Site:
    """The interval up to :100 is applied to `shop.orders`, with commits up to noon. `shop.late` is behind."""
    site.stage(committed_at=COMMITTED)
    publish(site, "binlog.000001:100", committed_at=COMMITTED, behind={"shop.late": 1_000_000_000_050})
    return site


def sensor(**arguments: Any) -> TableAtLeastSensor:
    return TableAtLeastSensor(task_id="wait", **{"source": "", "table": "shop.orders", **arguments})


@pytest.mark.parametrize(
    ("table", "position", "reached"),
    [
        ("shop.orders", "binlog.000001:100", True),
        ("shop.orders", "binlog.000001:101", False),
        ("shop.late", "binlog.000001:50", True),
        ("shop.late", "binlog.000001:51", False),
        ("shop.unknown", "binlog.000001:4", False),
    ],
)
def test_a_position(table: str, position: str, reached: bool, published: Site) -> None:
    assert is_reached("", table, position, "") is reached


@pytest.mark.parametrize(
    ("table", "time", "reached"),
    [
        ("shop.orders", "2026-01-01T11:59:59Z", True),
        ("shop.orders", "2026-01-01T12:59:59+01:00", True),
        ("shop.orders", "2026-01-01 11:59:59", True),
        ("shop.late", "2026-01-01T11:59:59Z", False),
        ("shop.unknown", "2026-01-01T11:59:59Z", False),
    ],
)
def test_a_time(table: str, time: str, reached: bool, published: Site) -> None:
    assert is_reached("", table, "", time) is reached


def test_a_table_that_a_load_set_back_is_not_there_until_the_log_is_merged_again(published: Site) -> None:
    """The record of before says more of the table than is true."""
    loads, name = OvertakenLoads(published.chain.store, "shop"), TableName("shop", "orders")
    loads.begin(name, "m.json", Position.parse("binlog.000001:50").seqno())
    places = ("binlog.000001:50", "binlog.000001:51", "binlog.000001:100")
    assert [is_reached("", "shop.orders", place, "") for place in places] == [True, False, False]
    assert is_reached("", "shop.orders", "", "2026-01-01T11:59:59Z") is False
    assert is_reached("", "shop.late", "binlog.000001:50", "") is True
    loads.end(name, Position.parse("binlog.000001:50").seqno())
    assert is_reached("", "shop.orders", "binlog.000001:100", "") is True
    assert is_reached("", "shop.orders", "", "2026-01-01T11:59:59Z") is True


@pytest.mark.parametrize("moved", [False, True])
def test_a_table_of_the_record_that_is_quarantined(moved: bool, published: Site) -> None:
    """The record is true of it, unless it was rolled back or dropped since."""
    error = DataError("a staged file was purged", hint="load it again").as_dict()
    stop = ("binlog.000001:200", Position.parse("binlog.000001:200").seqno())
    applied = ("binlog.000001:4", 1) if moved else ("binlog.000001:9", 5)  # see publish
    Quarantines(published.chain.store, "shop").begin(TableName("shop", "orders"), error, applied, stop)
    for goal in (("binlog.000001:100", ""), ("", "2026-01-01T11:59:59Z")):
        if moved:
            with pytest.raises(DataError, match="the table is quarantined"):
                is_reached("", "shop.orders", *goal)
        else:
            assert is_reached("", "shop.orders", *goal) is True


def test_a_record_of_another_warehouse_does_not_count(site: Site) -> None:
    site.stage()
    publish(site, "binlog.000001:100", committed_at=COMMITTED, warehouse="another")
    assert is_reached("", "shop.orders", "binlog.000001:100", "") is False
    assert is_reached("", "shop.orders", "", "2026-01-01T11:59:59Z") is False


def test_a_position_after_which_another_server_was_followed(published: Site) -> None:
    """The transaction there is elsewhere in the log of the other server, and may not be applied."""
    follows = Followed(name="0001", stop_seqno=Position.parse("binlog.000001:100").seqno())
    changed = {"name": "0002", "start": "binlog.000007:4", "shift": 1, "follows": follows}
    published.chain.begin(published.generation.model_copy(update=changed))
    assert is_reached("", "shop.orders", "binlog.000001:100", "") is True
    with pytest.raises(DataError, match="reading went on before it, at binlog"):
        is_reached("", "shop.orders", "binlog.000001:101", "")


def test_a_table_that_is_not_captured_is_not_waited_for(published: Site) -> None:
    for goal in ({"position": "binlog.000001:4", "time": ""}, {"position": "", "time": "2026-01-01T11:59:59Z"}):
        with pytest.raises(UsageError, match=r"the table is not captured(.|\n)*correct the table"):
            is_reached("", "shpo.orders", **goal)
        with pytest.raises(UsageError, match="the table is not captured"):
            is_reached("", "orders", **goal)


def test_a_time_of_a_quiet_source_is_reached_once_everything_is_applied(
    published: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    behind = 7
    monkeypatch.setattr(
        "loader.pipeline.reports.table_progress.source_lag",
        lambda _: type("Lag", (), {"behind": behind, "unreachable": None}),
    )
    noon, later = "2026-01-01T12:00:00Z", datetime.now(UTC) + timedelta(hours=1)
    assert is_reached("", "shop.orders", "", noon) is False  # others may have committed in the same microsecond
    behind = 0
    assert is_reached("", "shop.orders", "", noon) is True
    assert is_reached("", "shop.orders", "", later.isoformat()) is False


@pytest.mark.parametrize("staged", ["2026-01-01T12:55:00Z", ""])
def test_a_commit_time_after_its_manifest_proves_nothing(
    staged: str, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of the server was wrong, and may have been set right since."""
    committed = "2026-01-01 13:30:00.000000" if staged else "2999-01-01 12:00:00.000000"
    site.stage(committed_at=committed)
    publish(site, "binlog.000001:100", committed_at=committed)
    if staged:
        seconds = datetime.fromisoformat(staged).timestamp()
        manifest = site.folder / "staging" / site.chain.folder("0001", site.plan.start_seqno) / "manifest.json"
        os.utime(manifest, (seconds, seconds))
    lag = type("Lag", (), {"behind": 7, "unreachable": None})
    monkeypatch.setattr("loader.pipeline.reports.table_progress.source_lag", lambda _: lag)
    assert is_reached("", "shop.orders", "", "2026-01-01T12:00:00Z") is False
    monkeypatch.setattr(lag, "behind", 0)
    assert is_reached("", "shop.orders", "", "2026-01-01T12:00:00Z") is True


def unreachable(monkeypatch: pytest.MonkeyPatch, error: LoaderError) -> None:
    lag = type("Lag", (), {"behind": None, "unreachable": error.as_dict()})
    monkeypatch.setattr("loader.pipeline.reports.table_progress.source_lag", lambda _: lag)


def test_a_server_that_does_not_answer_is_asked_again(
    published: Site, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    unreachable(monkeypatch, SourceUnavailable("the server does not answer", hint="start it"))
    with pytest.raises(TaskDeferred):
        sensor(time="2026-01-01T12:00:00Z").execute(running.context)
    warnings: list[str] = []
    goal = {"source": "", "table": "shop.orders", "position": "", "time": "2026-01-01T12:00:00Z"}
    assert ask(warnings.append, **goal) is False
    assert warnings == ["the server does not answer\n  what to do: start it"]


def test_a_server_that_refuses_the_user_ends_the_wait(
    published: Site, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    unreachable(monkeypatch, AccessDenied("the server refused the user", hint="correct the password"))
    with pytest.raises(TaskFailed, match="the server refused the user"):
        sensor(time="2026-01-01T12:00:00Z").execute(running.context)


def test_nothing_is_published_yet(site: Site) -> None:
    assert is_reached("", "shop.orders", "binlog.000001:100", "") is False
    assert is_reached("", "shop.orders", "", "2026-01-01T12:00:00Z") is False


def test_a_load_has_what_is_before_its_position(site: Site) -> None:
    seqno = Position.parse("binlog.000001:100").seqno()
    manifest = f"{load_folder('shop', '0001', TableName('shop', 'orders'))}/{seqno:020d}/manifest.json"
    warehouse = settings_of("").catalog.place
    note = Loaded(source="shop", table="shop.orders", position="binlog.000001:100", warehouse=warehouse)
    site.chain.store.create(loaded_key(manifest), note.canonical())
    places = ("binlog.000001:4", "binlog.000001:100", "binlog.000001:101")
    assert [is_reached("", "shop.orders", place, "") for place in places] == [True, True, False]
    site.configure(warehouse="another")
    assert [is_reached("", "shop.orders", place, "") for place in places] == [False, False, False]
    site.configure()
    assert is_reached("", "shop.items", "binlog.000001:4", "") is False


@pytest.mark.parametrize("arguments", [{}, {"position": "binlog.000001:4", "time": "2026-01-01"}, {"time": "noon"}])
def test_wrong_arguments(arguments: dict[str, str], published: Site) -> None:
    with pytest.raises(UsageError):
        is_reached("", "shop.orders", arguments.get("position", ""), arguments.get("time", ""))


def test_a_reached_table_ends_the_task_at_once(published: Site, running: Task) -> None:
    sensor(position="binlog.000001:100").execute(running.context)


def test_the_task_waits_in_the_triggerer(published: Site, running: Task) -> None:
    with pytest.raises(TaskDeferred) as deferred:
        sensor(position="binlog.000001:101", poke_interval=7).execute(running.context)
    name, arguments = deferred.value.trigger.serialize()
    assert name == "loader.airflow.sensors.TableAtLeastTrigger"
    goal = {"source": "", "table": "shop.orders", "position": "binlog.000001:101", "time": ""}
    assert arguments == {**goal, "poke_interval": 7.0}
    TableAtLeastTrigger(**arguments)


def event_of(meanwhile: Callable[[], None]) -> Any:
    """The trigger's event; `meanwhile` is called while it waits."""
    trigger = TableAtLeastTrigger(
        source="", table="shop.late", position="binlog.000001:100", time="", poke_interval=0.01
    )

    async def first() -> Any:
        asyncio.get_running_loop().call_later(0.05, meanwhile)
        return (await anext(trigger.run())).payload

    return asyncio.run(asyncio.wait_for(first(), 30))


def test_the_trigger_waits_for_the_table(published: Site, running: Task) -> None:
    waiting = sensor(table="shop.late", position="binlog.000001:100")
    event = event_of(lambda: publish(published, "binlog.000001:100", behind={"shop.late": 1_000_000_000_100}))
    assert event == {"error": None}
    waiting.execute_complete(running.context, event)


def test_a_quarantined_table_is_not_waited_for(published: Site, running: Task) -> None:
    published.quarantine("shop.late")
    with pytest.raises(TaskFailed, match="waiting for it does not help"):
        sensor(table="shop.late", position="binlog.000001:100").execute(running.context)


def test_a_quarantine_ends_the_wait(published: Site, running: Task) -> None:
    event = event_of(lambda: published.quarantine("shop.late"))
    with pytest.raises(TaskFailed, match="waiting for it does not help") as failed:
        sensor(table="shop.late", position="binlog.000001:100").execute_complete(running.context, event)
    assert "loader release shop.late" in failed.value.error.hint
