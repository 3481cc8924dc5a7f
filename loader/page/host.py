"""The programs that show the pages, and the links that each puts into them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from loader.error_page import ErrorLinks


class Link(NamedTuple):
    """A link: its text, and its address relative to the pages."""

    text: str
    address: str


class Host(Protocol):
    """The program that shows the pages."""

    links: ErrorLinks
    """Links to the documentation."""

    def actions(self, source: str) -> Sequence[Link]:
        """Return links to actions on a source."""

    def forms(self, source: str, hint: str) -> Sequence[Link]:
        """Return links to forms that do what the commands in the hint of an error do; each says what to enter."""


class CommandLine:
    """The host of `loader ui`: hints name commands, and the pages start none.

    Args:
        links: to the documentation.
    """

    def __init__(self, links: ErrorLinks) -> None:
        self.links = links

    def actions(self, source: str) -> Sequence[Link]:
        """See Host."""
        return ()

    def forms(self, source: str, hint: str) -> Sequence[Link]:
        """See Host."""
        return ()
