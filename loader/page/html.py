"""HTML whose text is always escaped.

Only `tag` and `join` make Html. Every other value becomes visible text, and then text of HTML, so that names and
statements of a server cannot add elements, and cannot change the order of the text around them.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from loader.visible_text import visible, visible_lines

_VOID = frozenset({"br", "input", "link", "meta"})


class Html(str):
    """A part of a page. Its text is escaped."""

    __slots__ = ()


def text(value: object) -> Html:
    """Return a value as the text of a page; Html stays as it is."""
    return value if isinstance(value, Html) else Html(escape(visible(str(value))))


def lines(value: str) -> Html:
    """Return text of several lines. Its line feeds are kept."""
    return Html(escape(visible_lines(value)))


def join(parts: Iterable[object]) -> Html:
    """Return the parts as one, without anything between them."""
    return Html("".join(map(text, parts)))


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """Return an element.

    Args:
        name: of the element.
        children: its content.
        attributes: by name, with `_` instead of `-`. Names that Python reserves end with `_` (`class_`). None and
            False omit an attribute. True writes it without a value.
    """
    given = {key: value for key, value in attributes.items() if value is not None and value is not False}
    opening = "".join(f" {_name(key)}{_value(value)}" for key, value in given.items())
    if name in _VOID:
        return Html(f"<{name}{opening}>")
    return Html(f"<{name}{opening}>{join(children)}</{name}>")


def _name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _value(value: object) -> str:
    return "" if value is True else f'="{text(value)}"'
