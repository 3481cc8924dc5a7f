"""What the pages show of a table."""

from __future__ import annotations

from dataclasses import dataclass, field

from loader import pipeline
from loader.initial_load.load_states import LoadState
from loader.page.reports.source_report import SourceReport
from loader.staging.notes.quarantine import Quarantine


@dataclass(frozen=True)
class TableReport:
    """The state of a table.

    Attributes:
        name: as `schema.table`.
        state: in a few words.
        rows: of the newest intervals.
        applied: its applied position; empty if it is not in the warehouse, or the position is unknown.
        changed: the newest interval with staged records of the table; None if no newest interval has some.
        statements: DDL of the table in the newest intervals, newest first.
        quarantine: why it is stopped.
        postponed: why it is left behind on purpose.
        load: its initial load that is not in the warehouse yet.
        skips: the transactions in which operators skipped its rows.
    """

    name: str
    state: str
    rows: pipeline.TableActivity
    applied: str = ""
    changed: pipeline.IntervalActivity | None = None
    statements: tuple[pipeline.Statement, ...] = ()
    quarantine: Quarantine | None = None
    postponed: pipeline.PostponedState | None = None
    load: LoadState | None = None
    skips: tuple[pipeline.SkipState, ...] = ()


@dataclass
class _Activity:
    """What the newest intervals did, by table."""

    rows: dict[str, pipeline.TableActivity] = field(default_factory=dict)
    changed: dict[str, pipeline.IntervalActivity] = field(default_factory=dict)
    statements: dict[str, list[pipeline.Statement]] = field(default_factory=dict)

    def add(self, interval: pipeline.IntervalActivity) -> None:
        for one in interval.tables:
            known = self.rows.get(one.table, pipeline.TableActivity(table=one.table))
            self.rows[one.table] = known.plus(one.inserts, one.updates, one.deletes)
            self.changed[one.table] = interval
        for statement in interval.statements:
            for table in statement.tables:
                self.statements.setdefault(table, []).append(statement)


def table_reports(report: SourceReport) -> list[TableReport]:
    """Return the tables of a source by name, including tables that the warehouse lacks."""
    status = report.status
    if status is None:
        return []
    activity = _Activity()
    for interval in report.intervals:
        activity.add(interval)
    applied = {one.table: one for one in status.tables}
    stopped = {one.table: one for one in status.quarantined}
    postponed = {one.table: one for one in status.postponed}
    loads = {one.table: one for one in status.loads}
    released = set(status.released)
    found = []
    for name in sorted({*applied, *stopped, *postponed, *loads, *released, *activity.rows}):
        quarantine, load, later = stopped.get(name), loads.get(name), postponed.get(name)
        current = status.applied if name in applied and name not in released else ""
        found.append(
            TableReport(
                name=name,
                state=later.state if later else _state(quarantine, name in released, applied.get(name), load),
                rows=activity.rows.get(name, pipeline.TableActivity(table=name)),
                applied=later.applied if later else quarantine.applied if quarantine else current,
                changed=activity.changed.get(name),
                statements=tuple(activity.statements.get(name, ())[::-1]),
                quarantine=quarantine,
                postponed=later,
                load=load,
                skips=tuple(one for one in status.skips if name in (*one.tables, *one.names)),
            )
        )
    return found


def _state(
    quarantine: Quarantine | None, released: bool, table: pipeline.TableState | None, load: LoadState | None
) -> str:
    if quarantine:
        return "quarantined"
    if released:
        return "released, not merged yet"
    if table:
        return table.words
    if load:
        return "staged, not in the warehouse" if load.finished else "being read"
    return "not in the warehouse"
