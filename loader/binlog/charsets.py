"""Character sets by the collation ids that the log carries (the server's `information_schema.COLLATIONS`)."""

from __future__ import annotations

_RANGES = {
    "binary": [(63, 63)],
    "latin1": [(5, 5), (8, 8), (15, 15), (31, 31), (47, 49), (94, 94)],
    "ascii": [(11, 11), (65, 65)],
    "utf8mb3": [(33, 33), (76, 76), (83, 83), (192, 215), (223, 223), (576, 578)],
    "utf8mb4": [(45, 46), (224, 247), (255, 323), (608, 610)],
}
_MARIADB_RANGES = {"utf8mb3": [(2048, 2303)], "utf8mb4": [(2304, 2559)]}
_MARIADB_NO_PAD = 1024


def charset_of(collation: int) -> str:
    """`utf8mb4`, ... ; `collation 28` for one that is not covered, so that errors can name it."""
    for name, ranges in _RANGES.items():
        for first, last in ranges:
            if first <= collation <= last or first <= collation - _MARIADB_NO_PAD <= last:
                return name
    for name, ranges in _MARIADB_RANGES.items():
        if any(first <= collation <= last for first, last in ranges):
            return name
    return f"collation {collation}"
