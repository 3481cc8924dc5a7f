"""What costs a request for each table is read rarely; the lag is read each time."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader import pipeline
from loader.page.reports.source_report import ReportReader
from loader.settings import SourceSettings
from tests.unit.pipeline.site import Site, shop


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path, shop(6)[0])


@pytest.fixture
def statuses(monkeypatch: pytest.MonkeyPatch) -> list[SourceSettings]:
    """Those whose whole status was read."""
    found: list[SourceSettings] = []
    read = pipeline.status

    def noted(settings: SourceSettings) -> pipeline.SourceStatus:
        found.append(settings)
        return read(settings)

    monkeypatch.setattr(pipeline, "status", noted)
    return found


def test_later_reports_have_new_positions_and_intervals(site: Site, statuses: list[SourceSettings]) -> None:
    ends = shop(6)[1]
    first = site.plan(ends[1])
    site.extract(first)
    site.publish(first, "shop.orders")
    reader = ReportReader(lambda _: site.settings)
    before = reader.read("shop")
    second = site.plan(ends[3])
    site.extract(second)
    site.publish(second, "shop.orders", "shop.items")
    after = reader.read("shop")
    assert before.status is not None
    assert after.status is not None
    assert (before.status.applied, after.status.applied) == (first.stop, second.stop)
    assert (len(before.intervals), len(after.intervals)) == (1, 2)
    assert after.status.tables == before.status.tables
    assert len(statuses) == 1


def test_tables_are_read_again_after_a_time(site: Site, statuses: list[SourceSettings]) -> None:
    site.extract(site.plan(len(site.log)))
    reader = ReportReader(lambda _: site.settings, seconds=0)
    while len(statuses) < 3:
        assert reader.read("shop").error is None
