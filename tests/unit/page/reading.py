"""Reads pages as a browser does: elements, attributes and visible text."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = {"br", "input", "link", "meta"}


@dataclass
class Element:
    name: str
    attributes: dict[str, str | None]
    children: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def all(self, name: str, **attributes: str) -> list[Element]:
        """The elements of that name inside this one, with these attributes."""
        found = []
        for child in self.children:
            if isinstance(child, Element):
                fits = all(child.attributes.get(key.rstrip("_")) == value for key, value in attributes.items())
                found += [child] if child.name == name and fits else []
                found += child.all(name, **attributes)
        return found

    def one(self, name: str, **attributes: str) -> Element:
        (found,) = self.all(name, **attributes)
        return found

    def rows(self, caption: str) -> list[list[str]]:
        """The cells of the body of a table outside charts."""
        outside = [table for figure in self.all("figure") for table in figure.all("table")]
        (table,) = [one for one in self.all("table") if one.one("caption").text == caption and one not in outside]
        body = table.one("tbody").all("tr")
        return [[cell.text for cell in row.children if isinstance(cell, Element)] for row in body]

    def figures(self) -> dict[str, str]:
        tiles = self.one("dl", class_="figures").all("div")
        return {tile.one("dt").text: tile.one("dd").text for tile in tiles}

    def panels(self) -> list[str]:
        """The errors, each as its lines."""
        found = []
        for panel in self.all("section", class_="panel"):
            head = [one.text for name in ("h3", "p") for one in panel.all(name)]
            details = zip(panel.all("dt"), panel.all("dd"), strict=True)
            found.append("\n".join([*head, *(f"{name.text}: {value.text}" for name, value in details)]))
        return found


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs))
        self._open[-1].children.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().name == tag

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)


def read_page(text: str) -> Element:
    """The document; each element must be closed where it is opened."""
    parser = _Parser()
    parser.feed(text.removeprefix("<!doctype html>\n"))
    parser.close()
    assert parser._open == [parser.root]
    return parser.root
