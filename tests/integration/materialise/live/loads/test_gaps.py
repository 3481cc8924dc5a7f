"""Tables of real servers that swap names while all tables are loaded again after a gap in the log."""

from __future__ import annotations

import pytest

from loader import pipeline
from loader.pipeline.chain.chain_begin import begin_again
from tests.integration.materialise.live_source import LiveSource

pytestmark = pytest.mark.integration


@pytest.fixture
def source(live: LiveSource) -> LiveSource:
    live.run(
        "CREATE TABLE a (id INT PRIMARY KEY, name VARCHAR(20))",
        "CREATE TABLE b LIKE a",
        "INSERT INTO a VALUES (1,'one')",
        "INSERT INTO b VALUES (1,'eins')",
    )
    live.load()
    live.run("INSERT INTO a VALUES (2,'two')", "INSERT INTO b VALUES (2,'zwei')")
    live.delta()
    return live


def test_rows_of_the_gap_are_not_lost_by_a_swap_between_two_loads(source: LiveSource) -> None:
    source.run("INSERT INTO a VALUES (3,'lost')", "INSERT INTO b VALUES (3,'verloren')")
    assert pipeline.plan_interval(source.settings) is not None  # never staged: the log of it counts as lost
    assert begin_again(source.settings).gap
    source.load_again("b")
    source.run("RENAME TABLE a TO tmp_swap, b TO a, tmp_swap TO b")
    source.load_again("a")
    results = [source.delta()]
    source.run("INSERT INTO a VALUES (9,'nine')", "INSERT INTO b VALUES (9,'neun')")
    results.append(source.delta())
    errors = [one.error for result in results for one in result.tables if one.error]
    assert source.differences() == [] or errors


def test_a_table_that_was_excluded_while_the_chain_began_again_is_not_taken_for_dropped(source: LiveSource) -> None:
    source.run("INSERT INTO a VALUES (3,'lost')")
    assert pipeline.plan_interval(source.settings) is not None
    everything = source.settings
    excluded = everything.tables.model_copy(update={"exclude": (f"{source.database}.a",)})
    source.settings = everything.model_copy(update={"tables": excluded})
    assert begin_again(source.settings).gap
    source.load_again("b")
    source.settings = everything
    source.run("INSERT INTO b VALUES (9,'neun')")
    result = source.delta()
    errors = [one.error for one in result.tables if one.error]
    print(source.statuses(result), result.published)
    assert source.differences() == [] or errors


@pytest.mark.parametrize("after", ["DROP TABLE a", "DROP TABLE a; CREATE TABLE a (id INT PRIMARY KEY, m INT)"])
def test_a_table_that_was_not_loaded_again_is_dropped(source: LiveSource, after: str) -> None:
    source.run("INSERT INTO a VALUES (3,'lost')")
    assert pipeline.plan_interval(source.settings) is not None
    assert begin_again(source.settings).gap
    source.load_again("b")
    source.run("INSERT INTO a VALUES (4,'four')", "INSERT INTO b VALUES (4,'vier')")
    assert source.statuses(source.delta())["a"] == "quarantined"
    source.run(*after.split("; "))
    result = source.delta()
    errors = {one.table: (one.error["what"], one.error["hint"]) for one in result.tables if one.error}
    assert errors == {}, errors
