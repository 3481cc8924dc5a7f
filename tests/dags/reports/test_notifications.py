"""One notification for each cause, until it is over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from loader.airflow.reports import failure_notifier, notifications
from loader.airflow.reports.errors import TaskFailed
from loader.airflow.reports.events import Event, EventFactory
from loader.airflow.reports.failure_notifier import NOTIFIED, FailureNotifier, RecoveryNote
from loader.airflow.reports.notifications import SourceNotifier, notify
from loader.airflow.reports.notifier_calls import send
from loader.airflow.tasks import check_runway, check_tables
from loader.error_page import ErrorLinks
from loader.errors import DataError, RetryableError
from loader.pipeline import AppliedUpTo, Statement
from loader.pipeline.reports.applied_statements import AppliedStatements
from loader.source.retention import RunwayTooShort
from loader.staging.notes.quarantine import Quarantine
from tests.dags.conftest import Site, Task
from tests.dags.notifiers import FileNotifier
from tests.dags.operators import publish
from tests.unit.pipeline.test_gauges import LAG


@dataclass
class Failed:
    """A failed task and its XComs."""

    error: dict[str, Any] | None = None
    notified: bool = False
    dag_id: str = "shop.delta"
    task_id: str = "extract"
    map_index: int = -1

    def xcom_pull(self, *, task_ids: str, key: str) -> Any:
        assert task_ids == self.task_id
        return {"error": self.error, NOTIFIED: self.notified or None}[key]


def error(what: str = "a table failed", why: str = "a bad value") -> dict[str, Any]:
    return DataError(what, why=why, hint="look", table="shop.a").as_dict()


@dataclass
class Memory:
    """Stands for the variables of Airflow, which only a running task can reach."""

    values: dict[str, Any] = field(default_factory=dict)

    def get(self, name: str) -> Any:
        return self.values.get(name)

    def put(self, name: str, value: Any) -> None:
        self.values[name] = value

    def end(self, name: str) -> None:
        self.values.pop(name, None)


@pytest.fixture
def notices(monkeypatch: pytest.MonkeyPatch) -> Memory:
    memory = Memory()
    for module in (notifications, failure_notifier):
        monkeypatch.setattr(module, "Notices", lambda source: memory)
    return memory


@pytest.fixture
def sent(tmp_path: Path) -> Path:
    return tmp_path / "sent"


def lines(sent: Path) -> list[str]:
    return sent.read_text().splitlines() if sent.exists() else []


def notifier(sent: Path, text: str = "{{ event.title }}") -> FileNotifier:
    return FileNotifier(str(sent), text)


def failed(sent: Path, *tasks: Any) -> list[str]:
    for task in tasks:
        FailureNotifier("shop", notifier(sent))({"ti": task})  # type: ignore[typeddict-item]
    return lines(sent)


FIRST = "shop.delta.extract failed: a table failed"


def test_the_same_cause_is_told_once_until_the_task_succeeds(notices: Memory, sent: Path) -> None:
    assert failed(sent, Failed(error()), Failed(error())) == [FIRST]
    RecoveryNote("shop")({"ti": Failed()})  # type: ignore[typeddict-item]
    assert notices.values == {}
    assert failed(sent, Failed(error())) == [FIRST] * 2


@pytest.mark.parametrize(
    ("task", "title"),
    [
        (Failed(error("another table failed")), "shop.delta.extract failed: another table failed"),
        (Failed(error(why="another value")), FIRST),
        (Failed(RetryableError("a table failed").as_dict()), FIRST),
        (Failed(error(), task_id="materialise"), "shop.delta.materialise failed: a table failed"),
        (Failed(error(), map_index=1), "shop.delta.extract.1 failed: a table failed"),
        (Failed(None), "shop.delta.extract failed"),
        (type("Outside", (), {"task_id": "extract"})(), "extract failed"),  # a callback outside of the task
    ],
)
def test_another_cause_or_one_that_is_not_known_is_notified(task: Any, title: str, notices: Memory, sent: Path) -> None:
    assert failed(sent, Failed(error()), task) == [FIRST, title]


def test_times_numbers_and_places_of_a_run_make_no_other_cause(notices: Memory, sent: Path) -> None:
    """A driver that is killed again has other last lines, in which only these differ."""

    def killed(second: int, folder: str) -> Failed:
        last = f"26/11/27 10:00:{second:02d} ERROR TaskSetManager: task {second}.0 of /tmp/{folder}/spec.json failed"
        return Failed(RetryableError("the Spark job ended without a result", why=f"137; last:\n{last}").as_dict())

    assert len(failed(sent, killed(1, "loader-task-x8f3k2ab"), killed(59, "loader-task-a9_k2bqq"))) == 1
    other = "out of memory: Java heap space"
    assert len(failed(sent, Failed(RetryableError("the Spark job ended without a result", why=other).as_dict()))) == 2


def test_a_failure_that_events_told_is_not_told_again(notices: Memory, sent: Path) -> None:
    assert failed(sent, Failed(error(), notified=True)) == []


def test_notices_that_cannot_be_read_let_a_failure_be_notified(sent: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Outside of a task there are no variables."""
    assert failed(sent, Failed(error()), Failed(error())) == [FIRST] * 2


