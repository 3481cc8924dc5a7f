"""The columns of a warehouse table: source columns, text columns for misfits, and the loader's own columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from loader.errors import UnsupportedError
from loader.materialise.plan.column_names import column_name
from loader.materialise.plan.frame_columns import key_places, places
from loader.materialise.rules import TableRule
from loader.model.table import TableSchema
from loader.types.warehouse import spark_type

IS_DELETED = "_op = 'D'"
"""The value of the column that marks deleted rows, in SQL over the frames of `collapse`."""

_META = {
    "seqno_column": ("bigint", "_seqno"),
    "committed_at_column": ("timestamp", "_committed_at"),
    "deleted_column": ("boolean", IS_DELETED),
    "op_column": ("string", "_op"),
    "row_offset_column": ("bigint", "_row_offset"),
}
"""By rule field, the type of a loader column and its value in SQL over the frames of `collapse`."""


class TableColumn(NamedTuple):
    """A column: its name, its Spark type, and its value in SQL over the columns of `collapse.casts.row_columns`."""

    name: str
    type: str
    value: str


@dataclass(frozen=True)
class Layout:
    """The columns of the warehouse table for a schema and a rule.

    Attributes:
        aliases: by source column, its name in the table during a merge. Without an alias a column has its
            final name, see `column_names`.
    """

    schema: TableSchema
    rule: TableRule
    aliases: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[TableColumn, ...]:
        """All columns, in table order."""
        meta = (TableColumn(name, *_META[field]) for field, name in self.rule.meta.items() if name)
        return (*self.image, *meta)

    @property
    def image(self) -> tuple[TableColumn, ...]:
        """The columns that describe the source row: all columns except the loader's own."""
        table = self.schema.name
        found = [
            TableColumn(self.name(column.name), spark_type(column, table), place)
            for place, column in zip(places(self.schema), self.schema.columns, strict=True)
        ]
        return (*found, *(TableColumn(name, "string", f"text_{place}") for place, name in self.text_columns.items()))

    def has_columns_of(self, other: Layout) -> bool:
        """Return whether the table has the same columns in both layouts, from the same schema."""
        return (self.columns, self.schema) == (other.columns, other.schema)

    def name(self, column: str) -> str:
        """Return the name of a source column in the table."""
        return self.aliases.get(column) or column_name(column, self.rule)

    @property
    def key(self) -> tuple[str, ...]:
        """The names of the key columns in the table."""
        return tuple(map(self.name, self.schema.key))

    @property
    def replacement(self) -> str:
        """How a person replaces all rows of the table. A load adds rows to a history."""
        load = self.schema.name.load_again
        return f"drop it in the warehouse, then: {load}" if self.rule.mode == "history" else load

    @property
    def lenient_columns(self) -> dict[str, str]:
        """Columns that may hold misfits, by frame name. There are none with `on_misfit = "error"`, and none in the key.

        These are date and time columns, since a server can store invalid dates such as `0000-00-00`. A number that
        does not fit its column's type is damage.
        """
        if self.rule.on_misfit == "error":
            return {}
        key = key_places(self.schema)
        named = zip(places(self.schema), self.schema.columns, strict=True)
        may = {"date", "timestamp", "timestamp_ntz"}
        return {place: column.name for place, column in named if place not in key and spark_type(column) in may}

    @property
    def text_columns(self) -> dict[str, str]:
        """Names of the text columns for misfits, by the frame name of the column that the values do not fit."""
        return (
            {place: f"{self.name(name)}__text" for place, name in self.lenient_columns.items()}
            if self.rule.on_misfit == "text"
            else {}
        )

    @property
    def values(self) -> dict[str, str]:
        """The values in SQL by column name."""
        return {column.name: column.value for column in self.columns}

    def check(self) -> None:
        """Verify that the warehouse can hold a table with these columns.

        Raises:
            UnsupportedError: two columns have the same name, or the rule needs a key.
        """
        own = {name.lower() for name in self.text_columns.values()}
        for column in self.schema.columns:
            if self.name(column.name).lower() in own:
                raise UnsupportedError(
                    "the column has the name that another column needs for its invalid dates",
                    hint='give the table a rule with on_misfit = "null", or rename the column; or '
                    f"{self.schema.name.exclusion}",
                    table=self.schema.name,
                    column=column.name,
                )
        if not self.schema.key and self.rule.mode == "soft_delete":
            raise UnsupportedError(
                "a table without a key cannot have mode soft_delete",
                hint='give it a primary key, or a rule with mode = "mirror" or mode = "history"',
                table=self.schema.name,
            )
