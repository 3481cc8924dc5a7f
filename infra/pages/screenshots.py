"""Makes the pictures of the status pages in docs/assets, from an invented source, with Chromium: `make screenshots`."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, sync_playwright

from loader import pipeline
from loader.error_page import ErrorLinks
from loader.errors import DataError
from loader.initial_load.load_states import LoadState
from loader.page import site
from loader.page.host import CommandLine, Host
from loader.page.reports.report_cache import Cached
from loader.page.reports.source_report import SourceReport
from loader.page.source_page import source_page
from loader.page.table_page import table_page
from loader.source.retention import Runway
from loader.staging.notes.quarantine import Quarantine

_ROOT = Path(__file__).resolve().parents[2]
_ASSETS = _ROOT / "docs" / "assets"
_NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
_INTERVALS, _BYTES, _BEHIND = 50, 48_211_006, 3_218_771
_WIDE, _PHONE = 1100, 390
"""Widths of pages."""
_MARGIN = 8
_CHARTS = f"The newest {_INTERVALS} intervals"
_LARGEST = 150_000
"""Bytes of a picture."""


def main() -> None:
    """Make all pictures."""
    host, cached = CommandLine(ErrorLinks()), Cached(_report())
    pages = {
        "source": source_page("shop", cached, host, _NOW),
        "table": table_page("shop", "shop.invoices", cached, host, _NOW),
    }
    program = subprocess.run([_ROOT / "infra" / "chromium.sh"], check=True, stdout=subprocess.PIPE, text=True).stdout
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        pages["airflow"] = source_page("shop", cached, _airflow(folder), _NOW)
        browser = playwright.chromium.launch(executable_path=program.strip())
        for name in site.FILES:
            shutil.copy(Path(site.__file__).with_name(name), folder)
        for name, text in pages.items():
            Path(folder, f"{name}.html").write_text(text, encoding="utf-8")
        source, table, airflow = (Path(folder, f"{name}.html") for name in ("source", "table", "airflow"))
        _take(browser, source, "status-source", _WIDE, "light", "Tables")
        _take(browser, source, "status-source-dark", _WIDE, "dark", "Tables")
        _take(browser, table, "status-table-phone", _PHONE, "light", _CHARTS)
        _take(browser, airflow, "status-airflow", _WIDE, "light", _CHARTS)
        browser.close()


def _airflow(folder: str) -> Host:
    """Return the host of the pages inside Airflow, which makes a home for itself where it is imported."""
    os.environ["AIRFLOW_HOME"] = folder
    from loader.airflow.status_app import AirflowHost

    return AirflowHost(ErrorLinks())


def _take(browser: Browser, page: Path, name: str, width: int, scheme: str, before: str) -> None:
    """Make a picture of a page down to a heading, which is not in the picture."""
    opened = browser.new_page(viewport={"width": width, "height": 1000}, color_scheme=scheme)  # type: ignore[arg-type]
    opened.goto(page.as_uri())
    heading = opened.get_by_role("heading", name=before, exact=True).bounding_box()
    if heading is None:
        raise SystemExit(f"{page.name} has no heading {before!r}")
    picture = opened.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": width, "height": heading["y"] - _MARGIN})
    opened.close()
    if len(picture) > _LARGEST:
        raise SystemExit(f"{name}.png has {len(picture):,} bytes; pictures have at most {_LARGEST:,}")
    (_ASSETS / f"{name}.png").write_bytes(picture)
    print(f"docs/assets/{name}.png, {len(picture):,} bytes")


def _report() -> SourceReport:
    intervals = tuple(_intervals())
    end = intervals[-1].state.stop
    error = DataError(
        "a value does not fit the column of the warehouse table",
        why="4294967296 is not between -2147483648 and 2147483647",
        hint="widen the column: ALTER TABLE lake.shop.invoices ALTER COLUMN number TYPE bigint",
        column="number",
    )
    quarantine = Quarantine(
        source="shop", table="shop.invoices", error=error.as_dict(), applied=intervals[-6].state.start,
        applied_seqno=None, stop=end, stop_seqno=0, since=_NOW - timedelta(minutes=27),
    )  # fmt: skip
    load = LoadState(
        table="shop.events", chunks=640, staged=412, finished=False, newest_chunk=_NOW - timedelta(seconds=4),
        seconds_left=1_312,
    )  # fmt: skip
    names = ("shop.customers", "shop.invoices", "shop.items", "shop.orders")
    status = pipeline.SourceStatus(
        source="shop",
        server="mysql 8.4.6 at loader@db.example.org:3306",
        log_end=f"binlog.000412:{4 + _BYTES // 3 * _INTERVALS + _BEHIND}",
        planned=end,
        staged=end,
        applied=end,
        staged_intervals=0,
        behind=_BEHIND,
        lag_seconds=141,
        runway=Runway(file="binlog.000412", hours=167.5, rule="age"),
        quarantined=(quarantine,),
        released=(),
        tables=tuple(pipeline.TableState(table=name, applied_seqno=0, snapshot=0, exact=True) for name in names),
        loads=(load,),
    )
    return SourceReport("shop", _NOW, status, intervals)


def _intervals() -> Iterator[pipeline.IntervalActivity]:
    """Yield an interval for every five minutes, with a wave of orders."""
    altered = pipeline.Statement(
        position="binlog.000412:712334", statement="ALTER TABLE orders ADD note TEXT", tables=("shop.orders",)
    )
    for number in range(_INTERVALS):
        wave = 1 + math.sin(number / 6) * 0.6 + (number * 7919 % 13) / 20
        tables = (
            pipeline.TableActivity(table="shop.customers", inserts=int(90 * wave), updates=int(40 * wave)),
            pipeline.TableActivity(table="shop.invoices", inserts=int(700 * wave)),
            pipeline.TableActivity(table="shop.items", inserts=int(2_900 * wave), deletes=int(210 * wave)),
            pipeline.TableActivity(table="shop.orders", inserts=int(950 * wave), updates=int(1_400 * wave)),
        )
        start, stop = (f"binlog.000412:{4 + _BYTES // 3 * one}" for one in (number, number + 1))
        committed = _NOW - timedelta(seconds=(_INTERVALS - number - 1) * 300 + 141 - number * 37 % 23)
        staged = committed + timedelta(seconds=9 + 6 * wave)
        state = pipeline.IntervalState(
            generation="0001", start=start, stop=stop, start_seqno=number, state="applied",
            age=(_INTERVALS - number) * 300 - 150, bytes=int(410_000 * wave), tables=len(tables),
            inserts=sum(one.inserts for one in tables), updates=sum(one.updates for one in tables),
            deletes=sum(one.deletes for one in tables),
            behind=("shop.invoices",) if number > _INTERVALS - 7 else (), staged_at=staged,
        )  # fmt: skip
        yield pipeline.IntervalActivity(
            state=state,
            committed_at=f"{committed:%F %T}.000000",
            applied_at=staged + timedelta(seconds=11 + 14 * wave),
            tables=tables,
            statements=(altered,) if number == _INTERVALS // 2 else (),
        )


if __name__ == "__main__":
    main()
