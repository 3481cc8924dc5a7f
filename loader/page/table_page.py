"""The page of a table."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from loader.page import figures
from loader.page.addresses import OVERVIEW, source_address, table_address
from loader.page.buttons import action_list, button_script
from loader.page.charts import table_chart
from loader.page.error_panel import error_panel
from loader.page.host import Host, Link
from loader.page.html import Html, join, tag
from loader.page.layout import document
from loader.page.reports.load_progress import load_progress
from loader.page.reports.report_cache import Cached
from loader.page.reports.source_report import SourceReport
from loader.page.reports.table_report import TableReport, table_reports
from loader.page.source_page import notice, skips_table, statements_table


def table_page(source: str, name: str, cached: Cached, host: Host, now: datetime, *, refreshing: bool = True) -> str:
    """Return the page.

    Args:
        source: the name of the source.
        name: of the table, as `schema.table`.
        cached: the report of the source.
        host: of the page.
        now: the time of the page, in UTC.
        refreshing: whether the page loads itself again.
    """
    parts = [notice(cached, now)]
    report = cached.report
    if report and report.error:
        parts.append(error_panel(report.error, host, source))
    if report and report.status:
        table = next((one for one in table_reports(report) if one.name == name), None)
        parts += _report(report, table, host) if table else [tag("p", "The source has no such table.")]
    parts.append(button_script(host))
    path = [Link("Sources", OVERVIEW), Link(source, source_address(source))]
    toggle = table_address(source, name, refreshing=not refreshing)
    return document(name, path, now, toggle, *parts, refreshing=refreshing)


def _report(report: SourceReport, table: TableReport, host: Host) -> Iterator[Html]:
    found = [("state", table.state), ("applied position", table.applied or "unknown")]
    if table.postponed:
        found.append(("why", table.postponed.note))
    if table.changed:
        found.append(("newest commit (UTC)", figures.commit_time(table.changed.committed_at)))
        found.append(("in the interval from", table.changed.state.start))
    else:
        found.append(("newest commit", f"before the newest {len(report.intervals)} intervals"))
    yield tag("dl", join(tag("div", tag("dt", name), tag("dd", value)) for name, value in found), class_="figures")
    start = report.intervals[0].state.start if report.intervals else ""
    paused = bool(table.postponed and table.postponed.pause)
    yield action_list(host.table_actions(report.source, table.name, start, paused=paused))
    if table.quarantine:
        error = table.quarantine.error_with_release()
        yield error_panel(error, host, report.source, f"Quarantined since {figures.time(table.quarantine.since)} UTC")
    if table.load:
        yield load_progress([table.load], 1, report.read_at)
    yield tag("h2", f"The newest {len(report.intervals)} intervals")
    yield table_chart(report.intervals, table.name)
    yield skips_table(table.skips)
    yield statements_table(table.statements)
