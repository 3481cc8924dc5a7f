"""The tables that runs leave behind on purpose, on a page."""

from __future__ import annotations

from collections.abc import Sequence

from loader import pipeline
from loader.page.addresses import table_address
from loader.page.data_table import Column, data_table
from loader.page.html import Html, tag

_SHOWN = 200
_COLUMNS = (Column("table"), Column("state"), Column("applied"), Column("why"))


def postponed_tables(source: str, tables: Sequence[pipeline.PostponedState]) -> Html:
    """Return the postponed tables of a source, with the reason of each."""
    shown = tables[:_SHOWN]
    caption = "Postponed tables" if len(shown) == len(tables) else f"{_SHOWN:,} of {len(tables):,} postponed tables"
    return data_table(caption, _COLUMNS, (_row(source, one) for one in shown))


def _row(source: str, one: pipeline.PostponedState) -> tuple[object, ...]:
    link = tag("a", one.table, href=table_address(source, one.table))
    return link, one.state, one.applied or "unknown", one.note
