"""The programs that show the pages, and the links and actions that each puts into them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from loader.error_page import ErrorLinks


class Link(NamedTuple):
    """A link: its text, and its address relative to the pages."""

    text: str
    address: str


class Action(NamedTuple):
    """A DAG of Airflow that a person can trigger from a page.

    Attributes:
        text: what the link to the DAG says.
        dag: address of the DAG, relative to the pages.
        runs: address in Airflow's API to which a new run is posted.
        conf: of the run; None if a person must fill in the form.
        ask: name of a field of `conf` that the button asks for; empty for none.
    """

    text: str
    dag: str
    runs: str
    conf: dict[str, Any] | None
    ask: str = ""


class Host(Protocol):
    """The program that shows the pages."""

    links: ErrorLinks
    """Links to the documentation."""
    script: str
    """Name of the script of the buttons among the files of the pages; empty for pages without buttons."""

    def actions(self, source: str) -> Sequence[Action]:
        """Return the actions on a source."""

    def table_actions(self, source: str, table: str, start: str, *, paused: bool) -> Sequence[Action]:
        """Return the actions on a table, `schema.table`. A replay begins at `start`."""

    def forms(self, source: str, hint: str) -> Sequence[Action]:
        """Return the actions that do what the commands in the hint of an error do; each says what to enter."""


class CommandLine:
    """The host of `loader ui`: hints name commands, and the pages start none.

    Args:
        links: to the documentation.
    """

    script = ""

    def __init__(self, links: ErrorLinks) -> None:
        self.links = links

    def actions(self, source: str) -> Sequence[Action]:
        """See Host."""
        return ()

    def table_actions(self, source: str, table: str, start: str, *, paused: bool) -> Sequence[Action]:
        """See Host."""
        return ()

    def forms(self, source: str, hint: str) -> Sequence[Action]:
        """See Host."""
        return ()
