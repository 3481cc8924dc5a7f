"""Names of source columns in the warehouse. Pure.

Iceberg and the loader need some names for columns of their own. A source column with one of these names gets more
leading underscores: `_file` is `__file` in the warehouse. The columns that differ from it only by more leading
underscores shift as well, `__file` to `___file`. So no two columns of a table get the same name.

Spark and MySQL compare the names of columns without case. So does this module.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from loader.materialise.rules import RESERVED, TableRule

ALIAS_PREFIX = "_loader_"
"""The first characters of the name of a column that is not published yet."""


def column_name(column: str, rule: TableRule) -> str:
    """Return the name of a source column in the warehouse.

    The mapping is injective, also without case, and its results are no reserved names. It depends on the column and on
    the names of the loader's columns, which a table keeps as long as it exists. So other columns that come and go do
    not change the name.
    """
    stem = column.lstrip("_")
    depth, folded = len(column) - len(stem), stem.casefold()
    reserved = _reserved_depths(rule).get(folded, ())
    if folded.startswith(ALIAS_PREFIX.lstrip("_")):
        reserved = (*reserved, 1)
    if not reserved or depth < min(reserved):
        return column
    return "_" * (max(reserved) - min(reserved) + 1) + column


@lru_cache(maxsize=64)
def _reserved_depths(rule: TableRule) -> dict[str, tuple[int, ...]]:
    """Return the numbers of leading underscores of the reserved names, by the rest of the name."""
    found: dict[str, tuple[int, ...]] = {}
    for name in _reserved_names(rule):
        stem = name.lstrip("_")
        found[stem] = (*found.get(stem, ()), len(name) - len(stem))
    return found


def _reserved_names(rule: TableRule) -> Iterator[str]:
    yield from RESERVED
    yield from (name.casefold() for name in rule.meta.values() if name)
