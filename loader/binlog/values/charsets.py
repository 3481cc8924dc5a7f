"""Character sets by the collation ids in the log (from the servers' `information_schema.COLLATIONS`)."""

from __future__ import annotations

_IDS = {
    "armscii8": "32 64", "ascii": "11 65", "big5": "1 84", "binary": "63", "cp1250": "26 34 44 66 99",
    "cp1251": "14 23 50-52", "cp1256": "57 67", "cp1257": "29 58-59", "cp850": "4 80", "cp852": "40 81",
    "cp866": "36 68", "cp932": "95-96", "dec8": "3 69", "eucjpms": "97-98", "euckr": "19 85", "gb18030": "248-250",
    "gb2312": "24 86", "gbk": "28 87", "geostd8": "92-93", "greek": "25 70", "hebrew": "16 71", "hp8": "6 72",
    "keybcs2": "37 73", "koi8r": "7 74", "koi8u": "22 75", "latin1": "5 8 15 31 47-49 94", "latin2": "2 9 21 27 77",
    "latin5": "30 78", "latin7": "20 41-42 79", "macce": "38 43", "macroman": "39 53", "sjis": "13 88",
    "swe7": "10 82", "tis620": "18 89", "ucs2": "35 90 128-159 640-642", "ujis": "12 91",
    "utf16": "54-55 101-124 672-674", "utf16le": "56 62", "utf32": "60-61 160-183 736-738",
    "utf8mb3": "33 76 83 192-215 223 576-579", "utf8mb4": "45-46 224-247 255-323 608-611",
}  # fmt: skip
_MARIADB_IDS = {
    "utf8mb3": "2048-2303", "utf8mb4": "2304-2559", "ucs2": "2560-2815", "utf16": "2816-3071", "utf32": "3072-3327",
}  # fmt: skip
"""Id blocks of MariaDB's collations for Unicode 14."""

_MARIADB_NO_PAD = 1024


def _by_id() -> dict[int, str]:
    found = {}
    for ids in (_IDS, _MARIADB_IDS):
        for charset, ranges in ids.items():
            for one in ranges.split():
                first, _, last = one.partition("-")
                found.update(dict.fromkeys(range(int(first), int(last or first) + 1), charset))
    return found


_CHARSETS = _by_id()


def charset_of(collation: int) -> str:
    """Return the character set of a collation id, such as `utf8mb4`; `collation 999` for an unknown id."""
    known = _CHARSETS.get(collation)
    if known is None and collation < 2 * _MARIADB_NO_PAD:
        known = _CHARSETS.get(collation - _MARIADB_NO_PAD)
    return known or f"collation {collation}"
