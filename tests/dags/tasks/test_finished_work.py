"""Work that starts no Spark, because it is done or has no changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from loader.airflow import finished_work
from loader.airflow.reports.failures import summary
from loader.errors import GapError
from loader.materialise.load.load_notes import note_loaded
from loader.materialise.spec import LoadSpec
from loader.model.table import TableName
from loader.staging.documents import IncompleteTable
from loader.staging.notes.pauses import Pauses
from loader.staging.published import PostponedTable, PublishedTable
from tests.dags.conftest import Site, SparkSubmit, Task
from tests.dags.operators import (
    connect,
    failed_task,
    operator_of,
    publish,
)

# Work that is done.

_AT = "binlog.000001:9"


def test_a_staged_interval_starts_no_spark(site: Site, spark_submit_program: SparkSubmit, running: Task) -> None:
    site.stage()
    result = operator_of("extract", site).execute(running.context)
    assert (result["status"], result["stop"]) == ("already", "binlog.000001:100")
    assert spark_submit_program.argv is None


def test_on_this_machine_an_extraction_starts_no_spark(
    site: Site, spark_submit_program: SparkSubmit, running: Task
) -> None:
    raised = failed_task("extract", site, running)
    assert (raised.error.what, raised.retry) == ("the server does not answer", True)
    assert spark_submit_program.argv is None


def test_an_interval_that_left_a_table_out_is_looked_at_again(
    site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it lacks may have been said since."""
    connect(monkeypatch, conn_type="spark", host="yarn")
    place = "binlog.000001:50"
    left_out = IncompleteTable(
        table="shop.a", seqno=10**12 + 60, position=place, at=place, what="not known", why="lost"
    )
    site.stage((left_out,))
    spark_submit_program.result = {"status": "already", "tables": [], "left_out": [left_out.model_dump()]}
    assert operator_of("extract", site).execute(running.context) == spark_submit_program.result
    assert spark_submit_program.argv is not None
    assert f"shop.a is incomplete from {place} on: lost" in summary(spark_submit_program.result)


def test_the_log_names_the_interval_that_a_run_could_not_stage_behind_others() -> None:
    failed = GapError("a log file is gone", file="binlog.000002").as_dict()
    said = "\n".join(summary({"status": "staged", "tables": [], "stop": "binlog.000001:100", "failed": failed}))
    assert "the interval at binlog.000001:100 is not staged" in said
    assert "a log file is gone" in said


def test_a_published_interval_starts_no_spark(site: Site, spark_submit_program: SparkSubmit, running: Task) -> None:
    site.stage()
    publish(site, site.plan.stop)
    result = operator_of("materialise", site).execute(running.context)
    assert spark_submit_program.argv is None
    (table,) = result["tables"]
    assert (table["table"], table["status"], table["snapshot"]) == ("shop.orders", "already", 7)
    assert result["published"] == "shop/0001/00000001000000000004/published.json"


def test_an_earlier_record_does_not_count(site: Site, spark_submit_program: SparkSubmit, running: Task) -> None:
    publish(site, "binlog.000001:50")
    operator_of("materialise", site).execute(running.context)
    assert spark_submit_program.argv is not None


def test_a_record_of_another_warehouse_does_not_count(
    site: Site, spark_submit_program: SparkSubmit, running: Task
) -> None:
    site.stage()
    publish(site, site.plan.stop, warehouse="another")
    operator_of("materialise", site).execute(running.context)
    assert spark_submit_program.argv is not None


def test_a_table_that_was_released_is_brought_on(site: Site, spark_submit_program: SparkSubmit, running: Task) -> None:
    site.stage()
    publish(site, site.plan.stop, behind={"shop.items": 5})
    operator_of("materialise", site).execute(running.context)
    assert spark_submit_program.argv is not None


def test_a_table_that_is_still_quarantined_starts_no_spark(
    site: Site, spark_submit_program: SparkSubmit, running: Task
) -> None:
    site.stage()
    publish(site, site.plan.stop, behind={"shop.items": 5})
    site.quarantine("shop.items")
    raised = failed_task("materialise", site, running)
    assert not raised.retry
    assert "1 of 2 tables failed (tables shop.items)" in str(raised)
    assert "loader release shop.items" in str(raised)
    assert spark_submit_program.argv is None


def test_a_table_that_is_still_paused_starts_no_spark(
    site: Site, spark_submit_program: SparkSubmit, running: Task
) -> None:
    site.stage()
    waiting = PostponedTable(why="waiting", waits_for="shop.items")
    postponed = {"shop.items": PostponedTable(why="paused", snapshot=3, applied=5, position=_AT), "shop.moved": waiting}
    publish(site, site.plan.stop, behind={"shop.items": 5, "shop.moved": 0}, postponed=postponed)
    pauses = Pauses(site.chain.store, "shop")
    pause = pauses.begin(TableName("shop", "items"), "ada", "disk full")
    result = operator_of("materialise", site).execute(running.context)
    assert spark_submit_program.argv is None
    found = {table["table"]: (table["status"], table["position"], table["note"]) for table in result["tables"]}
    assert found == {
        "shop.items": ("paused", _AT, pause.note),
        "shop.moved": ("waiting", "", "waits for shop.items, whose rows it takes"),
        "shop.orders": ("already", "", ""),
    }
    assert f"shop.items: {pause.note}" in summary(result)
    pauses.end(pause)
    operator_of("materialise", site).execute(running.context)
    assert spark_submit_program.argv is not None


