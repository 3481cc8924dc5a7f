"""Which tables can be compared with the rows of the source at a position."""

from __future__ import annotations

from loader.errors import UnsupportedError
from loader.initial_load.server.consistent_snapshot import SNAPSHOT_ENGINE
from loader.materialise.rules import TableRule
from loader.model.table import TableName


def check_mode(rule: TableRule, table: TableName) -> None:
    """Check that a table has the rows that the source has.

    Raises:
        UnsupportedError: it has more.
    """
    if rule.mode == "history":
        raise UnsupportedError(
            "a history has every change, so it cannot be compared with the rows of the source",
            hint=f"name the other tables: loader verify --table ...; or compare {table} with the log: loader replay",
            table=table,
        )


def check_engine(engine: str, table: TableName) -> None:
    """Check that a table can be read in a snapshot. Without an engine there is no table.

    Raises:
        UnsupportedError: its engine has no consistent snapshots.
    """
    if engine not in {SNAPSHOT_ENGINE, ""}:
        raise UnsupportedError(
            f"a table of engine {engine} cannot be read as of one position of the log",
            hint=f"ALTER TABLE {table} ENGINE = InnoDB; or name the other tables: loader verify --table ...",
            table=table,
        )
