"""Tables that are not at the position of the server's rows: quarantined, paused, or not due by their rules."""

from __future__ import annotations

import pytest

from loader.materialise.rules import TableRule
from loader.pipeline import pause
from tests.integration.materialise.live_source import LiveSource
from tests.integration.verify.verified import by_table, verified

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]

TABLES = ("fine", "late", "paused", "quiet", "stopped")


def test_only_tables_at_the_position_are_compared(live: LiveSource) -> None:
    live.settings = live.settings.model_copy(update={"rules": (TableRule(tables=("*.late",), every="1d"),)})
    live.run(*(f"CREATE TABLE {name} (id INT PRIMARY KEY, d DATE)" for name in TABLES))
    live.run(*(f"INSERT INTO {name} VALUES (1, '2024-01-01')" for name in TABLES))
    live.load()
    pause(live.settings, [f"{live.database}.paused", f"{live.database}.quiet"], "ada", "look at it")
    live.run(
        "SET SESSION sql_mode = ''",
        *(f"INSERT INTO {name} VALUES (2, '2024-01-02')" for name in ("fine", "late", "paused")),
        "INSERT INTO stopped VALUES (2, '0000-00-00')",
    )
    live.delta()
    first = [(name, *state(live)[name]) for name in TABLES]
    assert first == [
        ("fine", "equal", "", ""),
        ("late", "equal", "", ""),  # the comparison merges it
        ("paused", "failed", "the table is not at the position of the server's rows, because it is not merged",
         f"loader resume {live.database}.paused; then: loader verify"),
        # Whether it has changes is looked at when it is resumed.
        ("quiet", "failed", "the table is not at the position of the server's rows, because it is not merged",
         f"loader resume {live.database}.quiet; then: loader verify"),
        ("stopped", "failed", "1 value does not fit the column's type date",
         f"fix the value on the server, then: loader initial-load --table {live.database}.stopped --again"),
    ]  # fmt: skip
    assert [(name, *state(live)[name]) for name in TABLES] == first  # nothing was logged since
    live.run("INSERT INTO fine VALUES (3, NULL)")
    assert [(name, *state(live)[name]) for name in TABLES] == first


def state(live: LiveSource) -> dict[str, tuple[str, str, str]]:
    """The status of each table, and what failed with its first remedy."""
    return {
        name: (
            one.status,
            *(("", "") if not one.error else (one.error["what"], one.error["hint"].partition("; or ")[0])),
        )
        for name, one in by_table(verified(live.spark, live.settings)).items()
    }
