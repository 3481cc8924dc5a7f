"""The page of all sources."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from loader.page import figures
from loader.page.addresses import overview_address, source_address
from loader.page.data_table import Column, data_table
from loader.page.html import tag
from loader.page.layout import document
from loader.page.reports.report_cache import Cached

_COLUMNS = (
    Column("source"),
    Column("state"),
    Column("lag"),
    Column("not applied"),
    Column("runway"),
    Column("quarantined tables", number=True),
)


def overview_page(reports: Mapping[str, Cached], now: datetime, *, refreshing: bool) -> str:
    """Return the page. `reports`: by source."""
    table = data_table("Sources", _COLUMNS, (_row(name, cached) for name, cached in reports.items()))
    toggle = overview_address(refreshing=not refreshing)
    return document("Sources", (), now, toggle, table, refreshing=refreshing)


def _row(name: str, cached: Cached) -> tuple[object, ...]:
    link = tag("a", name, href=source_address(name))
    report = cached.report
    if report is None:
        return link, "being read", "", "", "", ""
    status = report.status
    state: object = (
        tag("strong", "the server does not answer", class_="bad") if status and status.unreachable else "answers"
    )
    if report.error:
        state = tag("strong", report.error["what"], class_="bad")
    if status is None:
        return link, state, "", "", "", ""
    stopped = len(status.quarantined)
    return (
        link,
        state,
        "unknown" if status.lag_seconds is None else figures.duration(status.lag_seconds),
        "unknown" if status.behind is None else figures.size(status.behind),
        figures.runway(status.runway),
        tag("strong", stopped, class_="bad") if stopped else 0,
    )