def test_a_notifier_that_fails_is_tried_again(notices: Memory, sent: Path, caplog: pytest.LogCaptureFixture) -> None:
    sent.mkdir()
    FailureNotifier("shop", notifier(sent))({"ti": Failed(error())})  # type: ignore[typeddict-item]
    assert "the notification cannot be sent: IsADirectoryError" in caplog.text
    sent.rmdir()
    assert failed(sent, Failed(error())) == [FIRST]


@pytest.fixture
def source_notifier(notices: Memory, sent: Path, running: Task, airflow_db: None) -> Iterator[SourceNotifier]:
    yield SourceNotifier("shop", notifier(sent), running.context)


def test_a_lag_is_told_once_until_it_is_over(source_notifier: SourceNotifier, notices: Memory, sent: Path) -> None:
    title = "source shop is more than 30 minutes behind its server"
    for seconds, count in ((1800.0, 0), (1801.0, 1), (None, 1), (9000.0, 1), (0.0, 1), (1801.0, 2)):
        source_notifier.lag(LAG, seconds, 30)
        assert lines(sent) == [title] * count


def test_a_runway_is_told_once_until_it_is_over(source_notifier: SourceNotifier, sent: Path) -> None:
    def short(hours: float) -> RunwayTooShort:
        return RunwayTooShort(f"the server will purge a log file that is still needed in {hours} hours")

    assert [source_notifier.runway(one, "1:4") for one in (short(2.0), short(1.9), None, short(2.0))] == [
        True,
        True,
        False,
        True,
    ]
    assert len(lines(sent)) == 2


def quarantine(table: str, hour: int = 12) -> Quarantine:
    return Quarantine(
        source="shop", table=table, error=error(), stop="b.000001:9", stop_seqno=9, applied="b.000001:5",
        since=datetime(2026, 1, 31, hour, tzinfo=UTC),
    )  # fmt: skip


def test_a_quarantined_table_is_told_once_until_it_is_released(
    site: Site, source_notifier: SourceNotifier, notices: Memory, sent: Path
) -> None:
    from loader.airflow.sources import settings_of

    settings = settings_of("shop")
    title = "table shop.{} of source shop is quarantined"
    site.quarantine("shop.a")
    source_notifier.quarantines(settings)
    site.quarantine("shop.b")
    source_notifier.quarantines(settings)
    source_notifier.quarantines(settings)
    assert lines(sent) == [title.format("a"), title.format("b")]
    assert source_notifier.has_notified(["shop.a", "shop.b"])
    assert not source_notifier.has_notified(["shop.a", "shop.c"])
    site.release("shop.a")
    site.release("shop.b")
    source_notifier.quarantines(settings)
    assert notices.values == {}
    site.quarantine("shop.a")
    source_notifier.quarantines(settings)
    assert len(lines(sent)) == 3


