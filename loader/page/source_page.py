"""The page of a source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from loader import pipeline
from loader.page import figures
from loader.page.addresses import OVERVIEW, interval_anchor, source_address, table_address
from loader.page.buttons import action_list, button_script
from loader.page.charts import source_charts
from loader.page.data_table import Column, data_table
from loader.page.error_panel import error_panel
from loader.page.host import Host, Link
from loader.page.html import Html, join, tag
from loader.page.layout import document
from loader.page.postponed_tables import postponed_tables
from loader.page.reports.load_progress import load_progress
from loader.page.reports.report_cache import Cached
from loader.page.reports.source_report import SourceReport
from loader.page.reports.table_report import TableReport, table_reports

_TABLES, _LOADS, _PANELS, _STATEMENTS, _SKIPS = 200, 200, 20, 100, 200
"""What a page shows at most. Other tables are found by a part of their name."""
_STATEMENT_LENGTH = 500
_NO_TABLES = "none yet: the first interval after the initial load publishes the tables"


def source_page(
    source: str, cached: Cached, host: Host, now: datetime, *, find: str = "", refreshing: bool = True
) -> str:
    """Return the page.

    Args:
        source: its name.
        cached: its report.
        host: of the page.
        now: the time of the page, in UTC.
        find: a part of the names of the tables to show; empty for all.
        refreshing: whether the page loads itself again.
    """
    toggle = source_address(source, refreshing=not refreshing, find=find)
    parts = [notice(cached, now), action_list(host.actions(source))]
    if cached.report:
        parts += _report(cached.report, host, find)
    parts.append(button_script(host))
    return document(source, [Link("Sources", OVERVIEW)], now, toggle, *parts, refreshing=refreshing)


def notice(cached: Cached, now: datetime) -> Html:
    """Return how old the report is, if a newer one could not be read or is being read for long."""
    parts = []
    if cached.waiting_seconds:
        parts.append(f"The server and the store are being read for {figures.duration(cached.waiting_seconds)}.")
    report = cached.report
    if report and report.status and (cached.waiting_seconds or report.error):
        parts.append(f"The page shows what was known {figures.duration((now - report.read_at).total_seconds())} ago.")
    return tag("p", " ".join(parts), class_="notice", role="status") if parts else join(())


def _report(report: SourceReport, host: Host, find: str) -> Iterator[Html]:
    if report.error:
        yield error_panel(report.error, host, report.source)
    status = report.status
    if status is None:
        return
    if status.unreachable:
        yield error_panel(status.unreachable, host, report.source)
    yield tag("p", status.server, class_="time")
    yield _figures(status)
    for one in status.quarantined[:_PANELS]:
        yield error_panel(one.error_with_release(), host, report.source, f"{one.table} is quarantined")
    if len(status.quarantined) > _PANELS:
        yield tag("p", f"{len(status.quarantined) - _PANELS:,} more tables are quarantined: see below.", class_="bad")
    if status.postponed:
        yield postponed_tables(report.source, status.postponed)
    if status.loads:
        yield load_progress(status.loads[:_LOADS], len(status.loads), report.read_at)
    yield tag("h2", f"The newest {len(report.intervals)} intervals")
    yield source_charts(report.intervals)
    yield _tables(report, find)
    yield skips_table(status.skips)
    yield _positions(status)
    yield _intervals(report.intervals)
    yield statements_table([one for interval in report.intervals for one in interval.statements][::-1])


def _figures(status: pipeline.SourceStatus) -> Html:
    behind = "unknown" if status.behind is None else figures.size(status.behind)
    found = (
        ("lag", "unknown" if status.lag_seconds is None else figures.duration(status.lag_seconds)),
        ("log not applied", behind),
        ("runway", figures.runway(status.runway)),
        ("intervals staged, not applied", figures.count(status.staged_intervals)),
        ("quarantined tables", figures.count(len(status.quarantined))),
    )
    return tag("dl", join(tag("div", tag("dt", name), tag("dd", value)) for name, value in found), class_="figures")


def _positions(status: pipeline.SourceStatus) -> Html:
    rows = (
        ("end of the log", status.log_end or "unknown"),
        ("planned", status.planned),
        ("staged", status.staged),
        (f"applied to {status.applied_to}", status.applied),
    )
    return data_table("Positions", (Column("stage"), Column("position")), rows)


def _intervals(intervals: Sequence[pipeline.IntervalActivity]) -> Html:
    columns = (
        *(Column(name) for name in ("start", "stop", "state", "newest commit (UTC)")),
        *(Column(name, number=True) for name in ("tables", "inserts", "updates", "deletes", "size", "age")),
        Column("manifest"),
    )
    return data_table("Intervals", columns, map(_interval, reversed(intervals)))


def _interval(one: pipeline.IntervalActivity) -> tuple[object, ...]:
    state = one.state
    words = [state.state, *(["purged"] if state.purged else [])]
    words += [f"{len(state.left_out)} incomplete"] if state.left_out else []
    words += [f"{len(state.behind)} behind"] if state.behind else []
    counts = (figures.count(number) for number in (state.tables, state.inserts, state.updates, state.deletes))
    return (
        tag("span", state.start, id=interval_anchor(state.start)),
        state.stop,
        ", ".join(words),
        figures.commit_time(one.committed_at),
        *counts,
        figures.size(state.bytes),
        figures.duration(state.age),
        tag("code", state.manifest),
    )


def statements_table(statements: Sequence[pipeline.Statement]) -> Html:
    """Return the statements of the log that concern tables as a whole: the first ones, with the beginning of each."""
    columns = (Column("position"), Column("tables"), Column("statement"))
    shown = statements[:_STATEMENTS]
    rows = ((one.position, ", ".join(one.tables) or "unknown tables", _statement(one.statement)) for one in shown)
    caption = "Statements in these intervals"
    if len(shown) < len(statements):
        caption = f"{len(shown):,} newest of {len(statements):,} statements in these intervals"
    return data_table(caption, columns, rows)


def skips_table(skips: Sequence[pipeline.SkipState]) -> Html:
    """Return what operators skipped, newest position first; nothing if they skipped nothing."""
    if not skips:
        return join(())
    columns = (
        *(Column(name) for name in ("transaction", "tables")),
        Column("rows", number=True),
        *(Column(name) for name in ("state", "by", "since (UTC)", "reason")),
    )
    shown = skips[::-1][:_SKIPS]
    caption = "Skipped transactions"
    if len(shown) < len(skips):
        caption = f"{len(shown):,} newest of {len(skips):,} skipped transactions"
    return data_table(caption, columns, map(_skip, shown))


def _skip(one: pipeline.SkipState) -> tuple[object, ...]:
    state = f"{one.state}: {one.why}" if one.why else one.state
    return (
        f"{one.start} {one.gtid}".rstrip(),
        one.table_text,
        figures.count(one.rows),
        tag("strong", state, class_="bad") if one.state == "not used" else state,
        one.by,
        figures.time(one.since),
        one.reason,
    )


def _statement(text: str) -> Html:
    more = f"... ({len(text):,} characters)" if len(text) > _STATEMENT_LENGTH else ""
    return tag("code", text[:_STATEMENT_LENGTH], more)


def _tables(report: SourceReport, find: str) -> Html:
    every = table_reports(report)
    found = sorted((one for one in every if find in one.name), key=_urgency)
    columns = (
        *(Column(name) for name in ("table", "state", "applied", "newest commit (UTC)")),
        *(Column(name, number=True) for name in ("inserts", "updates", "deletes")),
    )
    rows = (_table(report.source, one) for one in found[:_TABLES])
    return tag(
        "section",
        tag("h2", "Tables"),
        _search(report.source, find),
        data_table(
            f"{min(len(found), _TABLES):,} of {len(every):,} tables", columns, rows, "none" if every else _NO_TABLES
        ),
    )


def _urgency(one: TableReport) -> tuple[bool, bool, str]:
    return one.quarantine is None, one.postponed is None, one.name


def _search(source: str, find: str) -> Html:
    return tag(
        "form",
        tag("input", type="hidden", name="name", value=source),
        tag("label", "part of the name ", tag("input", type="search", name="find", value=find)),
        " ",
        tag("button", "Find"),
        method="get",
        action="source",
        role="search",
    )


def _table(source: str, one: TableReport) -> tuple[object, ...]:
    return (
        tag("a", one.name, href=table_address(source, one.name)),
        tag("strong", one.state, class_="bad") if one.quarantine else one.state,
        one.applied or "unknown",
        figures.commit_time(one.changed.committed_at) if one.changed else "none",
        *(figures.count(number) for number in (one.rows.inserts, one.rows.updates, one.rows.deletes)),
    )
