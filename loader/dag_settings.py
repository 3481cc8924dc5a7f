"""Settings of the DAGs of a source. This module is light: DAG files import it, and so do commands without Airflow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from loader.secret import names_secret

_PRESETS = "hourly|daily|weekly|monthly|quarterly|yearly|continuous"
_SCHEDULE = re.compile(rf"|[1-9]\d{{0,4}}[mhd]|@({_PRESETS})|asset:\S.*")
_CRON_FIELD, _CRON_VALUE = re.compile(r"[\w*/,#?-]+"), re.compile(r"(?<![/#\w])\d+")
_CRON_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
"""Of the fields of a cron expression: minute, hour, day, month, day of the week."""
_CLASS = re.compile(r"|[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
_NOT_IN_KEYS = re.compile(r"[^A-Za-z0-9_.-]")


def _schedule(value: str) -> str:
    if not _SCHEDULE.fullmatch(value) and not _is_cron(value):
        raise ValueError(
            "write an interval (5m, 2h, 1d), a cron expression, @daily or another preset,"
            " asset:NAME, or nothing for runs that people trigger"
        )
    return value


def _is_cron(value: str) -> bool:
    """Return whether a text is a cron expression with possible values. Another one would stop all DAGs of the file."""
    fields = value.split(" ")
    return len(fields) == len(_CRON_RANGES) and all(
        _CRON_FIELD.fullmatch(field) and all(low <= int(found) <= high for found in _CRON_VALUE.findall(field))
        for field, (low, high) in zip(fields, _CRON_RANGES, strict=True)
    )


def _class(value: str) -> str:
    if not _CLASS.fullmatch(value):
        raise ValueError("write the dotted name of a class: airflow.providers.smtp.notifications.smtp.SmtpNotifier")
    return value


_Schedule = Annotated[str, AfterValidator(_schedule)]
_Hours = Annotated[float, Field(gt=0, le=24 * 365, allow_inf_nan=False)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Schedules(_Section):
    """When Airflow starts runs of a DAG: an interval, a cron expression, a preset or `asset:NAME`; empty for never."""

    delta: _Schedule = "5m"
    maintain: _Schedule = "@daily"
    check: _Schedule = ""


class TimeLimits(_Section):
    """Hours after which a task of a DAG fails. A retry then continues."""

    delta: _Hours = 2
    initial_load: _Hours = 48
    replay: _Hours = 48
    repair: _Hours = 48
    maintain: _Hours = 12
    check: _Hours = 2


class NotifierSettings(_Section):
    """A notifier of Airflow. Tasks call it after their last failed try, and for events such as quarantined tables.

    Attributes:
        type: dotted name of its class; empty for none.
        arguments: of the class. Texts may be templates: `{{ event }}` is the text of the event.
    """

    type: Annotated[str, AfterValidator(_class)] = ""
    arguments: dict[str, Any] = {}

    @model_validator(mode="after")
    def _no_secrets(self) -> NotifierSettings:
        if secrets := sorted(filter(names_secret, _keys(self.arguments))):
            raise ValueError(f"arguments have secrets: {', '.join(secrets)}; name a connection of Airflow instead")
        return self

    @model_validator(mode="after")
    def _arguments_of_a_class(self) -> NotifierSettings:
        if self.arguments and not self.type:
            raise ValueError("arguments need a type: the dotted name of the notifier's class")
        return self


def _keys(value: object) -> Iterator[str]:
    """Yield the keys of a value of TOML, however deep they are."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield key
            yield from _keys(one)
    elif isinstance(value, list):
        for one in value:
            yield from _keys(one)


class DagSettings(_Section):
    """How Airflow runs the DAGs of a source.

    Attributes:
        owner: of the tasks.
        tags: of the DAGs, next to those of the loader.
        retries: of a task whose error a retry can fix.
        pool: of the tasks that can start Spark; empty for a pool of the source. All other tasks run in
            Airflow's `default_pool`, even if they read the source for a short time.
        load_pool: of the task that reads tables for an initial load; empty for `pool`, or else another pool of the
            source.
        queue: of the tasks, for executors with queues; empty for the default of Airflow.
        executor: of the tasks, if Airflow has several; empty for its first one.
        pause_on_failure: whether a DAG pauses itself after a failed run, until a person unpauses it.
        max_lag_minutes: notify if the oldest change that is not applied is older after a delta; 0 for never.
    """

    owner: Annotated[str, Field(min_length=1)] = "data-platform"
    tags: tuple[str, ...] = ()
    schedule: Schedules = Schedules()
    timeout_hours: TimeLimits = TimeLimits()
    retries: Annotated[int, Field(ge=0)] = 5
    pool: str = ""
    load_pool: str = ""
    queue: str = ""
    executor: str = ""
    pause_on_failure: bool = False
    max_lag_minutes: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0
    notifier: NotifierSettings = NotifierSettings()

    @model_validator(mode="after")
    def _lag_is_notified(self) -> DagSettings:
        if self.max_lag_minutes and not self.notifier.type:
            raise ValueError("max_lag_minutes needs notifier.type: only a notifier tells about the lag")
        return self


def dag_key(source: str) -> str:
    """Return a source's name for ids of DAGs. Characters that Airflow refuses become `-HEX-`, such as `-20-`."""
    return _NOT_IN_KEYS.sub(lambda match: f"-{ord(match[0]):x}-", source)


def pool_of(source: str, settings: DagSettings) -> str:
    """Return the pool of a source: the configured one, else one with the name of the source.

    A pool that sources share lets a slow source delay the others.
    """
    return settings.pool or f"{dag_key(source)}.spark"


def load_pool_of(source: str, settings: DagSettings) -> str:
    """Return the pool of the task that reads tables of a source. It is another one, so that deltas go on meanwhile."""
    return settings.load_pool or settings.pool or f"{dag_key(source)}.load"