def test_many_tables_are_told_in_few_messages(
    site: Site, source_notifier: SourceNotifier, notices: Memory, sent: Path
) -> None:
    from loader.airflow.sources import settings_of

    for number in range(25):
        site.quarantine(f"shop.t{number:02d}")
    source_notifier.quarantines(settings_of("shop"))
    assert lines(sent)[19:] == ["table shop.t19 of source shop is quarantined", "5 more events of source shop"]
    assert len(notices.values["quarantines"]) == 25


def test_statements_that_were_sent_are_not_sent_again_with_those_that_were_not(
    source_notifier: SourceNotifier, notices: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements = tuple(Statement(f"binlog.000001:{place}", "ALTER TABLE a", ("shop.a",)) for place in (100, 200, 300))
    found = AppliedStatements(statements, AppliedUpTo(stop_seqno=9))
    monkeypatch.setattr("loader.pipeline.applied_statements", lambda *_: found)
    tried: list[str] = []
    refused = {"binlog.000001:200"}

    def send_some(_notifier: object, _context: object, event: Event) -> bool:
        tried.append(event.position)
        return event.position not in refused

    monkeypatch.setattr(notifications, "send", send_some)
    settings: Any = None
    for _ in range(2):
        source_notifier.schema_changes(settings, 0)
    refused.clear()
    source_notifier.schema_changes(settings, 0)
    assert [place.rpartition(":")[2] for place in tried] == ["100", "200", "300", "200", "200"]
    assert notices.values == {"schema_changes": {"stop_seqno": 9, "behind": {}}}


def test_a_schema_change_is_told_once_the_warehouse_has_it(
    site: Site, source_notifier: SourceNotifier, notices: Memory, sent: Path
) -> None:
    from loader.airflow.sources import settings_of

    site.stage()
    altered = site.follow_up("binlog.000001:200", "barrier")
    settings, since = settings_of("shop"), site.plan.start_seqno
    source_notifier.schema_changes(settings, since)  # nothing is published yet
    assert (lines(sent), notices.values) == ([], {})
    publish(site, altered.stop, made={"shop.new": 150})
    source_notifier.schema_changes(settings, since)
    source_notifier.schema_changes(settings, since)
    assert lines(sent) == ["the schema of shop.new of source shop changed"]
    assert notices.values == {"schema_changes": {"stop_seqno": altered.stop_seqno, "behind": {}}}


def configure_notifier(site: Site, sent: Path, more: str = "") -> None:
    with (site.folder / "loader.toml").open("a") as config:
        config.write(f'{more}\n[sources.shop.airflow.notifier]\ntype = "tests.dags.notifiers.FileNotifier"\n')
        config.write(f'arguments = {{ file = "{sent}", text = "{{{{ event.title }}}}" }}\n')


def test_check_tables_leaves_quarantined_tables_to_their_own_event(
    site: Site, running: Task, notices: Memory, sent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loader.airflow.tasks.get_current_context", lambda: running.context)
    configure_notifier(site, sent)
    site.quarantine("shop.items")
    results = [{"tables": [{"table": "shop.items", "status": "quarantined", "error": error()}]}]
    with pytest.raises(TaskFailed):
        check_tables.function("shop", results)
    assert NOTIFIED not in running.xcoms  # nobody told it
    notices.put("quarantines", {"shop.items": "now"})
    with pytest.raises(TaskFailed):
        check_tables.function("shop", results)
    assert running.xcoms[NOTIFIED] is True


def test_check_runway_tells_it_once(
    site: Site, running: Task, notices: Memory, sent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loader.airflow.tasks.get_current_context", lambda: running.context)
    configure_notifier(site, sent, more="min_runway_hours = 5")
    for hours in (4.0, 3.0):
        interval = {"start": "binlog.000001:4", "runway": {"file": "binlog.000001", "hours": hours, "rule": "age"}}
        with pytest.raises(TaskFailed):
            check_runway.function("shop", interval)
        assert running.xcoms.pop(NOTIFIED) is True
    assert lines(sent) == ["source shop: the server will purge a log file that is still needed in 4.0 hours"]


def test_a_source_without_a_notifier_asks_for_nothing(site: Site, running: Task) -> None:
    def fail(_: SourceNotifier) -> None:
        raise AssertionError

    notify(running.context, "shop", fail)


def test_what_prevents_a_notification_does_not_fail_the_task(
    site: Site, running: Task, notices: Memory, sent: Path, caplog: pytest.LogCaptureFixture
) -> None:
    configure_notifier(site, sent)

    def fail(_: SourceNotifier) -> None:
        raise DataError("the store is damaged")

    notify(running.context, "shop", fail)
    assert "notifications: DataError: the store is damaged" in caplog.text


FACTORY = EventFactory("my shop", ErrorLinks("https://docs.example.org/"))


def test_the_texts_of_events(airflow_db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example.org/team")
    pages = "https://airflow.example.org/team/binlog-loader"
    docs = "https://docs.example.org"
    assert str(FACTORY.quarantine(quarantine("shop.a"))) == (
        "table shop.a of source my shop is quarantined\n"
        "  table: shop.a\n"
        "  position: b.000001:5\n"
        "  why: a table failed\n"
        "     | a bad value\n"
        "  what to do: look; then, unless the table was loaded again: loader release shop.a"
        " (quarantined since 2026-01-31 12:00:00 UTC)\n"
        "     | in Airflow: trigger my-20-shop.repair with action = release, tables = shop.a\n"
        f"  read on: {docs}/reference/errors.html#classes\n"
        f"  status: {pages}/table?source=my+shop&name=shop.a"
    )
    change = Statement("b.000001:7", "ALTER TABLE a ADD n INT", ("shop.a", "shop.b"))
    assert str(FACTORY.schema_change(change)) == (
        "the schema of shop.a, shop.b of source my shop changed\n"
        "  table: shop.a, shop.b\n"
        "  position: b.000001:7\n"
        "  why: ALTER TABLE a ADD n INT\n"
        "  what to do: nothing, if readers of the tables expect it: the warehouse has the change\n"
        f"  read on: {docs}/how-to/schema-changes.html\n"
        f"  status: {pages}/source?name=my+shop"
    )
    assert str(FACTORY.lag(LAG, 5400, 30)) == (
        "source my shop is more than 30 minutes behind its server\n"
        "  position: binlog.000054:123\n"
        "  why: the oldest change that is not applied is 90 minutes old; the limit is 30 minutes (max_lag_minutes)\n"
        "  what to do: find out what delays the runs of my-20-shop.delta: their notes, and loader status\n"
        f"  read on: {docs}/reference/errors.html#lag\n"
        f"  status: {pages}/source?name=my+shop"
    )
    short = RunwayTooShort(
        "the server will purge a log file that is still needed in 2.0 hours", why="age", hint="raise it"
    )
    assert str(FACTORY.runway(short, "b.000001:4")) == (
        "source my shop: the server will purge a log file that is still needed in 2.0 hours\n"
        "  position: b.000001:4\n"
        "  why: age\n"
        "  what to do: raise it\n"
        f"  read on: {docs}/reference/errors.html#runway\n"
        f"  status: {pages}/source?name=my+shop"
    )
    assert FACTORY.schema_change(change._replace(statement="x" * 501)).cause == "x" * 500 + "... (501 characters)"


def test_one_template_fits_all_events(sent: Path, running: Task) -> None:
    """`exception` is the exception of a failed task, and the text of other events. The notifier stays as it is."""
    event = Event("lag", "far behind", "shop", cause="slow")
    one = notifier(sent, "{{ exception }}|{{ event.kind }}|{{ event.cause }}")
    assert send(one, running.context, event)
    assert send(one, {**running.context, "exception": ValueError("bad")}, event)
    assert sent.read_text() == "far behind\nbad|lag|slow\n"  # the first line of each message
