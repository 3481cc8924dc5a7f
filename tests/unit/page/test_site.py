"""The site of the pages: addresses, files, gauges, and faults."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loader import pipeline
from loader.page.reports.report_cache import ReportCache
from loader.page.reports.source_report import ReportReader, SourceReport
from loader.page.site import BUTTON_HEADERS, HEADERS, Site
from tests.unit.page.reading import read_page
from tests.unit.page.test_pages import DOWN, HOST, NOW, REPORT, STATUS, source
from tests.unit.pipeline.site import settings_of


@pytest.fixture
def site() -> Site:
    return Site(["shop"], ReportCache(lambda _: REPORT), HOST)


@pytest.mark.parametrize(
    ("page", "query", "status", "title"),
    [
        ("", {}, 200, "Sources"),
        ("source", {"name": "shop"}, 200, "shop"),
        ("table", {"source": "shop", "name": "shop.orders"}, 200, "shop.orders"),
        ("source", {"name": "other"}, 404, "Not found"),
        ("source", {}, 404, "Not found"),
        ("../../etc/passwd", {}, 404, "Not found"),
        ("site.py", {"name": "shop"}, 404, "Not found"),
    ],
)
def test_addresses(page: str, query: dict[str, str], status: int, title: str, site: Site) -> None:
    found = site.answer(page, query)
    assert (found.status, found.media_type) == (status, "text/html; charset=utf-8")
    assert read_page(found.body.decode()).one("h1").text == title


def test_files_of_the_pages(site: Site) -> None:
    assert site.answer("style.css", {}).media_type == "text/css; charset=utf-8"
    assert b"prefers-color-scheme: dark" in site.answer("style.css", {}).body
    assert site.answer("icon.svg", {}).body.startswith(b"<svg ")
    policy = HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert "script" not in policy
    with_buttons = BUTTON_HEADERS["Content-Security-Policy"]
    assert with_buttons == f"{policy}; script-src 'self'; connect-src 'self'"
    assert site.answer("actions.js", {}).media_type == "text/javascript; charset=utf-8"


def test_gauges_for_prometheus() -> None:
    """They are those of `loader status`. An old report is no state of now."""
    reports = {
        "shop": REPORT,
        "stale": replace(REPORT, error=DOWN.as_dict()),
        "never": SourceReport("never", NOW, error=DOWN.as_dict()),
    }
    answer = Site(list(reports), ReportCache(reports.__getitem__), HOST).answer("metrics", {})
    assert (answer.status, answer.media_type) == (200, "text/plain; version=0.0.4; charset=utf-8")
    down = [pipeline.unreadable("stale"), pipeline.unreadable("never")]
    assert answer.body.decode() == pipeline.prometheus_text([*pipeline.gauges(STATUS), *down])
    assert 'binlog_loader_up{source="never"} 0' in answer.body.decode()


def test_a_source_that_was_never_loaded(tmp_path: Path) -> None:
    report = ReportReader(lambda _: settings_of(tmp_path)).read("shop")
    assert [panel.split("\n")[0] for panel in source(report).panels()] == ["nothing was loaded from this source yet"]


def test_a_fault_of_the_loader_is_no_lost_page(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: str) -> Any:
        raise ZeroDivisionError("password=canary")

    page = source(ReportReader(broken).read("shop"))
    assert page.panels()[0].startswith(
        "the source could not be read\nwhy: ZeroDivisionError\nwhat to do: read the traceback"
    )
    assert "canary" not in page.text
    assert "ZeroDivisionError" in caplog.text
