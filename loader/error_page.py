"""The page of errors, docs/reference/errors.md: what the errors mean, and links to them.

The page is part of the package. `loader errors` prints it, and the site shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from posixpath import normpath

from loader.errors import LoaderError
from loader.resources import folder

_PAGE = "reference/errors"
_SECTION, _ENTRY = re.compile(r"^## (.+)$"), re.compile(r"^### (.+) \{ #([a-z-]+) \}$")
_QUOTE = re.compile(r'^"(.+)"$')
_LINK = re.compile(r"\[([^]]+)\]\(([^)#]*)(#[^)]*)?\)")
_CLASSES = "classes"


@dataclass(frozen=True)
class ErrorEntry:
    """An entry of the page.

    Attributes:
        anchor: of the entry on the page.
        section: heading of the section.
        title: heading of the entry.
        texts: what the first lines of the errors contain; empty if a task fails without an error.
        meaning: what the error means and what to do: paragraphs in Markdown.
    """

    anchor: str
    section: str
    title: str
    texts: tuple[str, ...]
    meaning: tuple[str, ...]


@dataclass
class ErrorLinks:
    """Links to the page on a site. `docs_url`: address of the site; empty for none."""

    docs_url: str = ""

    def of(self, error: LoaderError) -> str:
        """Return the link to the entry of an error, or to the classes of errors; empty without a site."""
        return self.to(anchor_of(error))

    def to(self, anchor: str) -> str:
        """Return the link to an anchor of the page; empty without a site."""
        return f"{self.page(_PAGE)}#{anchor}" if self.docs_url else ""

    def page(self, path: str) -> str:
        """Return the link to a page of the site, such as `how-to/monitoring`; empty without a site."""
        return f"{self.docs_url.rstrip('/')}/{path}.html" if self.docs_url else ""

    def plain(self, paragraph: str) -> str:
        """Return a paragraph with the targets of its links in parentheses: on the site, or in the folder docs/."""
        return _LINK.sub(self._target, paragraph)

    def _target(self, found: re.Match[str]) -> str:
        text, page, anchor = found.groups(default="")
        path = normpath(f"{_PAGE}/../{page}")
        if self.docs_url:
            return f"{text} ({self.docs_url.rstrip('/')}/{path.removesuffix('.md')}.html{anchor})"
        return f"{text} (docs/{path}{anchor})"


@cache
def error_entries() -> tuple[ErrorEntry, ...]:
    """Return the entries of the page, in its order."""
    return tuple(_entries((folder("reference") / "errors.md").read_text(encoding="utf-8")))


def anchor_of(error: LoaderError) -> str:
    """Return the anchor of the entry with the longest text that the error contains.

    Without an entry, return the anchor of the error that caused it, else of the classes of errors.
    """
    found = [(len(text), entry.anchor) for entry in error_entries() for text in entry.texts if text in error.what]
    if found:
        return max(found)[1]
    return anchor_of(error.__cause__) if isinstance(error.__cause__, LoaderError) else _CLASSES


def _entries(page: str) -> Iterator[ErrorEntry]:
    section, heading = "", None
    paragraphs: list[str] = []
    for block in [*page.split("\n\n"), "## end"]:
        starts_section, starts_entry = _SECTION.match(block), _ENTRY.match(block)
        if not (starts_section or starts_entry):
            paragraphs.append(" ".join(block.split()))
            continue
        if heading:
            yield _entry(section, heading, paragraphs)
        paragraphs = []
        section, heading = (starts_section[1], None) if starts_section else (section, starts_entry)


def _entry(section: str, heading: re.Match[str], paragraphs: list[str]) -> ErrorEntry:
    quotes = [_QUOTE.match(paragraph) for paragraph in paragraphs]
    texts = tuple(quote[1] for quote in quotes if quote)
    meaning = tuple(text for text, quote in zip(paragraphs, quotes, strict=True) if not quote)
    return ErrorEntry(heading[2], section, heading[1], texts, meaning)
