"""What a task did, kept until Airflow asks for its lineage. Without OpenLineage nobody asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel

    from loader.transport.server.address import ServerAddress


@dataclass(frozen=True)
class TaskWork:
    """What a task did.

    Attributes:
        source: its name.
        server: of the source.
        spec: of the job.
        arguments: of the use case, with the interval and the staged rows by table, if there is one.
        result: of the use case.
        tries: of the work.
    """

    source: str
    server: ServerAddress
    spec: BaseModel | None
    arguments: Mapping[str, Any]
    result: Mapping[str, Any]
    tries: int
