"""Names in lower case, as a server with lower_case_table_names stores them.

Servers fold character by character with the tables of utf8mb3_general_ci, which are older than Python's and know no
context: a capital sigma at the end of a word becomes the same letter as elsewhere. Checked for all characters on MySQL
9.7, MariaDB 10.11 and 11.8. Names have no characters beyond U+FFFF.
"""

from __future__ import annotations

import re

from loader.model.table import TableName

_KEPT = re.compile(
    "[\u0220\u023a-\u037f\u03cf-\u03d8\u03f4-\u03ff\u048a\u04c0\u04c5\u04c9\u04cd\u04f6\u04fa-\u052e"
    "\u10a0-\u1cbf\u1e9e\u1efa-\u1efe\u2132\u2183\u2c00-\ua7ff]"
)
"""Capitals that servers keep are among these characters, and no other capitals."""
_DOTTED_CAPITAL = "\u0130"


def folded_name(name: str) -> str:
    """Return the name of a database or table in lower case."""
    return name.lower() if name.isascii() else "".join(map(_folded_character, name))


def folded_table(name: TableName) -> TableName:
    """Return the name of a table, and of its database, in lower case."""
    return TableName(folded_name(name.schema), folded_name(name.table))


def _folded_character(character: str) -> str:
    if character == _DOTTED_CAPITAL:
        return "i"
    return character if _KEPT.match(character) else character.lower()
