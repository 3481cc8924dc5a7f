"""The status pages of a real source agree with its server, and a store that goes away does not hold them up."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from infra.s3server import S3Process, run_s3
from loader import pipeline
from loader.error_page import ErrorLinks
from loader.extract.extraction import extract
from loader.page import figures
from loader.page.host import CommandLine
from loader.page.reports.report_cache import ReportCache
from loader.page.reports.source_report import ReportReader
from loader.page.site import Site
from loader.pipeline import extract_job, plan_interval
from loader.s3 import open_client
from loader.settings import SourceSettings
from loader.spark.workers import Threads
from tests.e2e.airflow.running.server import until
from tests.integration.pipeline.conftest import Source
from tests.unit.page.reading import Element, read_page

pytestmark = pytest.mark.integration


class Pages:
    """The pages of a source, as `loader ui` answers them."""

    def __init__(self, settings: SourceSettings, *, patience: float = 60) -> None:
        self._cache = ReportCache(ReportReader(lambda _: settings).read, fresh=0, patience=patience)
        self._site = Site(["shop"], self._cache, CommandLine(ErrorLinks()))

    def page(self, page: str = "source", **query: str) -> Element:
        found = self._site.answer(page, query or {"name": "shop"})
        assert found.status == 200
        return read_page(found.body.decode())


def stage(settings: SourceSettings) -> None:
    chosen = plan_interval(settings)
    assert chosen is not None
    assert extract(Threads(2), cast("Any", extract_job(settings, chosen.start_seqno).spec)).status == "staged"


def test_the_pages_agree_with_the_server(source: Source) -> None:
    start, table = source.end(), f"{source.server.schema}.orders"
    source.insert(1, 2, 3)
    stage(source.settings)
    middle = source.end()
    source.server.run(
        f"UPDATE {table} SET name = 'y' WHERE id < 3",
        f"DELETE FROM {table} WHERE id = 3",
        f"ALTER TABLE {table} ADD note TEXT",
    )
    stage(source.settings)
    staged = source.end()
    source.server.run(f"INSERT INTO {table} (id) VALUES (4)")
    end = source.end()

    pages = Pages(source.settings)
    page = pages.page()
    assert page.panels() == []
    assert page.rows("Positions") == [
        ["end of the log", str(end)],
        ["planned", str(staged)],
        ["staged", str(staged)],
        ["applied to all tables", str(start)],
    ]
    shown = page.figures()
    assert shown["log not applied"] == figures.size(end.logpos - start.logpos)
    assert shown["intervals staged, not applied"] == "2"
    assert [(row[0], row[1], row[4:8]) for row in page.rows("Intervals")] == [
        (str(middle), str(staged), ["1", "0", "2", "1"]),
        (str(start), str(middle), ["1", "3", "0", "0"]),
    ]
    assert [row[1:] for row in page.rows("Statements in these intervals")] == [
        [table, f"ALTER TABLE {table} ADD note TEXT"]
    ]
    assert [[row[0], row[1], *row[4:]] for row in page.rows("1 of 1 tables")] == [
        [table, "not in the warehouse", "3", "2", "1"]
    ]
    assert pages.page("table", source="shop", name=table).figures()["state"] == "not in the warehouse"


def test_a_lag_begins_with_the_oldest_event_that_is_not_applied(source: Source) -> None:
    table = f"{source.server.schema}.orders"

    def unapplied() -> float | None:
        return pipeline.unapplied_seconds(source.settings, pipeline.source_lag(source.settings))

    assert unapplied() == 0.0
    source.server.run(
        "SET SESSION timestamp = UNIX_TIMESTAMP() - 3600",
        f"INSERT INTO {table} VALUES (1, 'x')",
        "SET SESSION timestamp = DEFAULT",
        f"INSERT INTO {table} VALUES (2, 'x')",
    )
    stage(source.settings)  # staged is not applied
    found = unapplied()
    assert found is not None
    assert 3600 <= found < 3700
    end = source.end()
    source.server.run("FLUSH BINARY LOGS")
    (size,) = [row[1] for row in source.server.run("SHOW BINARY LOGS") if row[0] == end.file]
    whole = pipeline.source_lag(source.settings).model_copy(update={"applied": f"{end.file}:{size}"})
    after_rotation = pipeline.unapplied_seconds(source.settings, whole)
    assert after_rotation is not None
    assert after_rotation < 60


@pytest.fixture
def on_s3(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[SourceSettings, S3Process]]:
    """The source with its staging on an S3 server of its own."""
    folder = tmp_path / "buckets"
    folder.mkdir()
    with run_s3(folder) as process:
        for variable, value in process.server.environment.items():
            monkeypatch.setenv(variable, value)
        open_client(endpoint=process.server.endpoint).create_bucket(Bucket="staging")
        root = f"s3://staging/a?endpoint={process.server.endpoint}&path_style=True"
        settings = source.settings.model_copy(update={"staging_root": root})
        pipeline.begin(settings)
        source.insert(1)
        stage(settings)
        yield settings, process


def answered(pages: Pages) -> Element:
    """The page, which must not wait for the store."""
    began = time.monotonic()
    page = pages.page()
    assert time.monotonic() - began < 10
    return page


@pytest.mark.sweep
def test_a_store_that_goes_away_does_not_hold_up_the_pages(on_s3: tuple[SourceSettings, S3Process]) -> None:
    settings, process = on_s3
    pages = Pages(settings, patience=2)
    until("the first report", lambda: pages.page().all("dl", class_="figures"))
    positions = pages.page().rows("Positions")
    process.stop()
    try:
        page = until(
            "a report that takes long", lambda: answered(pages) if pages.page().all("p", class_="notice") else None
        )
        assert re.fullmatch(
            r"The server and the store are being read for \d+ s\. The page shows what was known \d+ s ago\.",
            page.one("p", class_="notice").text,
        )
        assert page.rows("Positions") == positions
        (panel,) = until("the error", lambda: pages.page().panels())
        assert panel.startswith("S3 does not answer\n")
        assert "\nwhat to do: " in panel
        assert pages.page().rows("Positions") == positions
    finally:
        process.start()
    until("the store to be read again", lambda: not pages.page().all("p", class_="notice"))
    assert pages.page().rows("Positions") == positions
