"""The runway: how long the server still keeps a log file that must be read.

Both servers purge whole files when they start a new file: files whose last write is too old (MySQL manual,
binlog_expire_logs_seconds) or, on MariaDB and Percona, the oldest files beyond a total size (MDEV-31404). The last
write of a file is as old as the first event of the next file. The current file is never purged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict
from pymysql.connections import Connection

from loader.binlog.constants import MAGIC
from loader.errors import LoaderError
from loader.resources import sql
from loader.source.server_facts import query
from loader.transport.base import Transport
from loader.transport.server.connection import log_sizes

_HOUR = 3600
_DAY = 24 * _HOUR
_FEWEST_SECONDS = _HOUR  # the shortest time to measure a rate over
_TIME_BYTES = 4  # an event begins with its time
_MOST_FILES = 5  # the most files to measure a rate over


class RunwayTooShort(LoaderError):
    """The server will purge a needed log file within less time than the configured limit."""


@dataclass(frozen=True)
class PurgeRules:
    """When the server purges: by age in seconds or by total size in bytes (0: never), and the maximum size of a file.

    `replicas`: MariaDB purges only while this many replicas are connected; a dump of the loader counts as one.
    """

    expire_seconds: float
    total_bytes: int
    file_bytes: int
    replicas: int = 0

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> PurgeRules:
        """Return the rules from the server's variables. Seconds override days."""
        seconds = float(variables.get("binlog_expire_logs_seconds", 0))
        expire = seconds or float(variables.get("expire_logs_days", 0)) * _DAY
        if variables.get("binlog_expire_logs_auto_purge") == "OFF":
            expire = 0
        return cls(
            expire_seconds=expire,
            total_bytes=int(variables.get("max_binlog_total_size", 0)) or int(variables.get("binlog_space_limit", 0)),
            file_bytes=int(variables.get("max_binlog_size", 0)),
            replicas=int(variables.get("slave_connections_needed_for_purge", 0)),
        )


class Runway(BaseModel):
    """Return the hours until a log file may be purged at the earliest, and the rule; None for never.

    `gone`: the server no longer has the file, so 0 hours are left.
    """

    model_config = ConfigDict(frozen=True)

    file: str
    hours: float | None
    rule: Literal["age", "size", "none", "gone"]

    def __str__(self) -> str:
        if self.rule == "gone":
            return f"{self.file} is already purged"
        if self.hours is None:
            return f"{self.file} is kept forever"
        why = "its age" if self.rule == "age" else "the size of all logs at the current rate"
        return f"{self.file} is kept for another {self.hours:,.1f} hours, limited by {why}"


def runway(rules: PurgeRules, file: str, sizes: Mapping[str, int], *, ended: int, rate: float, now: int) -> Runway:
    """Compute the runway of a file without asking the server.

    Args:
        rules: of the server.
        file: the file that is still needed.
        sizes: sizes of the server's files in bytes, oldest first.
        ended: when the server switched to the next file, in seconds since 1970; now for the current file.
        rate: current bytes of log per second.
        now: the server's time, in seconds since 1970.
    """
    if file not in sizes:
        return Runway(file=file, hours=0, rule="gone")
    found: list[tuple[float, Literal["age", "size"]]] = []
    if rules.expire_seconds:
        found.append((ended + rules.expire_seconds - now, "age"))
    if rules.total_bytes and rate > 0:
        newer = sum(list(sizes.values())[list(sizes).index(file) :])
        left = rules.total_bytes - newer
        if file == list(sizes)[-1]:
            left = max(left, rules.file_bytes - newer)
        found.append((left / rate, "size"))
    if not found:
        return Runway(file=file, hours=None, rule="none")
    seconds, rule = min(found)
    return Runway(file=file, hours=max(0.0, seconds) / _HOUR, rule=rule)


def read_rules(connection: Connection[Any]) -> PurgeRules:
    """Return the purge rules of the server."""
    return PurgeRules.of({str(name): str(value) for name, value in query(connection, sql("source/retention"))})


def read_runway(connection: Connection[Any], transport: Transport, file: str) -> Runway:
    """Return the runway of a file. The ages of files are read from their first events.

    Raises:
        LoaderError: from the transport; a file may be purged in the meantime.
    """
    rules, sizes = read_rules(connection), log_sizes(connection)
    now = int(query(connection, "SELECT UNIX_TIMESTAMP()")[0][0])
    names = list(sizes)
    following = names[names.index(file) + 1 :] if file in sizes else []
    return runway(
        rules,
        file,
        sizes,
        ended=read_start_time(transport, following[0]) if following and rules.expire_seconds else now,
        rate=_rate(transport, sizes, now) if rules.total_bytes else 0.0,
        now=now,
    )


def read_start_time(transport: Transport, file: str) -> int:
    """Return when a log file was started, in seconds since 1970: the time of its first event."""
    return read_event_time(transport, file, len(MAGIC))


def read_event_time(transport: Transport, file: str, offset: int) -> int:
    """Return the time of the event at an offset of a log file, in seconds since 1970; 0 at the end of the file."""
    with transport.open(file, offset, offset + _TIME_BYTES) as log:
        log.seek(offset)
        return int.from_bytes(log.read(_TIME_BYTES) or b"", "little")


def _rate(transport: Transport, sizes: Mapping[str, int], now: int) -> float:
    """Return bytes of log per second, over the newest files that cover an hour, or over a few files that cover less."""
    written, first = 0, now
    for file in list(sizes)[: -_MOST_FILES - 1 : -1]:
        written, first = written + sizes[file], read_start_time(transport, file)
        if now - first >= _FEWEST_SECONDS:
            break
    return written / max(1, now - first)


def check_runway(found: Runway, limit_hours: float) -> None:
    """Check that the runway is not below the limit; a limit of 0 disables the check.

    A purged file is not reported here, because an archive may have it.

    Raises:
        RunwayTooShort: fewer hours are left.
    """
    if found.rule != "gone" and found.hours is not None and found.hours < limit_hours:
        raise RunwayTooShort(
            f"the server will purge a log file that is still needed in {found.hours:.1f} hours",
            why=f"{found}; the limit is {limit_hours:g} hours",
            hint="raise binlog_expire_logs_seconds on the server now (MariaDB: or max_binlog_total_size), then find out"
            " what delays the loader: loader status; for a server that keeps less by design, lower min_runway_hours",
            file=found.file,
        )
