"""A real Airflow whose delta loads new tables by itself, and merges some tables less often than the others.

What happens is told by mail and by OpenTelemetry.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import pytest
from aiosmtpd.controller import Controller

from tests.docs.pages import blocks
from tests.e2e.airflow.running.server import DELTA, LOAD, Airflow, running
from tests.e2e.changes import changes
from tests.e2e.loaded import TABLES, Loaded
from tests.support.otlp_receiver import OtlpReceiver, receiving

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1800),
    pytest.mark.sweep,
]
SLOW, SMALL, LARGE = "shop.reviews", "shop.fresh", "shop.large"
NOTIFIER = next(text for _, text in blocks("toml") if "SmtpNotifier" in text).partition(
    "[sources.shop.airflow.notifier]"
)[2]
SETTINGS = f"""
auto_load = true
auto_load_bytes = 20000
airflow.schedule = {{ delta = "", maintain = "" }}
[sources.shop.airflow.notifier]{NOTIFIER}
[[sources.shop.rules]]
tables = ["{SLOW}"]
every = "3650d"
"""
COLUMNS = "(id INT PRIMARY KEY, name VARCHAR(200))"


class Mails:
    """A mail server that keeps what it is sent."""

    def __init__(self) -> None:
        self.kept: list[EmailMessage] = []

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802 - of aiosmtpd
        self.kept.append(message_from_bytes(envelope.content, policy=policy.default))
        return "250 OK"

    def told(self) -> list[tuple[str, str]]:
        """The subjects and texts."""
        return [(str(mail["Subject"]), next(mail.walk()).get_body().get_content()) for mail in self.kept]


@contextmanager
def receiving_mails() -> Iterator[tuple[Mails, int]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    mails = Mails()
    server = Controller(mails, hostname="127.0.0.1", port=port)
    server.start()
    try:
        yield mails, port
    finally:
        server.stop()


@pytest.fixture
def mails() -> Iterator[tuple[Mails, int]]:
    with receiving_mails() as found:
        yield found


@pytest.fixture
def metrics() -> Iterator[OtlpReceiver]:
    with receiving() as found:
        yield found


@pytest.fixture
def airflow(empty: Loaded, mails: tuple[Mails, int], metrics: OtlpReceiver) -> Iterator[Airflow]:
    with empty.config.open("a", encoding="utf-8") as config:
        config.write(SETTINGS)
    empty.execute("CREATE DATABASE other", *(f"CREATE TABLE other.{name} {COLUMNS}" for name in ("fresh", "large")))
    rows = (
        "WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT i, REPEAT('x', 99) FROM n"
    )
    empty.execute("INSERT INTO other.fresh VALUES (1, 'one')", f"INSERT INTO other.large {rows}")
    found = Airflow(empty.home / "airflow", empty.config)
    sender = {"from_email": "airflow@example.org", "disable_ssl": True, "disable_tls": True}
    smtp = {"conn_type": "smtp", "host": "127.0.0.1", "port": mails[1], "extra": sender}
    found.env |= metrics.settings | {"AIRFLOW_CONN_SMTP_DEFAULT": json.dumps(smtp)}
    found.prepare()
    with running(found):
        found.unpause(LOAD)
        found.unpause(DELTA)
        found.wait_for(LOAD, found.trigger(LOAD), "success")
        yield found


def statuses(airflow: Airflow, run: str) -> dict[str, str]:
    return {table["table"]: table["status"] for table in airflow.result(run, "materialise")["tables"]}


def test_new_and_slow_tables(airflow: Airflow, empty: Loaded, mails: tuple[Mails, int], metrics: OtlpReceiver) -> None:
    empty.execute(*changes(1))
    run = airflow.trigger(DELTA)
    airflow.wait_for(DELTA, run, "success")
    assert statuses(airflow, run) == dict.fromkeys(TABLES, "applied") | {SLOW: "not_due"}  # the load was in this period

    empty.execute(
        f"RENAME TABLE other.fresh TO {SMALL}, other.large TO {LARGE}",
        f"ANALYZE TABLE {LARGE}",
        f"INSERT INTO {SMALL} VALUES (2, 'two')",
        *changes(2),
    )
    run = airflow.trigger(DELTA)
    airflow.wait_for(DELTA, run, "failed")  # for the table that is too large
    assert airflow.tasks(DELTA, run)["check_tables"]["state"] == "failed"
    found = statuses(airflow, run)
    assert found == dict.fromkeys(TABLES, "applied") | {SLOW: "not_due", SMALL: "applied", LARGE: "quarantined"}
    log = airflow.log(DELTA, run, "materialise")
    assert any(f"loader initial-load --table {LARGE}" in line for line in log), log
    assert any("trigger shop.initial_load" in line and LARGE in line for line in log), log
    differing = empty.differences((*TABLES, SMALL))
    assert differing.pop(SLOW) > 0
    assert set(differing.values()) == {0}

    airflow.wait_for(LOAD, airflow.trigger(LOAD, tables=[LARGE]), "success")
    empty.execute(f"DELETE FROM {LARGE} WHERE id = 7", f"UPDATE {SMALL} SET name = 'zwei' WHERE id = 2")
    run = airflow.trigger(DELTA, now=True)
    airflow.wait_for(DELTA, run, "success")
    every = (*TABLES, SMALL, LARGE)
    assert statuses(airflow, run) == dict.fromkeys(every, "applied") | {
        name: "unchanged" for name in TABLES if name != SLOW
    }
    assert empty.differences(every) == dict.fromkeys(every, 0)
    stopped = [text for subject, text in mails[0].told() if subject == f"table {LARGE} of source shop is quarantined"]
    assert len(stopped) == 1, mails[0].told()
    assert f"loader initial-load --table {LARGE}" in stopped[0]
    applied = {name: rows for name, rows in metrics.counters.items() if "materialise.rows" in name}
    assert applied[f"airflow.binlog_loader.shop.materialise.rows{{operation=insert,table={SLOW}}}"] > 0, applied