@pytest.mark.parametrize("now", [False, True])
def test_a_table_that_is_due_starts_spark(
    site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch, now: bool
) -> None:
    with (site.folder / "loader.toml").open("a") as file:
        file.write('\n[[sources.shop.rules]]\ntables = ["shop.items"]\nevery = "1h"\n')
    site.stage()
    due = datetime(2026, 1, 31, 12, tzinfo=UTC)
    postponed = {"shop.items": PostponedTable(why="not_due", snapshot=3, applied=5, position=_AT, due=due)}
    publish(site, site.plan.stop, behind={"shop.items": 5}, postponed=postponed)
    monkeypatch.setattr(finished_work, "utc_now", lambda: due - timedelta(seconds=1))
    operator = operator_of("materialise", site)
    operator.now = now
    result = operator.execute(running.context)
    if not now:
        assert [(table["table"], table["status"], table["note"]) for table in result["tables"]] == [
            ("shop.items", "not_due", "merged every 1h, next after 2026-01-31 12:00:00 UTC"),
            ("shop.orders", "already", ""),
        ]
        assert spark_submit_program.argv is None
        monkeypatch.setattr(finished_work, "utc_now", lambda: due)
        operator_of("materialise", site).execute(running.context)
    assert spark_submit_program.spec["now"] is now


def test_an_interval_without_a_change_of_any_table_is_published_without_spark(
    site: Site, spark_submit_program: SparkSubmit, running: Task
) -> None:
    site.stage()
    publish(site, site.plan.stop)
    after = site.follow_up("binlog.000001:200")
    result = operator_of("materialise", site, stop_seqno=after.stop_seqno).execute(running.context)
    assert spark_submit_program.argv is None
    (table,) = result["tables"]
    assert (table["table"], table["status"], table["complete_through"]) == (
        "shop.orders",
        "unchanged",
        after.stop_seqno,
    )
    newest = site.chain.newest_published("0001")
    assert newest and newest[1].stop == "binlog.000001:200"
    assert newest[1].tables == {"shop.orders": PublishedTable(snapshot=7, applied=5)}


@pytest.mark.parametrize("change", ["rows", "barrier", "left out", "loaded since", "quarantined since"])
def test_a_change_of_a_table_is_merged(
    change: str, site: Site, spark_submit_program: SparkSubmit, running: Task
) -> None:
    site.stage()
    publish(site, site.plan.stop)
    after = site.follow_up("binlog.000001:200", change)
    if change == "quarantined since":
        site.quarantine("shop.items")
    operator_of("materialise", site, stop_seqno=after.stop_seqno).execute(running.context)
    assert spark_submit_program.argv is not None


@pytest.mark.parametrize("later", [False, True])
def test_a_quarantined_table_that_the_record_has_is_looked_at(
    later: bool, site: Site, spark_submit_program: SparkSubmit, running: Task
) -> None:
    """It may have left the quarantine behind, or was rolled back or dropped since the record. Only Spark can tell."""
    site.stage()
    publish(site, site.plan.stop)
    site.quarantine("shop.orders")
    stop = site.follow_up("binlog.000001:200").stop_seqno if later else site.plan.stop_seqno
    operator_of("materialise", site, stop_seqno=stop).execute(running.context)
    assert spark_submit_program.argv is not None
    site.release("shop.orders")


def test_loads_that_are_noted_start_no_spark(site: Site, spark_submit_program: SparkSubmit, running: Task) -> None:
    manifest = "shop/0001/load/shop/orders/00000001000000000004/manifest.json"

    def loaded(only: tuple[str, ...] = ()) -> bool:
        spark_submit_program.argv = None
        result = operator_of("load_tables", site, manifests=[manifest], only=only).execute(running.context)
        if spark_submit_program.argv is None:
            assert [(one["table"], one["status"]) for one in result["tables"]] == [("shop.orders", "already")]
        return spark_submit_program.argv is not None

    assert loaded()
    spec = LoadSpec.model_validate(spark_submit_program.spec)
    note_loaded(site.chain.store, spec.source, spec.catalog, "shop.orders", "binlog.000001:4", manifest)
    assert not loaded()
    assert loaded(("shop.orders",))  # a person who names a table wants it looked at
    site.quarantine("shop.orders")
    assert loaded()
    site.release("shop.orders")
    assert not loaded()
    site.configure(warehouse="elsewhere")
    assert loaded()


def test_no_loads_start_no_spark(site: Site, spark_submit_program: SparkSubmit, running: Task) -> None:
    assert operator_of("load_tables", site, manifests=[]).execute(running.context)["tables"] == []
    assert spark_submit_program.argv is None
