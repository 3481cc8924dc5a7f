"""Names of the columns of a warehouse table while a merge runs. Pure.

Iceberg's columns belong to the table, not to a branch, so readers see every new column at once. A new column therefore
gets an alias before the merge. The commit that publishes the merge gives the column its own name.

A merge that fails leaves its aliases behind. The type is part of an alias, so that the next merge or load finds no
column of another type under it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from loader.materialise.plan.column_names import ALIAS_PREFIX, column_name
from loader.materialise.plan.timeline import Epoch, match_columns
from loader.materialise.rules import TableRule
from loader.model.table import Column, TableSchema
from loader.schema.evolution import ColumnOrigin

Aliases = dict[str, str]
"""By column of the source, its name in the warehouse table during a merge."""


def assign_aliases(epochs: Sequence[Epoch], rule: TableRule, *, new: bool) -> list[Aliases]:
    """Return the aliases of the columns of each epoch.

    Args:
        epochs: the epochs of a table in log order.
        rule: the table's rule.
        new: the merge creates the table with the columns of the last epoch. These then need no aliases.
    """
    found: list[Aliases] = []
    for number, epoch in enumerate(epochs):
        each = {}
        for column in epoch.schema.columns:
            origin = epoch.origins[column.name]
            if number == 0:
                each[column.name] = column_name(column.name, rule)
            elif isinstance(origin, ColumnOrigin):
                each[column.name] = found[-1][origin.old]
            else:
                each[column.name] = _alias(number, column)
        found.append(each)
    if not new or not found:
        return found
    made = {alias: column_name(column, rule) for column, alias in found[-1].items()}
    apart = {name for each in found for name in each.values()} - set(made)
    made |= {name: f"{ALIAS_PREFIX}0_{name}" for name in apart if not name.startswith(ALIAS_PREFIX)}
    return [{column: made.get(name, name) for column, name in each.items()} for each in found]


def assign_reload_aliases(old: TableSchema, new: TableSchema, rule: TableRule) -> Aliases:
    """Return the aliases of the columns of a table that is loaded again with the schema `new` instead of `old`."""
    unchanged = {column.name: ColumnOrigin(column.name) for column in old.columns}
    epochs = (Epoch(old, unchanged, 0, 0), Epoch(new, match_columns(old, new), 0, 0))
    return assign_aliases(epochs, rule, new=False)[-1]


def _alias(number: int, column: Column) -> str:
    """Return the alias of a column that is new in an epoch. The columns of one epoch have different aliases."""
    declared = re.sub(r"\W+", "_", str(replace(column, name="", labels=()))).strip("_")
    return f"{ALIAS_PREFIX}{number}_{declared}__{column.name}"
