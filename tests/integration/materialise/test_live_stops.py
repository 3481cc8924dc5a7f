"""Tables of real servers that stop before they exchange their names."""

from __future__ import annotations

import pytest

from loader.errors import UsageError
from loader.model.table import TableName
from loader.pipeline import quarantines_of
from tests.integration.materialise.live_source import LiveSource

pytestmark = pytest.mark.integration

INSERT_WITHOUT_DEFAULT = ("SET SESSION binlog_row_image = MINIMAL", "INSERT INTO {0} (id) VALUES (3)")
"""The log does not have the value of `name`, so the table stops there."""
SWAP = "RENAME TABLE a TO x, b TO a, x TO b"


@pytest.fixture
def source(live: LiveSource) -> LiveSource:
    for number, name in enumerate("abc"):
        live.run(
            f"CREATE TABLE {name} (id INT PRIMARY KEY, name VARCHAR(20) DEFAULT 'new')",
            f"INSERT INTO {name} VALUES (1,'one'),({number + 10},'{name}')",
        )
    live.load()
    return live


def stop(source: LiveSource, *tables: str) -> None:
    for table in tables:
        source.run(*(statement.format(table) for statement in INSERT_WITHOUT_DEFAULT))


def cure(source: LiveSource) -> None:
    """Do what the errors of the quarantined tables say."""
    for table, quarantine in quarantines_of(source.settings).all().items():
        assert TableName.parse(str(table)).load_again in quarantine.error["hint"]
        source.load_again(table.table)


def test_both_tables_of_a_swap_stopped_before_it(source: LiveSource) -> None:
    stop(source, "a", "b")
    source.run(SWAP, "INSERT INTO a VALUES (4,'four')", "DELETE FROM b WHERE id = 1")
    found = source.statuses(source.delta())
    assert found == {"a": "quarantined", "b": "quarantined", "c": "unchanged"}
    cure(source)
    source.run("INSERT INTO b VALUES (5,'five')")
    assert source.delta().exit_code == 0
    assert source.differences() == []


def test_three_tables_that_change_places_stopped_before_it(source: LiveSource) -> None:
    stop(source, "a", "b", "c")
    source.run("RENAME TABLE a TO x, b TO a, c TO b, x TO c", "INSERT INTO a VALUES (4,'four')")
    assert source.statuses(source.delta()) == dict.fromkeys("abc", "quarantined")
    cure(source)
    assert source.merge().exit_code == 0
    assert source.differences() == []


def test_one_table_of_a_swap_stopped_before_it(source: LiveSource) -> None:
    stop(source, "a")
    source.run(SWAP, "INSERT INTO a VALUES (4,'four')")
    found = source.statuses(source.delta())
    assert found == {"a": "applied", "b": "quarantined", "c": "unchanged"}
    cure(source)
    assert source.merge().exit_code == 0
    assert source.differences() == []


@pytest.mark.parametrize("after", ["DROP TABLE a", "RENAME TABLE a TO d"])
def test_a_stopped_table_that_the_server_no_longer_has(source: LiveSource, after: str) -> None:
    """The statement is not staged yet: the load says to stage it, and that helps."""
    stop(source, "a")
    assert source.statuses(source.delta())["a"] == "quarantined"
    source.run(after)
    with pytest.raises(UsageError, match="no such captured table") as refused:
        source.load_again("a")
    assert "dropped or renamed on the server: loader run" in refused.value.hint
    source.delta()
    cure(source)
    assert source.merge().exit_code == 0
    assert quarantines_of(source.settings).all() == {}
    assert source.differences() == []
