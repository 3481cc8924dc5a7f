"""Tables of a page, which scroll sideways on a narrow screen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from loader.page.html import Html, join, tag


class Column(NamedTuple):
    """A column: its heading, and whether it has numbers, which are aligned to the right."""

    heading: str
    number: bool = False


def data_table(caption: str, columns: Sequence[Column], rows: Iterable[Sequence[object]], empty: str = "none") -> Html:
    """Return a table.

    Args:
        caption: for everyone, also for people who listen to the page.
        columns: of the table.
        rows: their cells; the first one is the heading of its row.
        empty: the text of a table without rows.
    """
    body = [_row(columns, row) for row in rows]
    if not body:
        body = [tag("tr", tag("td", empty, colspan=len(columns)))]
    heading = join(tag("th", one.heading, scope="col", class_=_kind(one)) for one in columns)
    whole = tag("table", tag("caption", caption), tag("thead", tag("tr", heading)), tag("tbody", join(body)))
    return tag("div", whole, class_="scroll", tabindex="0", role="group", aria_label=caption)


def _row(columns: Sequence[Column], row: Sequence[object]) -> Html:
    first = tag("th", row[0], scope="row", class_=_kind(columns[0]))
    rest = (tag("td", cell, class_=_kind(one)) for one, cell in zip(columns[1:], row[1:], strict=True))
    return tag("tr", first, join(rest))


def _kind(column: Column) -> str | None:
    return "number" if column.number else None
