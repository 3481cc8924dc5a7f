"""Tables of real servers that are merged once in a period, compared with the server from outside."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from loader import pipeline
from loader.materialise.jobs.replay_job import replay
from loader.materialise.merge import carry_over as carrying
from loader.materialise.merge import source_run
from loader.materialise.merge.carry_over import carry_over
from loader.materialise.rules import TableRule
from loader.materialise.spec import ReplaySpec
from loader.pipeline import kept_files, pause, purge, resume, source_lag
from tests.integration.materialise.live_source import LiveSource

pytestmark = pytest.mark.integration

# The first period is that of all real clocks.
EVERY, LATER = "999999d", datetime(4708, 1, 1, tzinfo=UTC)


@pytest.fixture
def source(live: LiveSource) -> LiveSource:
    rule = TableRule(tables=(f"{live.database}.slow*",), every=EVERY)
    live.settings = live.settings.model_copy(update={"rules": (rule,)})
    live.run(
        "CREATE TABLE slow (id INT PRIMARY KEY, name VARCHAR(20))",
        "CREATE TABLE slow_bag (n INT)",
        "CREATE TABLE fast LIKE slow",
        "INSERT INTO slow VALUES (1,'one')",
    )
    live.load()
    return live


@pytest.fixture
def due(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the next period."""
    for module in (source_run, carrying):
        monkeypatch.setattr(module, "utc_now", lambda: LATER)


def changed(source: LiveSource) -> dict[str, str]:
    source.run(
        "INSERT INTO slow VALUES (2,'two')", "UPDATE slow SET name = 'zwei' WHERE id = 2",
        "INSERT INTO slow_bag VALUES (1),(1)", "INSERT INTO fast VALUES (1,'eins')",
    )  # fmt: skip
    result = source.delta()
    assert result.exit_code == 0
    return source.statuses(result)


def purged(source: LiveSource) -> int:
    return sum(one.files for one in purge(source.settings, timedelta(0)) if one.what == "interval")


def test_changes_wait_until_the_table_is_due(source: LiveSource, request: pytest.FixtureRequest) -> None:
    assert changed(source) == {"slow": "not_due", "slow_bag": "not_due", "fast": "applied"}
    assert source.differences() == ["slow", "slow_bag"]
    source.run("INSERT INTO slow VALUES (3,'three')", "DELETE FROM slow WHERE id = 1", "INSERT INTO fast VALUES (2,'')")
    assert source.delta().published
    lag = source_lag(source.settings)
    assert [(one.table.partition(".")[2], one.state, one.short) for one in lag.postponed] == [
        ("slow", "not due", True), ("slow_bag", "not due", True),
    ]  # fmt: skip
    assert lag.postponed[0].note == f"merged every {EVERY}, next after 4707-11-28 00:00:00 UTC"
    assert (lag.released, lag.tables_behind) == ((), ())
    assert (purged(source), [one.intervals for one in kept_files(source.settings)]) == (0, [2, 1])

    request.getfixturevalue("due")
    result = source.merge()
    assert source.statuses(result) == {"slow": "applied", "slow_bag": "applied", "fast": "already"}
    assert (source.differences(), source_lag(source.settings).postponed) == ([], ())
    assert purged(source) == 5
    assert source.statuses(source.merge()) == dict.fromkeys(("slow", "slow_bag", "fast"), "already")


def test_a_table_without_changes_is_never_behind(source: LiveSource) -> None:
    source.run("INSERT INTO fast VALUES (1,'eins')")
    assert source.statuses(source.delta()) == {"slow": "unchanged", "slow_bag": "unchanged", "fast": "applied"}
    assert source_lag(source.settings).postponed == ()


def test_all_tables_can_be_merged_now(source: LiveSource) -> None:
    changed(source)
    spec: Any = pipeline.materialise_job(source.settings, now=True).spec
    result = source_run.materialise(source.spark, spec)
    assert source.statuses(result) == {"slow": "applied", "slow_bag": "applied", "fast": "already"}
    assert source.differences() == []


@pytest.mark.sweep
def test_runs_again_and_replays_give_the_same_rows(source: LiveSource, request: pytest.FixtureRequest) -> None:
    changed(source)
    first = pipeline.intervals(source.settings)[-1]
    source.run("UPDATE slow SET name = 'again'", "DELETE FROM slow_bag LIMIT 1")
    source.delta()
    spec: Any = pipeline.materialise_job(source.settings, pipeline.find_stop(source.settings, first.stop)).spec
    before = source.warehouse_rows("slow")
    assert set(source.statuses(source_run.materialise(source.spark, spec)).values()) == {"already", "not_due"}
    assert source.warehouse_rows("slow") == before
    request.getfixturevalue("due")
    source_run.materialise(source.spark, spec)
    source.merge()
    assert source.differences() == []
    wanted = ReplaySpec(**spec.model_dump(exclude={"through_seqno", "now", "tables"}), since_seqno=first.start_seqno)
    assert {one.table.partition(".")[2]: one.status for one in replay(source.spark, wanted).tables} == dict.fromkeys(
        ("slow", "slow_bag", "fast"), "same"
    )


def test_names_and_columns_change_before_it_is_due(source: LiveSource, request: pytest.FixtureRequest) -> None:
    """A rename is merged at once, because another table needs the rows."""
    changed(source)
    source.run("ALTER TABLE slow ADD COLUMN n INT DEFAULT 5", "RENAME TABLE slow TO x, fast TO slow, x TO fast")
    source.run("INSERT INTO fast VALUES (8,'acht',8)", "INSERT INTO slow VALUES (9,'neun')")
    assert source.statuses(source.delta()) == {"slow": "not_due", "slow_bag": "not_due", "fast": "applied"}
    assert source.differences() == ["slow", "slow_bag"]
    request.getfixturevalue("due")
    assert source.merge().exit_code == 0
    assert source.differences() == []


def test_a_quiet_source_is_brought_up_to_date_when_it_is_due(
    source: LiveSource, request: pytest.FixtureRequest
) -> None:
    changed(source)
    source.run(f"CREATE DATABASE {source.database}_x", f"DROP DATABASE {source.database}_x")
    source.stage()
    spec: Any = pipeline.materialise_job(source.settings).spec
    quiet = carry_over(spec)
    assert quiet is not None
    assert source.statuses(quiet) == {"slow": "not_due", "slow_bag": "not_due", "fast": "unchanged"}
    source.run(f"CREATE DATABASE {source.database}_x", f"DROP DATABASE {source.database}_x")
    source.stage()
    assert carry_over(spec.model_copy(update={"now": True})) is None
    assert carry_over(spec.model_copy(update={"rules": ()})) is None
    pause(source.settings, [f"{source.database}.slow"], "ada", "why")
    assert source.statuses(source.merge())["slow"] == "paused"
    request.getfixturevalue("due")
    assert carry_over(spec) is None
    assert source.statuses(source.merge()) == {"slow": "paused", "slow_bag": "applied", "fast": "already"}
    resume(source.settings, ["*"])
    assert source.merge().exit_code == 0
    assert source.differences() == []
