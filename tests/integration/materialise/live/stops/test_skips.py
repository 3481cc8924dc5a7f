"""Tables that lack skipped rows and are renamed in later intervals: they stay marked under their new names."""

from __future__ import annotations

from typing import Any, cast

import pytest

from loader import pipeline
from loader.extract.extraction import extract
from loader.pipeline import chain_of
from loader.pipeline.reports.source_status import status
from loader.spark.workers import Threads
from tests.integration.materialise.live_source import LiveSource, live

__all__ = ["live"]
pytestmark = pytest.mark.integration


def skip(source: LiveSource, *statements: str) -> None:
    """Skip a transaction with these statements."""
    place = status(source.settings).log_end
    source.run("BEGIN", *statements, "COMMIT")
    pipeline.skip_transaction(source.settings, place, (), reason="poison", by="ann")


def marked(source: LiveSource) -> set[str]:
    """The tables of the warehouse that lack rows by the status, which agree with the names of the skips."""
    state = status(source.settings)
    named = {name.partition(".")[2] for one in state.skips for name in one.names}
    found = {table.table.partition(".")[2] for table in state.tables if table.skipped_at}
    assert found <= named
    return found


def test_a_marked_table_stays_marked_through_every_rename(live: LiveSource) -> None:
    live.run(*(f"CREATE TABLE {name} (id INT PRIMARY KEY)" for name in "abc"))
    live.load()
    skip(live, "INSERT INTO a VALUES (1)", "INSERT INTO b VALUES (1)")
    live.delta()
    assert marked(live) == {"a", "b"}
    live.run("INSERT INTO c VALUES (2)")
    live.delta()
    live.run("RENAME TABLE a TO x", "CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (5)")
    live.stage()
    assert marked(live) == {"a", "b"}  # as the tables of the warehouse are called
    live.merge()
    assert marked(live) == {"b", "x"}
    (state,) = status(live.settings).skips
    assert state.table_text == f"{live.database}.a, {live.database}.b (now {live.database}.x)"
    live.run("RENAME TABLE x TO t, b TO x, t TO b")
    live.delta()
    assert marked(live) == {"b", "x"}
    live.run("ALTER TABLE b RENAME TO y")
    live.delta()
    assert marked(live) == {"x", "y"}
    assert sorted(live.differences()) == ["x", "y"]


def test_a_table_that_was_loaded_again_is_not_marked_under_its_next_name(live: LiveSource) -> None:
    live.run("CREATE TABLE a (id INT PRIMARY KEY)", "CREATE TABLE b (id INT PRIMARY KEY)")
    live.load()
    skip(live, "INSERT INTO a VALUES (1)", "INSERT INTO b VALUES (1)")
    live.delta()
    live.load_again("a")
    assert marked(live) == {"b"}
    live.run("INSERT INTO a VALUES (2)")
    live.delta()
    live.run("RENAME TABLE a TO x, b TO y")
    live.delta()
    assert marked(live) == {"y"}
    assert live.differences() == ["y"]


def test_rows_that_are_skipped_after_their_interval_was_applied_are_followed_as_well(live: LiveSource) -> None:
    live.run("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET hebrew)", "CREATE TABLE b (id INT)")
    live.load()
    place = status(live.settings).log_end
    live.run("INSERT INTO a VALUES (1, _hebrew X'61A1')", "INSERT INTO b VALUES (1)")
    assert live.statuses(live.delta())["a"] == "quarantined"
    start = chain_of(live.settings).newest_manifest("0001")
    assert start is not None
    live.run("INSERT INTO b VALUES (2)")
    live.delta()
    pipeline.skip_transaction(live.settings, place, (), reason="poison", by="ann")
    extract(Threads(2), cast("Any", pipeline.extract_job(live.settings, start.start_seqno).spec))
    pipeline.release(live.settings, f"{live.database}.a")
    live.run("INSERT INTO a VALUES (2, 'b')")
    live.delta()
    assert marked(live) == {"a"}
    live.run("RENAME TABLE a TO x")
    live.delta()
    assert marked(live) == {"x"}
    assert live.differences() == ["x"]
