"""A run takes all intervals that are planned, for as long as it may, and the same ones again when it is repeated."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, cast

import pytest

from infra.servers import Server
from loader import pipeline
from loader.airflow.finished_work import done_before
from loader.errors import LoaderError, StagedDataError, UsageError
from loader.extract.backlog import extract_backlog, stage_backlog
from loader.extract.spec import ExtractSpec, TransportSettings
from loader.pipeline import IntervalChosen, plan_interval, unfinished
from loader.settings import SourceSettings
from loader.spark.workers import Threads
from tests.integration.pipeline.conftest import Source

pytestmark = pytest.mark.integration


def chosen_by(settings: SourceSettings, run: str) -> IntervalChosen:
    found = plan_interval(settings, run)
    assert found is not None
    return found


def spec_of(settings: SourceSettings, chosen: IntervalChosen) -> ExtractSpec:
    return cast("ExtractSpec", pipeline.extract_job(settings, chosen.start_seqno, chosen.through_seqno).spec)


def rows(result: Any) -> list[int]:
    return [table.inserts for table in result.tables]


def test_a_run_takes_all_that_is_planned_and_the_same_again(source: Source) -> None:
    source.insert(*range(5))
    settings = source.limited(transactions=1)
    chosen = chosen_by(settings, "dag/1")
    assert len(unfinished(settings)) == 5
    job = pipeline.extract_job(settings, chosen.start_seqno, chosen.through_seqno)
    assert done_before(job) is None
    first = stage_backlog(Threads(1), spec_of(settings, chosen))
    assert (first.status, first.intervals, first.failed, rows(first)) == ("staged", 5, None, [5])
    assert (first.start, first.stop, first.stop_seqno) == (chosen.start, str(source.end()), chosen.through_seqno)
    source.insert(5, 6)
    assert chosen_by(settings, "dag/2").start_seqno == chosen.through_seqno
    assert chosen_by(settings, "dag/1") == chosen.model_copy(update={"new": False})
    again = first.model_copy(update={"status": "already"})
    assert stage_backlog(Threads(1), spec_of(settings, chosen)) == again
    assert done_before(job) == again.model_dump(mode="json")


def test_what_a_run_has_no_time_for_is_left_to_the_next_one(source: Source) -> None:
    source.insert(*range(3))
    hurried = source.limited(transactions=1).model_copy(update={"run_minutes": 1e-9})
    stops = []
    for number in range(3):
        chosen = chosen_by(hurried, f"dag/{number}")
        result = stage_backlog(Threads(1), spec_of(hurried, chosen))
        assert (result.intervals, rows(result)) == (1, [1])
        stops.append(result.stop)
    assert stops[-1] == str(source.end())
    assert unfinished(hurried) == []


def test_intervals_before_one_that_fails_are_staged(source: Source, mysql_server: Server, tmp_path: Path) -> None:
    for number in range(3):
        source.insert(number)
        source.server.run("FLUSH BINARY LOGS")
    folder = tmp_path / "logs"
    shutil.copytree(mysql_server.log_dir, folder, ignore=lambda _, names: {n for n in names if "binlog" not in n})
    files = TransportSettings(kind="file", server=source.settings.server, path=str(folder))
    settings = source.limited(transactions=1).model_copy(update={"transport": files})
    chosen = chosen_by(settings, "dag/1")
    starts = [one.start for one in unfinished(settings)]
    lost = folder / unfinished(settings)[2].stop.partition(":")[0]
    lost.rename(tmp_path / "lost")
    extracts, failed = extract_backlog(Threads(1), spec_of(settings, chosen))
    assert [one.start for one in extracts] == starts[:2]
    assert failed is not None and lost.name in str(failed)
    assert [one.start for one in unfinished(settings)] == starts[2:]
    with pytest.raises(LoaderError):
        extract_backlog(Threads(1), spec_of(settings, chosen_by(settings, "dag/2")))
    (tmp_path / "lost").rename(lost)
    extracts, failed = extract_backlog(Threads(1), spec_of(settings, chosen_by(settings, "dag/2")))
    assert ([one.start for one in extracts], failed) == (starts[2:], None)


def test_signed_plans_and_manifests_are_followed_and_others_are_not(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = source.settings
    signed = plain.model_copy(update={"staging_root": f"{plain.staging_root}#signed=env:STAGING_KEY"})
    monkeypatch.setenv("STAGING_KEY", "0123456789abcdef")
    with pytest.raises(StagedDataError, match="is not signed"):
        plan_interval(signed)
    assert pipeline.sign_staged(signed) > 0
    assert pipeline.sign_staged(signed) == 0
    source.insert(1)
    first = stage_backlog(Threads(1), spec_of(signed, chosen_by(signed, "dag/1")))
    assert (first.status, rows(first)) == ("staged", [1])
    with pytest.raises(StagedDataError, match=r"staging\.signing_key"):
        plan_interval(plain)
    monkeypatch.setenv("STAGING_KEY", "another key of 16")
    with pytest.raises(StagedDataError, match="the signature of a staged document is wrong"):
        plan_interval(signed)
    with pytest.raises(UsageError, match="no signing key is configured"):
        pipeline.sign_staged(plain)
