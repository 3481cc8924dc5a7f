"""Names that the columns of a table have in the warehouse while a merge is at work. Pure.

Readers see a table's columns as they are, whatever a private branch holds. So columns that come get a name of their
own before the merge, and theirs by the commit that publishes it.
"""

from __future__ import annotations

from collections.abc import Sequence

from loader.materialise.plan.timeline import Epoch, match_columns
from loader.model.table import TableSchema
from loader.schema.evolution import ColumnOrigin

ALIAS_PREFIX = "_loader_"
"""Begins the name of a column that is not published yet."""

Aliases = dict[str, str]
"""By column its name in the table."""


def assign_aliases(epochs: Sequence[Epoch], *, new: bool) -> list[Aliases]:
    """The names of each epoch's columns; `new`: the table is made for the last epoch, and has its columns' names."""
    found: list[Aliases] = []
    for number, epoch in enumerate(epochs):
        each = {}
        for column in epoch.schema.columns:
            origin = epoch.origins[column.name]
            if number == 0:
                each[column.name] = column.name
            elif isinstance(origin, ColumnOrigin):
                each[column.name] = found[-1][origin.old]
            else:
                each[column.name] = f"{ALIAS_PREFIX}{number}_{column.name}"
        found.append(each)
    if not new or not found:
        return found
    made = {meanwhile: column for column, meanwhile in found[-1].items()}
    apart = {name for each in found for name in each.values()} - set(made)
    made |= {name: f"{ALIAS_PREFIX}0_{name}" for name in apart if not name.startswith(ALIAS_PREFIX)}
    return [{column: made.get(name, name) for column, name in each.items()} for each in found]


def assign_reload_aliases(old: TableSchema, new: TableSchema) -> Aliases:
    """The names of the columns of a table that is made anew with other columns, of which some may be there already."""
    as_it_is = {column.name: ColumnOrigin(column.name) for column in old.columns}
    epochs = (Epoch(old, as_it_is, 0, 0), Epoch(new, match_columns(old, new), 0, 0))
    return assign_aliases(epochs, new=False)[-1]
