"""Errors of the loader on a page: what failed, where, why, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from loader.errors import LoaderError
from loader.page.host import Host
from loader.page.html import Html, join, lines, tag


def error_panel(title: str, error: Mapping[str, Any], host: Host, source: str) -> Html:
    """Return the panel of an error.

    Args:
        title: what the error is about.
        error: in the form of `LoaderError.as_dict()`.
        host: which has the explanation.
        source: its name.
    """
    return tag(
        "section",
        tag("h3", title),
        tag("p", error["what"], class_="what"),
        tag("dl", join(_details(error, host, source))),
        class_="panel",
    )


def _details(error: Mapping[str, Any], host: Host, source: str) -> Iterator[Html]:
    if error["where"]:
        yield _detail("where", ", ".join(f"{name} {value}" for name, value in error["where"].items()))
    if error["why"]:
        yield _detail("why", tag("span", lines(str(error["why"])), class_="lines"))
    if error["hint"]:
        yield _detail("what to do", error["hint"])
        for form in host.forms(source, str(error["hint"])):
            yield _detail("in Airflow", form)
    if address := host.explanation(LoaderError(str(error["what"]))):
        yield _detail("read on", tag("a", address, href=address))


def _detail(name: str, content: object) -> Html:
    return join((tag("dt", name), tag("dd", content)))
