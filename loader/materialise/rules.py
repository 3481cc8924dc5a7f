"""What a table of the warehouse is to be: a mirror, one that keeps deleted rows, or a history; and its own columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, model_validator

from loader.errors import UsageError
from loader.model.table import TableName
from loader.staging.filters import matches

RESERVED = frozenset(
    {"_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number"}
)
"""Names that Iceberg gives to columns of its own (its specification, "Reserved Field IDs")."""

_PREFIX = "loader."
_META = ("seqno_column", "committed_at_column", "deleted_column", "op_column", "row_offset_column")

_NEEDED = {
    "soft_delete": ("deleted_column",),
    "history": ("seqno_column", "op_column", "row_offset_column"),
}


class TableRule(BaseModel):
    """What becomes of the rows of some tables.

    Attributes:
        tables: patterns over `schema.table`, as those of the captured tables.
        mode: `mirror`: the rows that the source has. `soft_delete`: those it had too, marked. `history`: every change.
        on_misfit: of a value that its warehouse column cannot hold, `error` stops the table, `null` makes it NULL, and
            `text` keeps its text in a column `<name>__text` besides.
        on_drop: of a column that the source has no more, `drop` takes it away, and `keep` leaves it, with NULL in rows
            that change after that. When a column of its name comes, it becomes
            `<name>__dropped`.
        seqno_column, committed_at_column: names of the columns with seqno and commit time of the transaction that a
            row comes from; empty: there is none. A history has a seqno.
        deleted_column: of `soft_delete`.
        op_column, row_offset_column: of `history`: `I`, `U` or `D`, and what orders the changes of one transaction.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tables: tuple[str, ...] = ()
    mode: Literal["mirror", "soft_delete", "history"] = "mirror"
    on_misfit: Literal["error", "null", "text"] = "error"
    on_drop: Literal["drop", "keep"] = "drop"
    seqno_column: str = "_seqno"
    committed_at_column: str = "_committed_at"
    deleted_column: str = "_is_deleted"
    op_column: str = "_op"
    row_offset_column: str = "_row_offset"

    @model_validator(mode="after")
    def _columns_can_be(self) -> TableRule:
        for field in _NEEDED.get(self.mode, ()):
            if not getattr(self, field):
                raise ValueError(f"{self.mode} needs a name for {field}")
        names = [name.lower() for name in self.meta.values() if name]
        if len(set(names)) < len(names):
            raise ValueError("two of the loader's columns have the same name")
        if taken := RESERVED.intersection(names):
            raise ValueError(f"Iceberg has a column {min(taken)} of its own")
        return self

    @property
    def meta(self) -> dict[str, str]:
        """The columns beside the source's that the mode has, by field; an empty name: left out."""
        used = {"mirror": _META[:2], "soft_delete": _META[:3], "history": (*_META[:2], *_META[3:])}[self.mode]
        return {field: getattr(self, field) for field in used}

    @property
    def properties(self) -> dict[str, str]:
        """What is recorded in the table's properties, since it cannot be changed once the table is there."""
        texts = str(self.on_misfit == "text").lower()
        shape = {"mode": self.mode, **self.meta, "text_columns": texts}
        return {_PREFIX + name: value for name, value in shape.items()}


DEFAULT = TableRule()


def rule_of(rules: Iterable[TableRule], table: TableName) -> TableRule:
    """The first rule with a pattern that matches; that of a plain mirror if there is none."""
    return next((rule for rule in rules if matches(table, rule.tables)), DEFAULT)


def check_rule(properties: Mapping[str, str], rule: TableRule, table: TableName) -> None:
    """Refuse to write to a table that was made by another rule; one that records none is a plain mirror.

    Raises:
        UsageError: naming what the table has, and what the configuration says.
    """
    wanted = rule.properties
    made = {name: properties.get(name, DEFAULT.properties.get(name, "")) for name in wanted}
    if properties.get(_PREFIX + "mode", DEFAULT.mode) == rule.mode and made == wanted:
        return
    names = [name for name in wanted if made[name] != wanted[name]]
    raise UsageError(
        "the table was made by another rule than the configuration has for it",
        why="; ".join(f"{name.removeprefix(_PREFIX)} is {made[name]!r}, to be {wanted[name]!r}" for name in names),
        hint=f"take the rule back; or drop the table in the warehouse and: {table.load_again}",
        table=table,
    )
