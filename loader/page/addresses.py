"""Addresses of the pages, relative to each other. All pages lie in one folder, so that any prefix works."""

from __future__ import annotations

from urllib.parse import quote, urlencode

OVERVIEW = "./"


def source_address(source: str, *, refreshing: bool = True, find: str = "") -> str:
    """Return the address of the page of a source; `find` limits its tables."""
    return _address("source", {"name": source, "find": find}, refreshing=refreshing)


def interval_anchor(start: str) -> str:
    """Return the id of an interval on the page of its source. `start`: its position."""
    return f"interval-{start}"


def interval_address(source: str, start: str) -> str:
    """Return the address of an interval on the page of its source, which stays as it is while somebody reads it."""
    return f"{source_address(source, refreshing=False)}#{quote(interval_anchor(start), safe=':')}"


def table_address(source: str, table: str, *, refreshing: bool = True) -> str:
    """Return the address of the page of a table."""
    return _address("table", {"source": source, "name": table}, refreshing=refreshing)


def overview_address(*, refreshing: bool = True) -> str:
    """Return the address of the page of all sources."""
    return _address(OVERVIEW, {}, refreshing=refreshing)


def _address(page: str, query: dict[str, str], *, refreshing: bool) -> str:
    given = {name: value for name, value in query.items() if value} | ({} if refreshing else {"refresh": "off"})
    return f"{page}?{urlencode(given, errors='surrogatepass')}" if given else page
