"""Errors of the loader on a page: what failed, where, why, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from loader.errors import LoaderError
from loader.page.buttons import action_link
from loader.page.host import Host
from loader.page.html import Html, join, lines, tag


def error_panel(error: Mapping[str, Any], host: Host, source: str, title: str = "") -> Html:
    """Return the panel of an error.

    Args:
        error: in the form of `LoaderError.as_dict()`.
        host: of the page.
        source: its name.
        title: what the error stopped; empty for no title.
    """
    heading = tag("h3", title) if title else join(())
    details = tag("dl", join(_details(error, host, source)))
    return tag("section", heading, tag("p", error["what"], class_="what"), details, class_="panel")


def _details(error: Mapping[str, Any], host: Host, source: str) -> Iterator[Html]:
    if error["where"]:
        yield _detail("where", ", ".join(f"{name} {value}" for name, value in error["where"].items()))
    if error["why"]:
        yield _detail("why", tag("span", lines(str(error["why"])), class_="lines"))
    if error["hint"]:
        yield _detail("what to do", error["hint"])
        for form in host.forms(source, str(error["hint"])):
            yield _detail("in Airflow", action_link(form))
    if address := host.links.of(LoaderError(str(error["what"]))):
        yield _detail("read on", tag("a", address, href=address))


def _detail(name: str, content: object) -> Html:
    return join((tag("dt", name), tag("dd", content)))
