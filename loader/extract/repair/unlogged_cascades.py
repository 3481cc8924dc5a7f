"""Row events with which foreign keys changed rows of captured tables without a log entry.

MySQL 9.6 and later log what foreign keys change, except with row events that lack the flag USE_SQL_FOREIGN_KEY_F. See
loader.source.foreign_keys.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from loader.binlog import walk as w
from loader.binlog.constants import CHANGES
from loader.binlog.table_registry import TableRegistry
from loader.extract.gtids.skipped_transactions import KEPT
from loader.extract.range_result import RangeResult
from loader.extract.repair.incomplete_tables import inside, one_per_table
from loader.extract.windows import Window
from loader.model.table import TableName
from loader.staging.documents import IncompleteTable, Plan
from loader.staging.filters import CapturedTables

_LOGGED = w.SQL_FOREIGN_KEYS | w.NO_FOREIGN_KEY_CHECKS


class UnloggedCascades:
    """Finds the captured tables of a plan that row events changed by foreign keys, without a log entry.

    Attributes:
        parents: the tables whose row events matter.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._children = {} if plan.unlogged_cascades else _children(plan)
        self.parents = tuple(sorted(self._children))

    def note(
        self,
        result: RangeResult,
        window: Window,
        why: w.Ints,
        seqnos: w.Ints,
        byte_range: tuple[int, int],
        registry: TableRegistry,
    ) -> None:
        """Add to a result the tables that the row events of a window in a byte range changed.

        Args:
            result: of the range.
            window: of the range.
            why: for each transaction its skip reason, or KEPT.
            seqnos: for each transaction.
            byte_range: first and end byte.
            registry: of the tables, with `parents` as watched ones.
        """
        if len(rows := self._unlogged(window)):
            rows = rows[slice(*np.searchsorted(rows[:, w.R_EVENT], byte_range).tolist())]
            numbers = rows[:, w.R_TRANSACTION]
            done = window.index.transactions[numbers, w.T_OUTCOME] != w.PREPARED
            self._add(result, rows[done & (why[numbers] == KEPT)], seqnos, registry)

    def note_released(self, result: RangeResult, window: Window, seqnos: w.Ints, registry: TableRegistry) -> None:
        """Add the tables that committed XA transactions changed. `seqnos`: 0 of all other transactions."""
        if len(rows := self._unlogged(window)):
            self._add(result, rows[seqnos[rows[:, w.R_TRANSACTION]] > 0], seqnos, registry)

    def _unlogged(self, window: Window) -> w.Ints:
        """Return the row events of a window with which cascades are not logged, of whatever table."""
        rows = window.index.rows
        if not self._children:
            return rows[:0]
        rows = rows[rows[:, w.R_FLAGS] & _LOGGED == 0]
        found: w.Ints = rows[np.isin(rows[:, w.R_KIND], CHANGES)]
        return found

    def _add(self, result: RangeResult, rows: w.Ints, seqnos: w.Ints, registry: TableRegistry) -> None:
        found = one_per_table([*result.unlogged.values(), *self._changed(result.file, rows, seqnos, registry)])
        result.unlogged = {one.table: one for one in found}

    def _changed(self, file: str, rows: w.Ints, seqnos: w.Ints, registry: TableRegistry) -> Iterator[IncompleteTable]:
        names = registry.watched_numbers()
        for number in np.unique(rows[:, w.R_TABLE]).tolist():
            parent = names.get(number)
            if parent is None:
                continue
            mine = rows[rows[:, w.R_TABLE] == number]
            places = seqnos[mine[:, w.R_TRANSACTION]]
            for child in self._children[parent]:
                yield self._incomplete(child, parent, f"{file}:{mine[0, w.R_EVENT]}", int(places[0]), int(places.max()))

    def _incomplete(self, child: TableName, parent: TableName, place: str, seqno: int, last: int) -> IncompleteTable:
        return IncompleteTable(
            table=str(child),
            seqno=seqno,
            last_seqno=last,
            position=place,
            at=inside(self._plan, seqno),
            what="foreign keys changed rows of the table without a log entry",
            why=f"the row event of {parent} lacks the flag USE_SQL_FOREIGN_KEY_F: the server applied it for a source"
            " that does not log what foreign keys change, or ran with innodb_native_foreign_keys",
            hint="let the server and its source log these rows: MySQL 9.6 or later, without innodb_native_foreign_keys;"
            f" or make the foreign keys RESTRICT, or {child.exclusion}",
        )


def _children(plan: Plan) -> dict[TableName, tuple[TableName, ...]]:
    """Return the captured tables by parent, of this plan and of the previous one."""
    captured, found = CapturedTables(plan.tables), dict[TableName, set[TableName]]()
    for parents in (plan.unlogged.parents, plan.unlogged_before.parents):
        for parent, names in parents.items():
            mine = filter(captured, map(TableName.parse, names))
            found.setdefault(TableName.parse(parent), set()).update(mine)
    return {parent: tuple(sorted(names)) for parent, names in found.items() if names}
