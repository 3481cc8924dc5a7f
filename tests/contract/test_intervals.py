"""Intervals on every store: planned ahead, staged, looked at, verified and purged."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from loader.model.table import TableName
from loader.pipeline import intervals, purge, staged_files, verify_interval
from loader.settings import Retention
from loader.staging.file_verification import find_fault
from tests.contract.conftest import REAL, NewRoot
from tests.unit.pipeline.site import Site, shop

TABLES = ("shop.orders", "shop.items")


@pytest.mark.parametrize("archive", ["", "archive"])
@pytest.mark.parametrize("kind", REAL)
def test_a_backlog_from_its_plans_to_its_purge(kind: str, archive: str, tmp_path: Path, new_root: NewRoot) -> None:
    log, ends = shop(12)
    site = Site(tmp_path, log, new_root(kind))
    plans = [site.plan(ends[number]) for number in (2, 5, 8, 11)]
    assert site.chain.unfinished("0001") == plans
    manifests = [site.extract(plan) for plan in plans[:3]]
    site.publish(plans[1], *TABLES)
    assert [(one.state, len(one.behind)) for one in intervals(site.settings)] == [
        ("applied", 0), ("applied", 0), ("staged", 2), ("planned", 0),
    ]  # fmt: skip
    assert all(0 <= one.age < 600 for one in intervals(site.settings))

    foreign = manifests[0].files[0].key.replace("part-", "part-9")
    site.store.create(foreign, b"x")
    assert [one.file for one in verify_interval(site.settings, plans[0].start_seqno)] == [foreign]
    site.store.delete(foreign)

    settings = site.settings.model_copy(update={"retention": Retention(archive=archive)})
    before = site.objects()
    assert purge(settings, timedelta(days=1)) == []
    listed = purge(settings, timedelta(0), dry_run=True)
    assert site.objects() == before
    assert purge(settings, timedelta(0)) == listed
    gone = {file.key for one in manifests[:2] for file in one.files}
    assert [one.files for one in listed] == [len(one.files) for one in manifests[:2]]
    assert {key for key in before if key not in site.objects()} == gone
    kept = {info.key for info in site.store.list("archive/") if info.key.endswith(".csv")}
    assert kept == ({f"archive/{key}" for key in gone} if archive else set())
    assert all(site.store.get(key) == before[key.removeprefix("archive/")] for key in kept)
    assert purge(settings, timedelta(0)) == []

    assert site.chain.plans(site.generation) == plans
    assert [one.purged for one in intervals(site.settings)] == [True, True, False, False]
    _, files = staged_files(site.settings, plans[2].start_seqno, TableName("shop", "items"))
    assert [find_fault(site.store, file) for file in files] == [None] * len(files)
