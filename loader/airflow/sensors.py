"""A sensor that waits until the warehouse has a table up to a position or a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator
from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from loader.airflow.reports.errors import reported
from loader.errors import LoaderError, UsageError

if TYPE_CHECKING:
    from airflow.sdk import Context


class TableAtLeastSensor(BaseSensorOperator):
    """Waits until all changes of a table up to a position, or before a time, are in the warehouse.

    Args:
        source: name of the source. (templated)
        table: as `schema.table`. (templated)
        position: such as `binlog.000054:123`. (templated)
        time: ISO 8601, UTC without a zone; for example `{{ data_interval_end }}`. (templated)
        deferrable: wait in the triggerer instead of a worker.
        kwargs: of BaseSensorOperator.
    """

    template_fields: Sequence[str] = ("source", "table", "position", "time")

    def __init__(
        self, *, source: str, table: str, position: str = "", time: str = "", deferrable: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.source = source
        self.table = table
        self.position = position
        self.time = time
        self.deferrable = deferrable

    def execute(self, context: Context) -> None:
        """Wait.

        Raises:
            TaskFailed: the table is quarantined, or the arguments are wrong.
        """
        if self.poke(context):
            return
        if not self.deferrable:
            super().execute(context)
            return
        trigger = TableAtLeastTrigger(
            source=self.source,
            table=self.table,
            position=self.position,
            time=self.time,
            poke_interval=self.poke_interval,
        )
        self.defer(trigger=trigger, method_name="execute_complete", timeout=timedelta(seconds=self.timeout))

    def poke(self, context: Context) -> bool:
        """Return whether the warehouse has the table; False, with a warning, if a server or store does not answer."""
        with reported(context):
            return ask(self.log.warning, source=self.source, table=self.table, position=self.position, time=self.time)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> None:
        """End the task with the error of the trigger, if it has one."""
        from loader.spark.job import rebuild

        with reported(context):
            if event["error"]:
                raise rebuild(event["error"])


class TableAtLeastTrigger(BaseTrigger):
    """Waits in the triggerer; see TableAtLeastSensor. A server or store that does not answer is asked again."""

    def __init__(self, *, source: str, table: str, position: str, time: str, poke_interval: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._goal = {"source": source, "table": table, "position": position, "time": time}
        self._poke_interval = poke_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class and its arguments, for Airflow's database."""
        name = f"{type(self).__module__}.{type(self).__qualname__}"
        return name, {**self._goal, "poke_interval": self._poke_interval}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event: the warehouse has the table, or an error that no waiting can fix."""
        while True:
            try:
                # In a thread of asyncio itself, reading a connection would end the triggerer of Airflow 3.1.
                reached = await sync_to_async(ask, thread_sensitive=False)(self.log.warning, **self._goal)
            except LoaderError as error:
                yield _event(error)
                return
            if reached:
                yield _event(None)
                return
            await asyncio.sleep(self._poke_interval)


def _event(error: LoaderError | None) -> TriggerEvent:
    return TriggerEvent({"error": error.as_dict() if error else None})  # type: ignore[no-untyped-call]


def ask(warn: Callable[[str], object], **goal: str) -> bool:
    """Return `is_reached` of the goal; False, with a warning, if a server or store does not answer.

    Raises:
        LoaderError: no waiting can help.
    """
    try:
        return is_reached(**goal)
    except LoaderError as error:
        if not error.retryable:
            raise
        warn(str(error))
        return False


def is_reached(source: str, table: str, position: str, time: str) -> bool:
    """Return whether the warehouse has a table up to a position, or all that was committed before a time.

    Raises:
        UsageError: not exactly one of position and time is given, or one of them has another form; or the source does
            not capture the table, so that it never gets there.
        DataError: the table is quarantined.
        LoaderError: a server or store does not answer, or refuses the user.
    """
    from loader.airflow.connections import keep_password
    from loader.airflow.sources import settings_of
    from loader.model.table import TableName
    from loader.pipeline import has_position, has_time
    from loader.staging.filters import CapturedTables

    if bool(position) == bool(time):
        raise UsageError("a sensor needs a position or a time", hint="give one of position and time")
    settings, name = settings_of(source), TableName.parse(table)
    if not CapturedTables(settings.tables)(name):
        raise UsageError(
            "the table is not captured, so waiting for it does not help",
            why="tables of the source does not include it, or excludes it",
            hint="correct the table, as schema.table, or the tables of the source",
            source=settings.name,
            table=table,
        )
    if position:
        return has_position(settings, name, position)
    keep_password(settings)  # the triggerer asks for several tables at the same time
    return has_time(settings, name, time)
