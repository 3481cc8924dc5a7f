"""How long a log file is kept, by every rule of the servers."""

from __future__ import annotations

import pytest

from loader.source.retention import PurgeRules, Runway, RunwayTooShort, check_runway, runway

HOUR = 3600
NOW = 1_800_000_000
SIZES = {"b.000001": 100, "b.000002": 200, "b.000003": 50}
BY_AGE = PurgeRules(expire_seconds=10 * HOUR, total_bytes=0, file_bytes=1000)
BY_SIZE = PurgeRules(expire_seconds=0, total_bytes=500, file_bytes=1000)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"binlog_expire_logs_seconds": "86400", "max_binlog_size": "9"}, PurgeRules(86400, 0, 9)),
        ({"binlog_expire_logs_seconds": "60", "expire_logs_days": "5"}, PurgeRules(60, 0, 0)),
        ({"binlog_expire_logs_seconds": "0", "expire_logs_days": "2"}, PurgeRules(2 * 86400, 0, 0)),
        ({"expire_logs_days": "0.500000"}, PurgeRules(43200, 0, 0)),
        ({"binlog_expire_logs_seconds": "60", "binlog_expire_logs_auto_purge": "OFF"}, PurgeRules(0, 0, 0)),
        (
            {"max_binlog_total_size": "7", "slave_connections_needed_for_purge": "1"},
            PurgeRules(0, 7, 0, replicas=1),
        ),
        ({"binlog_space_limit": "8"}, PurgeRules(0, 8, 0)),
        ({}, PurgeRules(0, 0, 0)),
    ],
)
def test_the_rules_of_a_server(variables: dict[str, str], expected: PurgeRules) -> None:
    assert PurgeRules.of(variables) == expected


@pytest.mark.parametrize(
    ("rules", "file", "ended", "rate", "hours", "rule"),
    [
        (BY_AGE, "b.000001", NOW - 3 * HOUR, 0, 7, "age"),
        (BY_AGE, "b.000001", NOW - 11 * HOUR, 0, 0, "age"),
        (BY_AGE, "b.000003", NOW, 0, 10, "age"),
        (BY_SIZE, "b.000001", NOW, 150 / HOUR, 1, "size"),  # 350 bytes from it on, 150 to the limit
        (BY_SIZE, "b.000002", NOW, 250 / HOUR, 1, "size"),
        (BY_SIZE, "b.000003", NOW, 950 / HOUR, 1, "size"),  # the current file first has to become full
        (BY_SIZE, "b.000001", NOW, 0, None, "none"),
        (PurgeRules(10 * HOUR, 500, 1000), "b.000001", NOW - 9 * HOUR, 75 / HOUR, 1, "age"),
        (PurgeRules(10 * HOUR, 500, 1000), "b.000001", NOW - 1 * HOUR, 75 / HOUR, 2, "size"),
        (PurgeRules(10 * HOUR, 300, 1000), "b.000001", NOW, 75 / HOUR, 0, "size"),
        (PurgeRules(0, 0, 1000), "b.000001", NOW, 9, None, "none"),
        (BY_AGE, "b.000000", NOW, 9, 0, "gone"),
    ],
)
def test_the_hours_until_a_file_is_purged(
    rules: PurgeRules, file: str, ended: int, rate: float, hours: float | None, rule: str
) -> None:
    found = runway(rules, file, SIZES, ended=ended, rate=rate, now=NOW)
    assert (found.hours, found.rule) == (pytest.approx(hours), rule)


def test_a_limit() -> None:
    check_runway(Runway(file="b.000001", hours=2, rule="age"), 2)
    check_runway(Runway(file="b.000001", hours=0, rule="age"), 0)
    check_runway(Runway(file="b.000001", hours=None, rule="none"), 99)
    check_runway(Runway(file="b.000001", hours=0, rule="gone"), 2)
    with pytest.raises(RunwayTooShort) as caught:
        check_runway(Runway(file="b.000001", hours=1.97, rule="size"), 2)
    assert str(caught.value).startswith(
        "the server will purge a log file that is still needed in 2.0 hours (file b.000001)\n"
        "  why: b.000001 is kept for another 2.0 hours, limited by the size of all logs at the current rate; the limit is 2 hours"
    )
    assert (caught.value.exit_code, caught.value.retryable) == (1, False)


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (Runway(file="b.1", hours=1234.56, rule="age"), "b.1 is kept for another 1,234.6 hours, limited by its age"),
        (Runway(file="b.1", hours=None, rule="none"), "b.1 is kept forever"),
        (Runway(file="b.1", hours=0, rule="gone"), "b.1 is already purged"),
    ],
)
def test_a_runway_for_people(found: Runway, text: str) -> None:
    assert str(found) == text
