"""Limits of the load that an initial load puts on its server, and the decision whether a reader waits."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field


class ReadLimits(BaseModel):
    """How much an initial load may ask of its server. 0 is no limit of the loader.

    Attributes:
        readers: chunks that are read at the same time on the server, of all tables and by all loaders that have this
            limit; 0 for one per thread or task of Spark of this loader.
        max_threads_running: a reader waits while `Threads_running` of the server is higher. It counts the readers.
        max_replica_lag_seconds: a reader waits while the server is a replica that is further behind its source.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    readers: Annotated[int, Field(ge=0)] = 0
    max_threads_running: Annotated[int, Field(ge=0)] = 0
    max_replica_lag_seconds: Annotated[int, Field(ge=0)] = 0


class ServerLoad(NamedTuple):
    """How busy a server is.

    Attributes:
        threads_running: its status `Threads_running`.
        lag_seconds: of the channel of replication that is the furthest behind; None if one is stopped.
    """

    threads_running: int = 0
    lag_seconds: int | None = 0


def reason_to_wait(limits: ReadLimits, load: ServerLoad) -> str:
    """Return why no further chunk may be read now; empty if one may be read."""
    if limits.max_threads_running and load.threads_running > limits.max_threads_running:
        return f"the server has {load.threads_running} running threads, more than {limits.max_threads_running}"
    if not limits.max_replica_lag_seconds:
        return ""
    if load.lag_seconds is None:
        return "replication on the server is stopped, so its lag is unknown"
    if load.lag_seconds > limits.max_replica_lag_seconds:
        return f"the server is {load.lag_seconds} s behind its source, more than {limits.max_replica_lag_seconds} s"
    return ""
