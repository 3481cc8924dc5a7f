"""When tables that are merged once in a period are due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from loader.materialise.merge.cadence import is_due, next_due
from loader.materialise.rules import TableRule

HOUR = timedelta(hours=1)


def at(hour: int, minute: int = 0, second: int = 0) -> datetime:
    return datetime(2026, 1, 31, hour, minute, second, tzinfo=UTC)


def test_a_table_is_due_once_in_each_hour() -> None:
    for committed in (at(10), at(10, 1), at(10, 59, 59)):
        due = next_due(committed, HOUR)
        assert due == at(11)
        assert [is_due(due, HOUR, now) for now in (committed, at(10, 59, 59), at(11), at(23))] == [
            False, False, True, True,
        ]  # fmt: skip
    assert next_due(at(11), HOUR) == at(12)


def test_days_begin_at_midnight() -> None:
    assert next_due(at(23, 59), timedelta(days=1)) == datetime(2026, 2, 1, tzinfo=UTC)


def test_a_commit_of_a_wrong_clock_holds_nothing_back() -> None:
    due = next_due(datetime(2099, 1, 1, tzinfo=UTC), HOUR)
    assert is_due(due, HOUR, at(10))


@pytest.mark.parametrize(
    ("every", "period"),
    [("", None), ("15m", timedelta(minutes=15)), ("1h", HOUR), ("2d", timedelta(days=2))],
)
def test_a_period(every: str, period: timedelta | None) -> None:
    assert TableRule(every=every).period == period


@pytest.mark.parametrize("every", ["0h", "1", "h", "1s", "-1h", "1.5h", "1H", " 1h", "1h\n"])
def test_what_is_no_period_is_refused(every: str) -> None:
    with pytest.raises(ValidationError):
        TableRule(every=every)
