"""Rules of warehouse tables: mode (mirror, soft_delete or history), handling of misfits, and the loader's columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from loader.errors import UsageError
from loader.model.table import TableName
from loader.staging.filters import matches

RESERVED = frozenset(
    {"_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number"}
)
"""Names of Iceberg's own columns (Iceberg specification, "Reserved Field IDs")."""

_PREFIX = "loader."
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_META = ("seqno_column", "committed_at_column", "deleted_column", "op_column", "row_offset_column")

_NEEDED = {
    "soft_delete": ("deleted_column",),
    "history": ("seqno_column", "op_column", "row_offset_column"),
}


class TableRule(BaseModel):
    """How rows of the matching tables are kept in the warehouse.

    Attributes:
        tables: patterns over `schema.table`, like those of the captured tables.
        mode: `mirror` keeps the rows that the source has. `soft_delete` also keeps deleted rows and marks them.
            `history` keeps every change.
        on_misfit: for a value that its warehouse column cannot hold, `error` stops the table, `null` stores NULL, and
            `text` stores NULL and also keeps the text in a column `<name>__text`.
        on_drop: for a column that the source dropped, `drop` removes it, and `keep` leaves it, with NULL in rows that
            change later. If the source adds a column of the same name, the old one becomes `<name>__dropped`.
        every: the tables are merged once in each period of this length, such as `15m`, `1h` or `1d`; empty for every
            run. Periods begin at whole multiples since 1970-01-01 UTC: hours at minute 0, days at midnight.
        seqno_column, committed_at_column: names of the columns with the seqno and the commit time of a row's
            transaction; empty to leave the column out. A history needs the seqno.
        deleted_column: name of the column that marks deleted rows, for `soft_delete`.
        op_column: name of the column with `I`, `U` or `D`, for `history`.
        row_offset_column: name of the column that orders the changes of a transaction, for `history`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tables: tuple[str, ...] = ()
    mode: Literal["mirror", "soft_delete", "history"] = "mirror"
    on_misfit: Literal["error", "null", "text"] = "error"
    on_drop: Literal["drop", "keep"] = "drop"
    every: Annotated[str, Field(pattern=r"^([1-9]\d{0,5}[mhd])?$")] = ""
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
            raise ValueError(f"Iceberg reserves the column name {min(taken)}")
        return self

    @property
    def period(self) -> timedelta | None:
        """The length of the periods of `every`; None to merge in every run."""
        return timedelta(**{_UNITS[self.every[-1]]: int(self.every[:-1])}) if self.every else None

    @property
    def meta(self) -> dict[str, str]:
        """The names of the loader's columns for the mode, by field. A column with an empty name does not exist."""
        used = {"mirror": _META[:2], "soft_delete": _META[:3], "history": (*_META[:2], *_META[3:])}[self.mode]
        return {field: getattr(self, field) for field in used}

    @property
    def properties(self) -> dict[str, str]:
        """The table properties that record the rule. These settings cannot change once the table exists."""
        texts = str(self.on_misfit == "text").lower()
        shape = {"mode": self.mode, **self.meta, "text_columns": texts}
        return {_PREFIX + name: value for name, value in shape.items()}


DEFAULT = TableRule()


def rule_of(rules: Iterable[TableRule], table: TableName) -> TableRule:
    """Return the first rule with a pattern that matches the table; else a mirror."""
    return next((rule for rule in rules if matches(table, rule.tables)), DEFAULT)


def check_rule(properties: Mapping[str, str], rule: TableRule, table: TableName, *, is_empty: bool = False) -> None:
    """Verify that a table was made with this rule. A table without recorded rule is a mirror.

    Args:
        properties: of the table.
        rule: of the configuration.
        table: the table.
        is_empty: it has no snapshot, since its first merge has failed.

    Raises:
        UsageError: the table was made with another rule.
    """
    wanted = rule.properties
    made = {name: properties.get(name, DEFAULT.properties.get(name, "")) for name in wanted}
    if properties.get(_PREFIX + "mode", DEFAULT.mode) == rule.mode and made == wanted:
        return
    names = [name for name in wanted if made[name] != wanted[name]]
    raise UsageError(
        "the rule of the table was changed after the table was created",
        why="; ".join(
            f"{name.removeprefix(_PREFIX)} of the table is {made[name]!r}, not {wanted[name]!r}" for name in names
        ),
        hint="undo the change of the rule; or drop the table in the warehouse, then: "
        + ("loader run" if is_empty else table.load_again),
        table=table,
    )
