"""How long the server keeps a log file yet: the runway of whoever still has to read it.

Both servers purge whole files, when they start another one: by the age of a file's last write (MySQL manual,
binlog_expire_logs_seconds) or, MariaDB and Percona, the oldest ones beyond a total size (MDEV-31404). A file's last
write is as old as the first event of the file after it. The current file is never purged.
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
_FEWEST_SECONDS = _HOUR  # that a rate is measured over
_MOST_FILES = 5  # that are looked at for it


class RunwayTooShort(LoaderError):
    """The server purges a log file that is still needed before somebody could mend what holds the loader up."""


@dataclass(frozen=True)
class PurgeRules:
    """When the server purges: 0 for never, by age in seconds or by size in bytes; and how large a file becomes.

    `replicas`: MariaDB purges only while so many replicas are connected; a dump of the loader is one of them.
    """

    expire_seconds: float
    total_bytes: int
    file_bytes: int
    replicas: int = 0

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> PurgeRules:
        """From the server's variables. Where seconds are set days do not count."""
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
    """Hours until a log file may be purged, at the earliest, and by which rule; None for never.

    `gone`: the server has it no more, and 0 hours are left.
    """

    model_config = ConfigDict(frozen=True)

    file: str
    hours: float | None
    rule: Literal["age", "size", "none", "gone"]

    def __str__(self) -> str:
        if self.rule == "gone":
            return f"{self.file} is purged already"
        if self.hours is None:
            return f"{self.file} is kept for good"
        why = "its age" if self.rule == "age" else "the size of all logs, at the present rate"
        return f"{self.file} is kept for {self.hours:,.1f} hours more, by {why}"


def runway(rules: PurgeRules, file: str, sizes: Mapping[str, int], *, ended: int, rate: float, now: int) -> Runway:
    """The runway of a file. Nothing is asked.

    Args:
        rules: of the server.
        file: the one that is still needed.
        sizes: the server's files, oldest first, and their bytes.
        ended: when the file was left for the next one, seconds since 1970; now for the current file.
        rate: bytes of log per second at present.
        now: the server's time, seconds since 1970.
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
    """The server's own rules."""
    return PurgeRules.of({str(name): str(value) for name, value in query(connection, sql("source/retention"))})


def read_runway(connection: Connection[Any], transport: Transport, file: str) -> Runway:
    """Ask the server for the runway of a file; the ages of files are read from their first events.

    Raises:
        LoaderError: as the transport does; a file may be gone meanwhile.
    """
    rules, sizes = read_rules(connection), log_sizes(connection)
    now = int(query(connection, "SELECT UNIX_TIMESTAMP()")[0][0])
    names = list(sizes)
    following = names[names.index(file) + 1 :] if file in sizes else []
    return runway(
        rules,
        file,
        sizes,
        ended=begun(transport, following[0]) if following and rules.expire_seconds else now,
        rate=_rate(transport, sizes, now) if rules.total_bytes else 0.0,
        now=now,
    )


def begun(transport: Transport, file: str) -> int:
    """When a log file was begun, seconds since 1970: the time of its first event."""
    with transport.open(file, len(MAGIC), len(MAGIC)) as log:
        log.seek(len(MAGIC))
        return int.from_bytes(log.read(4) or b"", "little")


def _rate(transport: Transport, sizes: Mapping[str, int], now: int) -> float:
    """Bytes of log per second, over the newest files that took an hour, or over a few that took less."""
    written, first = 0, now
    for file in list(sizes)[: -_MOST_FILES - 1 : -1]:
        written, first = written + sizes[file], begun(transport, file)
        if now - first >= _FEWEST_SECONDS:
            break
    return written / max(1, now - first)


def check_runway(found: Runway, limit_hours: float) -> None:
    """Raise RunwayTooShort when fewer hours are left than the limit; a limit of 0 is none.

    What is gone is another's to tell: it may be in an archive.
    """
    if found.rule != "gone" and found.hours is not None and found.hours < limit_hours:
        raise RunwayTooShort(
            f"the server purges a log file that is still needed in {found.hours:.1f} hours",
            why=f"{found}; the limit is {limit_hours:g} hours",
            hint="raise binlog_expire_logs_seconds on the server now (MariaDB: or max_binlog_total_size), then find out"
            " what holds the loader up: loader status; a server that keeps less by design needs another"
            " min_runway_hours",
            file=found.file,
        )
