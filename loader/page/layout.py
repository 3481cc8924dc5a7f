"""The frame of every page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from loader.page import figures
from loader.page.host import Link
from loader.page.html import join, tag

REFRESH_SECONDS = 30


def document(title: str, path: Sequence[Link], now: datetime, toggle: str, *content: object, refreshing: bool) -> str:
    """Return a page as a document.

    Args:
        title: of the page.
        path: links to the pages above it.
        now: the time of the page, in UTC.
        toggle: the address of the page with the refresh turned on or off.
        content: the parts of the page.
        refreshing: whether the page loads itself again every `REFRESH_SECONDS`.
    """
    head = (
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        *([tag("meta", http_equiv="refresh", content=REFRESH_SECONDS)] if refreshing else []),
        tag("title", f"{title} - binlog-loader"),
        tag("link", rel="stylesheet", href="style.css"),
        tag("link", rel="icon", href="icon.svg"),
    )
    links = [*(tag("a", one.text, href=one.address) for one in path), tag("span", title, aria_current="page")]
    word = "stop refreshing" if refreshing else f"refresh every {REFRESH_SECONDS} s"
    time = tag("p", f"{figures.time(now)} UTC, ", tag("a", word, href=toggle), class_="time")
    top = tag("header", tag("nav", join(links), aria_label="pages"), time)
    body = tag("body", top, tag("main", tag("h1", title), *content))
    return "<!doctype html>\n" + tag("html", tag("head", *head), body, lang="en")
