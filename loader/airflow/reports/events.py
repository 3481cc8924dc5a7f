"""Events that people are notified of, each with its cause, what to do, and where to read on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from loader.airflow.actions.command_forms import in_airflow
from loader.airflow.reports.links import status_page
from loader.dag_settings import dag_key
from loader.error_page import ErrorLinks
from loader.errors import LoaderError
from loader.pipeline import SourceLag, Statement
from loader.spark.job import rebuild
from loader.staging.notes.quarantine import Quarantine
from loader.visible_text import continued, visible

Kind = Literal["failure", "quarantine", "schema_change", "lag", "runway", "more"]
_STATEMENT_LENGTH = 500


@dataclass(frozen=True)
class Event:
    """An event of a source. Templates of notifiers get it as `event`. Texts are empty if there is nothing to say.

    Attributes:
        kind: `failure` of a task, `quarantine` of a table, `schema_change`, `lag`, `runway`, or `more` for many others.
        title: the event in one line.
        source: its name.
        table: `schema.table`; several are separated by commas.
        position: in the log.
        cause: why it happened.
        cure: what to do.
        docs: address of the page about it on the documentation site.
        status_page: address of the status page of the table or the source.
    """

    kind: Kind
    title: str
    source: str
    table: str = ""
    position: str = ""
    cause: str = ""
    cure: str = ""
    docs: str = ""
    status_page: str = ""

    def __str__(self) -> str:
        named = {
            "table": self.table,
            "position": self.position,
            "why": self.cause,
            "what to do": self.cure,
            "read on": self.docs,
            "status": self.status_page,
        }
        lines = [f"  {name}: {continued(text)}" for name, text in named.items() if text]
        return "\n".join([visible(self.title), *lines])


@dataclass(frozen=True)
class EventFactory:
    """Makes the events of a source. `links`: to the documentation."""

    source: str
    links: ErrorLinks

    def failure(self, task: str, error: Mapping[str, Any] | None) -> Event:
        """Return the event of a failed task. `error`: in the form of `LoaderError.as_dict()`; None if it is unknown."""
        title = f"{task} failed"
        if error is None:
            cure = "read the log of the task in Airflow"
            return Event(
                "failure", title, self.source, cure=cure, docs=self.links.to("classes"), status_page=self._page()
            )
        known = rebuild(dict(error))
        tables = known.where.get("tables") or known.where.get("table", "")
        return self._of_error("failure", f"{title}: {known.what}", known, tables, known.where.get("position", ""))

    def quarantine(self, found: Quarantine) -> Event:
        """Return the event of a quarantined table."""
        error = rebuild(found.error_with_release())
        position = error.where.get("position") or found.applied
        return self._of_error(
            "quarantine", f"table {found.table} of source {self.source} is quarantined", error, found.table, position
        )

    def schema_change(self, change: Statement) -> Event:
        """Return the event of a statement that tables of the warehouse have now."""
        names = ", ".join(change.tables)
        more = f"... ({len(change.statement):,} characters)" if len(change.statement) > _STATEMENT_LENGTH else ""
        return Event(
            kind="schema_change",
            title=f"the schema of {names} of source {self.source} changed",
            source=self.source,
            table=names,
            position=change.position,
            cause=change.statement[:_STATEMENT_LENGTH] + more,
            cure="nothing, if readers of the tables expect it: the warehouse has the change",
            docs=self.links.page("how-to/schema-changes"),
            status_page=self._page(change.tables),
        )

    def lag(self, lag: SourceLag, seconds: float, limit_minutes: float) -> Event:
        """Return the event of a source that is too far behind its server."""
        return Event(
            kind="lag",
            title=f"source {self.source} is more than {limit_minutes:g} minutes behind its server",
            source=self.source,
            position=lag.applied,
            cause=f"the oldest change that is not applied is {seconds / 60:,.0f} minutes old;"
            f" the limit is {limit_minutes:g} minutes (max_lag_minutes)",
            cure=f"find out what delays the runs of {dag_key(self.source)}.delta: their notes, and loader status",
            docs=self.links.to("lag"),
            status_page=self._page(),
        )

    def runway(self, error: LoaderError, position: str) -> Event:
        """Return the event of a server that will soon purge unread log."""
        return self._of_error("runway", f"source {self.source}: {error.what}", error, "", position)

    def more(self, left_out: Sequence[Event]) -> Event:
        """Return the event that stands for others of the same run."""
        return Event(
            kind="more",
            title=f"{len(left_out):,} more events of source {self.source}",
            source=self.source,
            cause="\n".join(event.title for event in left_out[:_STATEMENT_LENGTH]),
            status_page=self._page(),
        )

    def _of_error(self, kind: Kind, title: str, error: LoaderError, tables: str, position: str) -> Event:
        forms = in_airflow(f"{error.why} {error.hint}", dag_key(self.source))
        return Event(
            kind=kind,
            title=title,
            source=self.source,
            table=tables,
            position=position,
            cause="\n".join(filter(None, (error.what if kind == "quarantine" else "", error.why))),
            cure="\n".join(filter(None, (error.hint, forms))),
            docs=self.links.of(error),
            status_page=self._page([tables] if kind == "quarantine" else ()),
        )

    def _page(self, tables: Sequence[str] = ()) -> str:
        """Return the status page of the only table, or of the source."""
        return status_page(self.source, tables[0] if len(tables) == 1 else "")
