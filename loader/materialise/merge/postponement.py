"""Tables that a run leaves behind on purpose: paused tables, tables that need their rows, and tables that are not due.

Pure: it imports no pyspark, so that a quiet interval is published without Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from loader.materialise.merge.cadence import cadence_note, is_due, next_due
from loader.materialise.merge.published_record import complete_seqno
from loader.materialise.merge.table_results import WaitingForTable
from loader.materialise.rules import TableRule, rule_of
from loader.materialise.spec import TableResult
from loader.model.table import TableName
from loader.staging.notes.pauses import Pause
from loader.staging.published import PostponedTable, Published

if TYPE_CHECKING:
    from loader.materialise.iceberg.table_metadata import Applied  # which imports pyspark


@dataclass(frozen=True)
class Postponement:
    """The postponed tables of a source when a run begins.

    A pause takes effect with the next run: a run that has begun finishes what it began.

    Attributes:
        pauses: by paused table.
        record: the newest published record.
        rules: of the tables.
        now: the time by which tables are due, in UTC; None if all tables are due.
    """

    pauses: Mapping[TableName, Pause]
    record: Published | None
    rules: Sequence[TableRule] = ()
    now: datetime | None = None

    def find(self, table: TableName, applied: Applied | None) -> TableResult | None:
        """Return the result of a postponed table; None if the table may be merged.

        Args:
            table: the table.
            applied: its applied position; None if it has none, or if it is unknown.
        """
        if table in self.pauses:
            return self._result("paused", table, applied, note=self.pauses[table].note)
        waits_for = self._awaited(str(table))
        noted = self.record.postponed[str(table)] if self.record and waits_for else None
        if noted is None or (noted.snapshot, noted.applied) != (_snapshot(applied), _seqno(applied)):
            return None  # it may be merged, or it was loaded again
        return self._waiting(table, applied, waits_for)

    def find_not_due(self, table: TableName, applied: Applied | None, committed: datetime | None) -> TableResult | None:
        """Return the result of a table that is not due if it has changes; None if it is due.

        Args:
            table: the table.
            applied: its applied position.
            committed: the time of the commit with the applied position.
        """
        rule = rule_of(self.rules, table)
        if self.now is None or rule.period is None or committed is None:
            return None
        due = next_due(committed, rule.period)
        if is_due(due, rule.period, self.now):
            return None
        found = self._result("not_due", table, applied, note=cadence_note(rule.every, due))
        return found.model_copy(update={"due": due})

    def is_behind(self, table: TableName) -> bool:
        """Return whether the record lists a table as behind. Then the log has changes of the table."""
        return self.record is not None and str(table) in self.record.behind

    def waiting(self) -> dict[str, str]:
        """Return the tables that wait for a postponed table by the record, and the table that each waits for."""
        names = self.record.postponed if self.record else ()
        return {
            name: other for name in names if TableName.parse(name) not in self.pauses and (other := self._awaited(name))
        }

    def of_record(self) -> list[TableResult] | None:
        """Return the results of the postponed tables of the record; None if a table must be looked at by a run.

        That is a table that was paused since, resumed since, need not wait any more, or is due.
        """
        record = self.record
        if record is None or any(str(table) in record.tables for table in self.pauses):
            return None
        results = []
        for name, noted in record.postponed.items():
            pause, waits_for = self.pauses.get(TableName.parse(name)), self._awaited(name)
            note = pause.note if pause else waiting_note(waits_for) if waits_for else self._cadence_note(name, noted)
            if not note:
                return None
            results.append(
                TableResult(
                    table=name,
                    status="paused" if pause else "waiting" if waits_for else "not_due",
                    applied_seqno=noted.applied or None,
                    position=noted.position,
                    snapshot=noted.snapshot,
                    complete_through=record.behind[name],
                    waits_for="" if pause else waits_for,
                    due=None if pause or waits_for else noted.due,
                    note=note,
                )
            )
        return results

    def postpone_waiting(
        self, results: Sequence[TableResult], applied: Mapping[str, Applied | None]
    ) -> list[TableResult]:
        """Return the results, in which tables that wait for a postponed table are postponed and not failed.

        Args:
            results: of all tables.
            applied: the present applied positions of the tables that wait.
        """
        found = {result.table: result for result in results}
        while blocked := [one for one in found.values() if self._is_blocked(one, found)]:
            for one in blocked:
                found[one.table] = self._waiting(TableName.parse(one.table), applied[one.table], awaited_table(one))
        return list(found.values())

    def _is_blocked(self, result: TableResult, results: Mapping[str, TableResult]) -> bool:
        other = results.get(awaited_table(result)) if is_waiting(result) else None
        return other is not None and other.postponed

    def _awaited(self, name: str) -> str:
        """Return the table for which a table waits by the record, if that is still paused or waiting; else empty."""
        noted = self.record.postponed.get(name) if self.record else None
        seen = {name}
        first = at = noted.waits_for if noted else ""
        while at and at not in seen:
            if TableName.parse(at) in self.pauses:
                return first
            seen.add(at)
            noted = self.record.postponed.get(at) if self.record else None
            at = noted.waits_for if noted else ""
        return ""

    def _cadence_note(self, name: str, noted: PostponedTable) -> str:
        """Return why a table of the record is not due; empty if it is due."""
        rule = rule_of(self.rules, TableName.parse(name))
        if noted.due is None or rule.period is None or self.now is None or is_due(noted.due, rule.period, self.now):
            return ""
        return cadence_note(rule.every, noted.due)

    def _waiting(self, table: TableName, applied: Applied | None, waits_for: str) -> TableResult:
        return self._result("waiting", table, applied, note=waiting_note(waits_for), waits_for=waits_for)

    def _result(
        self,
        status: Literal["paused", "waiting", "not_due"],
        table: TableName,
        applied: Applied | None,
        *,
        note: str,
        waits_for: str = "",
    ) -> TableResult:
        # Without an applied position, nothing is known to be in the warehouse, so purges keep all files of the table.
        return TableResult(
            table=str(table),
            status=status,
            applied_seqno=applied.seqno if applied else None,
            position=applied.position if applied else "",
            snapshot=applied.snapshot if applied else None,
            complete_through=complete_seqno(self.record, table, applied) if applied else 0,
            waits_for=waits_for,
            note=note,
        )


def is_waiting(result: TableResult) -> bool:
    """Return whether a table failed because it needs another table to be merged further."""
    return result.error is not None and result.error["error"] == WaitingForTable.__name__


def awaited_table(result: TableResult) -> str:
    """Return the table that the error of a waiting table names; empty for other results."""
    return str(result.error["where"].get("table", "")) if result.error else ""


def waiting_note(waits_for: str) -> str:
    """Return why a table waits, for people."""
    return f"waits for {waits_for}, whose rows it takes"


def _snapshot(applied: Applied | None) -> int | None:
    return applied.snapshot if applied else None


def _seqno(applied: Applied | None) -> int:
    return applied.seqno if applied else 0
