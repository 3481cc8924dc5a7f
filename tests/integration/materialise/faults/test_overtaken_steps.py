"""A run that another run overtakes between the steps of its merges, or that fails after steps of its own."""

from __future__ import annotations

from typing import Any

import pytest

from loader.errors import RetryableError
from loader.materialise.merge import source_run
from loader.materialise.merge.source_run import SourceRun
from loader.materialise.rules import TableRule
from tests.integration.materialise.faults.test_quarantine import COLUMNS, ITEMS, ORDERS, P0, insert, record, statuses
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import barrier, number, position, table

pytestmark = pytest.mark.integration

RENAMED = table("renamed", COLUMNS, ["id"])


@pytest.fixture
def loaded(lake: Lake) -> Lake:
    lake.staging.interval(position(1, 4), P0)
    keys = [lake.staging.load(schema, [(1, "one")], P0) for schema in (ORDERS, ITEMS)]
    assert lake.loaded(*keys).exit_code == 0
    return lake


def test_a_record_names_the_snapshot_of_the_run_that_finished_a_table(
    loaded: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other run goes on after the step in which a table takes the rows of another, and fails to publish."""
    loaded.staging.interval(
        P0,
        position(1, 2000),
        [(ORDERS, [insert(1100)]), (RENAMED, [insert(1700)])],
        [barrier(1500, "RENAME TABLE orders TO renamed", "orders", "renamed")],
    )
    survey, publish = SourceRun._survey_all, source_run.publish

    def fail(*_: Any) -> str:
        raise RetryableError("the store does not answer")

    def survey_after_another_run(self: SourceRun, *given: Any) -> Any:
        monkeypatch.setattr(SourceRun, "_survey_all", survey)
        monkeypatch.setattr(source_run, "publish", fail)
        with pytest.raises(RetryableError):
            loaded.merged()
        monkeypatch.setattr(source_run, "publish", publish)
        return survey(self, *given)

    monkeypatch.setattr(SourceRun, "_survey_all", survey_after_another_run)
    done = record(loaded, loaded.merged()).tables["shop.renamed"]
    assert (done.snapshot, done.applied) == (loaded.metadata(RENAMED).head, number(1, 2000))
    assert {row.id for row in loaded.sql("SELECT id FROM lake.shop.renamed")} == {1, 1100, 1700}


def test_a_table_that_fails_after_a_commit_of_the_same_run_is_quarantined(loaded: Lake) -> None:
    """With on_drop = "keep" a merge ends before each statement. The next part of it fails."""
    loaded.rules = (TableRule(tables=("shop.orders",), on_drop="keep"),)
    loaded.staging.interval(
        P0,
        position(1, 2000),
        [(ORDERS, [insert(1100)]), (ITEMS, [insert(1100)])],
        [barrier(1500, "ALTER TABLE orders MODIFY name INT", "orders")],
    )
    first = loaded.merged()
    assert statuses(first) == {"orders": "quarantined", "items": "applied"}
    assert record(loaded, first).behind == {"shop.orders": number(1, 1499)}
    assert statuses(loaded.merged()) == {"orders": "quarantined", "items": "already"}
