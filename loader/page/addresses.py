"""Addresses of the pages, relative to each other. All pages lie in one folder, so that any prefix works."""

from __future__ import annotations

from urllib.parse import urlencode

OVERVIEW = "./"


def source_address(source: str, *, refreshing: bool = True, find: str = "") -> str:
    """Return the address of the page of a source; `find` limits its tables."""
    return _address("source", {"name": source, "find": find}, refreshing=refreshing)


def table_address(source: str, table: str, *, refreshing: bool = True) -> str:
    """Return the address of the page of a table."""
    return _address("table", {"source": source, "name": table}, refreshing=refreshing)


def overview_address(*, refreshing: bool = True) -> str:
    """Return the address of the page of all sources."""
    return _address(OVERVIEW, {}, refreshing=refreshing)


def _address(page: str, query: dict[str, str], *, refreshing: bool) -> str:
    given = {name: value for name, value in query.items() if value} | ({} if refreshing else {"refresh": "off"})
    return f"{page}?{urlencode(given, errors='surrogatepass')}" if given else page
