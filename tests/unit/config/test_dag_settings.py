"""Settings of the DAGs of a source."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from loader.dag_settings import DagSettings, Schedules, dag_key, load_pool_of, pool_of

GOOD = [
    "*/5 0-23/2 1,15 JAN-DEC MON-FRI",
    "0 0 L * 7",
    "59 23 31 12 0",
    "",
    "5m",
    "36h",
    "1d",
    "@daily",
    "@continuous",
    "*/5 * * * *",
    "0 3 * * 1-5",
    "asset:orders",
    "asset:s3://a/b",
]
WRONG = ["0m", "5", "5 m", "5s", "@dayly", "* * * *", "asset:", "None"]
WRONG += ["0 25 * * *", "60 * * * *", "0 0 0 * *", "0 0 1-32 * *", "0 0 * 1,13 *", "0 0 * * 8", "! * * * *", "* *  * *"]


@pytest.mark.parametrize("schedule", GOOD)
def test_a_schedule(schedule: str) -> None:
    assert Schedules(delta=schedule).delta == schedule


@pytest.mark.parametrize("schedule", WRONG)
def test_a_wrong_schedule(schedule: str) -> None:
    with pytest.raises(ValidationError, match="write an interval"):
        Schedules(delta=schedule)


@pytest.mark.parametrize(
    "wrong",
    [
        {"retries": -1},
        {"owner": ""},
        {"timeout_hours": {"delta": 0}},
        {"notifier": {"type": "Slack"}},
        {"notifier": {"arguments": {"text": "x"}}},
        {"max_lag_minutes": 30},
        {"pools": "x"},
    ],
)
def test_wrong_settings(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        DagSettings.model_validate(wrong)


@pytest.mark.parametrize(
    ("source", "key"),
    [("shop", "shop"), ("shop.eu-1_a", "shop.eu-1_a"), ("my shop", "my-20-shop"), ("größe", "gr-f6--df-e")],
)
def test_the_name_of_a_source_in_ids(source: str, key: str) -> None:
    assert dag_key(source) == key
    assert pool_of(source, DagSettings()) == f"{key}.spark"
    assert pool_of(source, DagSettings(pool="small")) == "small"
    assert load_pool_of(source, DagSettings()) == f"{key}.load"
    assert load_pool_of(source, DagSettings(pool="small")) == "small"
    assert load_pool_of(source, DagSettings(pool="small", load_pool="night")) == "night"
