"""The command that explains errors."""

from __future__ import annotations

from dataclasses import asdict

import typer

from loader.cli.session import Session
from loader.error_page import ErrorEntry, ErrorLinks, error_entries


def errors(context: typer.Context) -> None:
    """Print all errors: their anchors in the documentation, what they mean, and what to do. Needs no configuration."""
    session: Session = context.obj
    out, links = session.output, session.error_links()
    if out.as_json:
        out.document({"errors": [_document(entry, links) for entry in error_entries()]})
        return
    section = ""
    for entry in error_entries():
        if entry.section != section:
            section = entry.section
            out.line(section.upper())
            out.line("")
        _print_entry(session, entry, links)


def _document(entry: ErrorEntry, links: ErrorLinks) -> dict[str, object]:
    return asdict(entry) | {"meaning": list(map(links.plain, entry.meaning)), "link": links.to(entry.anchor)}


def _print_entry(session: Session, entry: ErrorEntry, links: ErrorLinks) -> None:
    out = session.output
    out.line(f"{entry.title}: {links.to(entry.anchor) or f'#{entry.anchor}'}")
    for text in entry.texts:
        out.line(f'  "{text}"')
    for paragraph in entry.meaning:
        out.line(f"  {links.plain(paragraph)}")
    out.line("")
