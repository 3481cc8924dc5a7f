"""Tables that lack skipped rows, whose names had or get other lives: the status marks them all the same."""

from __future__ import annotations

from typing import Any, cast

import pytest

from loader import pipeline
from loader.extract.extraction import extract
from loader.pipeline import chain_of
from loader.pipeline.reports.source_status import status
from loader.spark.workers import Threads
from tests.integration.materialise.live.stops.test_skips import marked, skip
from tests.integration.materialise.live_source import LiveSource, live

__all__ = ["live"]
pytestmark = pytest.mark.integration


def rename_marked(live: LiveSource) -> None:
    """Rename a table from which a change was skipped to the name of a table that was loaded since."""
    live.run("CREATE TABLE a (id INT PRIMARY KEY)", "CREATE TABLE x (id INT PRIMARY KEY)")
    live.load()
    skip(live, "INSERT INTO a VALUES (1)")
    live.delta()
    live.run("INSERT INTO x VALUES (7)")
    live.load_again("x")
    live.run("RENAME TABLE x TO old_x, a TO x")
    live.delta()


def test_a_load_of_the_table_that_had_the_name_before_does_not_unmark_it(live: LiveSource) -> None:
    rename_marked(live)
    assert live.differences() == ["x"]
    assert marked(live) == {"x"}


def test_it_is_followed_through_the_name_of_a_loaded_table(live: LiveSource) -> None:
    rename_marked(live)
    live.run("RENAME TABLE x TO y")
    live.delta()
    assert live.differences() == ["y"]
    assert marked(live) == {"y"}


def test_a_table_that_the_log_created_and_that_was_never_in_the_warehouse(live: LiveSource) -> None:
    live.run("CREATE TABLE b (id INT PRIMARY KEY)")
    live.load()
    live.run("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET hebrew)")
    place = status(live.settings).log_end
    live.run("INSERT INTO a VALUES (1, _hebrew X'61A1')")
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
    assert live.differences() == ["a"]
    assert marked(live) == {"a"}
    live.run("RENAME TABLE a TO x")
    live.delta()
    assert marked(live) == {"x"}


def test_a_table_that_catches_up_while_nothing_is_logged_is_followed_as_well(live: LiveSource) -> None:
    live.run("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET hebrew)", "CREATE TABLE b (id INT)")
    live.load()
    place = status(live.settings).log_end
    live.run("INSERT INTO a VALUES (1, _hebrew X'61A1')", "INSERT INTO b VALUES (1)")
    assert live.statuses(live.delta())["a"] == "quarantined"
    start = chain_of(live.settings).newest_manifest("0001")
    assert start is not None
    pipeline.skip_transaction(live.settings, place, (f"{live.database}.a",), reason="poison", by="ann")
    extract(Threads(2), cast("Any", pipeline.extract_job(live.settings, start.start_seqno).spec))
    pipeline.release(live.settings, f"{live.database}.a")
    assert live.statuses(live.merge())["a"] in {"applied", "unchanged"}
    assert marked(live) == {"a"}
    live.run("RENAME TABLE a TO x")
    live.delta()
    assert live.differences() == ["x"]
    assert marked(live) == {"x"}
