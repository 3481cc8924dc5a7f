"""Links in the pages outside of the site lead to files; MkDocs checks those inside."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "tests").rglob("README.md")])
_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#([^)\s]+))?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    links = [found for found in _LINK.findall(page.read_text(encoding="utf-8")) if "://" not in found[0]]
    assert [link for link, _ in links if not (page.parent / link).exists()] == []
    anchors = [(link, anchor) for link, anchor in links if anchor]
    assert [found for found in anchors if found[1] not in headings(page.parent / found[0])] == []


def headings(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as MkDocs and GitHub make them from plain words."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}
