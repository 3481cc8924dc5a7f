"""The pages of the documentation, and the pieces of code in them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

_BLOCK = re.compile(r"^(?P<indent> *)```(?P<language>\w+)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")


class Piece(NamedTuple):
    """A piece of code of a page; `place` names the page and the line, for the name of a test."""

    place: str
    text: str


def blocks(language: str) -> Iterator[Piece]:
    """Yield the fenced blocks of a language."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for found in _BLOCK.finditer(text):
            if found["language"] == language:
                yield Piece(_place(page, text, found.start()), textwrap.dedent(found["text"]))


def spans() -> Iterator[Piece]:
    """Yield the pieces of code inside sentences."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for found in _SPAN.finditer(_BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)):
            yield Piece(_place(page, text, found.start()), " ".join(found[1].split()))


def write_dag_files(folder: Path) -> None:
    """Write the DAG files of the page about Airflow into a folder."""
    page = ROOT / "docs" / "how-to" / "airflow.md"
    name = str(page.relative_to(ROOT))
    for number, block in enumerate(one for one in blocks("python") if one.place.startswith(name)):
        (folder / f"own{number}.py").write_text(block.text, encoding="utf-8")


def _place(page: Path, text: str, offset: int) -> str:
    return f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, offset) + 1}"
