"""Text from elsewhere (names, values, statements, words of a server) on terminals and in logs.

Characters that would move the cursor, begin a new line, or show text in another order are written as escapes. All text
for people passes here; JSON keeps every value exact, as it has escapes of its own.
"""

from __future__ import annotations

import json
from typing import Any

_SHORT = {9: "\\t", 10: "\\n", 13: "\\r"}
_CONTROLS = (*range(32), 127, *range(128, 160))
_ORDERING = (0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
"""Line and paragraph separators, and the bidirectional controls of Unicode (UAX 9)."""
_HALVES = range(0xD800, 0xE000)
"""Surrogates, which no terminal is sent."""

_WIDE = {code: f"\\u{code:04x}" for code in (*_ORDERING, *_HALVES)}
_HIDDEN = {code: f"\\x{code:02x}" for code in _CONTROLS} | _SHORT | _WIDE
_KEEPING_LINES = {code: text for code, text in _HIDDEN.items() if code != 10}
_IN_JSON = {code: f"\\u{code:04x}" for code in _CONTROLS if code >= 127} | _WIDE


def visible(text: str) -> str:
    """Return the text with escapes in place of characters that act on a terminal, line feeds among them."""
    return text.translate(_HIDDEN)


def continued(text: str) -> str:
    """Return the same of a text of several lines, each but the first behind a mark that no line of ours begins with."""
    return visible_lines(text.rstrip("\n")).replace("\n", "\n     | ")


def visible_lines(text: str) -> str:
    """Return the same of a text whose lines are of the loader's own making."""
    return text.translate(_KEEPING_LINES)


def exact_json(data: Any) -> str:
    """Return the data as JSON that any program reads back, and that does not act on a terminal either."""
    return json.dumps(data, ensure_ascii=False).translate(_IN_JSON)
