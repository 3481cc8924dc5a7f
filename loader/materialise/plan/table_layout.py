"""The columns of a warehouse's table: the source's in their order, texts of values that do not fit, the loader's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from loader.errors import UnsupportedError
from loader.materialise.plan.frame_columns import key_places, places
from loader.materialise.quoting import identifier
from loader.materialise.rules import RESERVED, TableRule
from loader.model.table import TableSchema
from loader.typemap import spark_type

_META = {
    "seqno_column": ("bigint", "_seqno"),
    "committed_at_column": ("timestamp", "_committed_at"),
    "deleted_column": ("boolean", "_op = 'D'"),
    "op_column": ("string", "_op"),
    "row_offset_column": ("bigint", "_row_offset"),
}
"""Type of each of the loader's columns, and its value in SQL from the frames of this package."""


class TableColumn(NamedTuple):
    """A column: its name, its Spark type, and its value in SQL over rows of `loader.materialise.collapse.casts.row`."""

    name: str
    type: str
    value: str


@dataclass(frozen=True)
class Layout:
    """How a table of this schema looks in the warehouse by this rule; `called`: names that columns have meanwhile."""

    schema: TableSchema
    rule: TableRule
    called: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[TableColumn, ...]:
        """All columns, in their order."""
        meta = (TableColumn(name, *_META[field]) for field, name in self.rule.meta.items() if name)
        return (*self.image, *meta)

    @property
    def image(self) -> tuple[TableColumn, ...]:
        """The columns that say what the source's row is: all but the loader's."""
        table = self.schema.name
        found = [
            TableColumn(self.name(column.name), spark_type(column, table), place)
            for place, column in zip(places(self.schema), self.schema.columns, strict=True)
        ]
        return (*found, *(TableColumn(name, "string", f"text_{place}") for place, name in self.texts.items()))

    def name(self, column: str) -> str:
        """What a column of the source is called in the table."""
        return self.called.get(column, column)

    @property
    def key(self) -> tuple[str, ...]:
        """What the key's columns are called in the table."""
        return tuple(map(self.name, self.schema.key))

    @property
    def unfit(self) -> dict[str, str]:
        """Names of columns whose values need not fit, by place; none by a rule of `error`, and never one of the key.

        These are dates and times, of which the server has some that are none. Every number of a column's type fits:
        one that does not is damage.
        """
        if self.rule.on_misfit == "error":
            return {}
        key = key_places(self.schema)
        named = zip(places(self.schema), self.schema.columns, strict=True)
        may = {"date", "timestamp", "timestamp_ntz"}
        return {place: column.name for place, column in named if place not in key and spark_type(column) in may}

    @property
    def texts(self) -> dict[str, str]:
        """Names of the columns for texts that do not fit, by the place of the column that they did not fit."""
        return (
            {place: f"{self.name(name)}__text" for place, name in self.unfit.items()}
            if self.rule.on_misfit == "text"
            else {}
        )

    @property
    def names(self) -> str:
        """The columns' names in SQL."""
        return ", ".join(identifier(column.name) for column in self.columns)

    @property
    def values(self) -> str:
        """The columns' values in SQL."""
        return ", ".join(column.value for column in self.columns)

    def check(self) -> None:
        """Refuse what a table of the warehouse cannot be made for.

        Raises:
            UnsupportedError: naming the table and, where one is to blame, the column.
        """
        own = {column.name.lower() for column in self.columns[len(self.schema.columns) :]} | RESERVED
        for column in self.schema.columns:
            if column.name.lower() in own:
                raise UnsupportedError(
                    "the name of this column is taken by the warehouse",
                    hint="give the loader's column another name by a rule, rename this one, or exclude the table",
                    table=self.schema.name,
                    column=column.name,
                )
        if not self.schema.key and self.rule.mode == "soft_delete":
            raise UnsupportedError(
                "a table without a key cannot keep its deleted rows apart",
                hint="give it a primary key, or a rule with mode mirror or history",
                table=self.schema.name,
            )
