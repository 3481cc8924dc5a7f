"""Answers requests for the pages and for gauges. Nothing can be changed through them: buttons ask Airflow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path

from loader import pipeline
from loader.errors import LoaderError
from loader.page.buttons import SCRIPT
from loader.page.error_panel import error_panel
from loader.page.host import Host
from loader.page.html import tag
from loader.page.layout import document
from loader.page.overview import overview_page
from loader.page.reports.report_cache import ReportCache
from loader.page.source_page import source_page
from loader.page.table_page import table_page

_FOLDER = Path(__file__).parent
FILES = {
    "style.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    SCRIPT: "text/javascript; charset=utf-8",
}
"""Files of the pages, by name, with their media types."""
_HTML = "text/html; charset=utf-8"
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"

_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of every answer. The pages run no scripts, and load nothing from elsewhere."""
BUTTON_HEADERS = HEADERS | {"Content-Security-Policy": f"{_POLICY}; script-src 'self'; connect-src 'self'"}
"""Headers of pages with buttons. They run the script of the buttons, which asks only the server of the pages."""


@dataclass(frozen=True)
class Answer:
    """An answer: its HTTP status, its media type and its content."""

    status: int
    media_type: str
    body: bytes


class Site:
    """The pages of some sources.

    Args:
        sources: their names.
        reports: of these sources.
        host: of the pages.
    """

    def __init__(self, sources: Sequence[str], reports: ReportCache, host: Host) -> None:
        self._sources, self._reports, self._host = sources, reports, host

    def answer(self, page: str, query: Mapping[str, str]) -> Answer:
        """Return the answer to a request.

        Args:
            page: the last part of the path: empty, `source`, `table`, `metrics` or the name of a file.
            query: parameters of the address.
        """
        if page in FILES:
            return file_answer(page)
        now, refreshing = datetime.now(UTC), query.get("refresh") != "off"
        source = query.get("source" if page == "table" else "name", "")
        if page == "":
            return _page(HTTPStatus.OK, overview_page(self._reports.get(self._sources), now, refreshing=refreshing))
        if page == "metrics":
            return Answer(HTTPStatus.OK, _PROMETHEUS, pipeline.prometheus_text(self._gauges()).encode())
        if page not in {"source", "table"} or source not in self._sources:
            return text_answer(HTTPStatus.NOT_FOUND, "Not found", "There is no such page.")
        cached = self._reports.get([source])[source]
        if page == "table":
            name = query.get("name", "")
            return _page(HTTPStatus.OK, table_page(source, name, cached, self._host, now, refreshing=refreshing))
        find = query.get("find", "")
        return _page(HTTPStatus.OK, source_page(source, cached, self._host, now, find=find, refreshing=refreshing))

    def _gauges(self) -> Iterator[pipeline.Gauge]:
        """Yield the gauges of all sources. A source that cannot be read now has only the gauge `up`."""
        for source, cached in self._reports.get(self._sources).items():
            report = cached.report
            if report is None or report.status is None or report.error:
                yield pipeline.unreadable(source)
            else:
                yield from pipeline.gauges(report.status)


def file_answer(name: str) -> Answer:
    """Return one of `FILES`, which have nothing to protect."""
    return Answer(HTTPStatus.OK, FILES[name], (_FOLDER / name).read_bytes())


def error_answer(error: LoaderError, host: Host) -> Answer:
    """Return the page for an error that leaves no source to show, such as one of the configuration."""
    panel = error_panel(error.as_dict(), host, "")
    return _page(
        HTTPStatus.SERVICE_UNAVAILABLE, document("Sources", (), datetime.now(UTC), "./", panel, refreshing=False)
    )


def text_answer(status: int, title: str, *content: object) -> Answer:
    """Return a page of a few words."""
    return _page(status, document(title, (), datetime.now(UTC), "./", tag("p", *content), refreshing=False))


def _page(status: int, text: str) -> Answer:
    return Answer(status, _HTML, text.encode())
