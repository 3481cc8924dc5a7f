"""Untrusted text (names, values, statements, messages of a server) on terminals and in logs.

Characters that move the cursor, start a new line, or change the order of text are written as escapes. All text for
people goes through this module. JSON keeps every value exact, because it has its own escapes.
"""

from __future__ import annotations

import json
from typing import Any

_SHORT = {9: "\\t", 10: "\\n", 13: "\\r"}
_CONTROLS = (*range(32), 127, *range(128, 160))
_ORDERING = (0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
"""Line and paragraph separators, and the bidirectional controls of Unicode (UAX 9)."""
_HALVES = range(0xD800, 0xE000)
"""Surrogates, which are never sent to a terminal."""

_WIDE = {code: f"\\u{code:04x}" for code in (*_ORDERING, *_HALVES)}
_HIDDEN = {code: f"\\x{code:02x}" for code in _CONTROLS} | _SHORT | _WIDE
_KEEPING_LINES = {code: text for code, text in _HIDDEN.items() if code != 10}
_IN_JSON = {code: f"\\u{code:04x}" for code in _CONTROLS if code >= 127} | _WIDE


def hides(code: int) -> bool:
    """Return whether a character is written as an escape."""
    return code in _HIDDEN


def visible(text: str) -> str:
    """Return the text with escapes instead of characters that control a terminal, including line feeds."""
    return text.translate(_HIDDEN)


def continued(text: str) -> str:
    """Return a visible text of several lines. A mark before later lines shows that they are no log lines."""
    return visible_lines(text.rstrip("\n")).replace("\n", "\n     | ")


def visible_lines(text: str) -> str:
    """Return a visible text whose line feeds come from the loader itself."""
    return text.translate(_KEEPING_LINES)


def exact_json(data: Any) -> str:
    """Return the data as JSON that any program reads back, and that does not act on a terminal either."""
    return json.dumps(data, ensure_ascii=False).translate(_IN_JSON)
