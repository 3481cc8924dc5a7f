"""How long an initial load reads: an estimate from the statistics of the server and a measured rate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Literal

from pydantic import BaseModel, ConfigDict

from loader.model.table import TableName
from loader.settings import SourceSettings
from loader.source.table_sizes import TableSize

SAMPLE_BYTES = 16 * 1024 * 1024
"""Bytes of a sample, as the statistics of the server count them. Smaller tables are not worth a sample."""
_FEWEST_CHUNKS = 4
_GAP = 10  # a pause 10 times as long as the mean pause separates two runs
_TABLE_SECONDS = 0.1
"""Seconds of a table in addition to its rows: connections, its plan and its documents."""


class ReadRate(BaseModel):
    """How fast tables are read.

    Attributes:
        bytes_per_second: of all readers together. The statistics of the server count the bytes.
        measured_by: the `chunks` that an unfinished load has staged, or a `sample` of a table.
        table: which was measured.
        readers: that the rate of a sample was multiplied with. It is 1 on a cluster without a limit of readers, because
            the number of its tasks is unknown.
    """

    model_config = ConfigDict(frozen=True)

    bytes_per_second: float
    measured_by: Literal["chunks", "sample"]
    table: str
    readers: int


def chunks_per_second(staged: Sequence[datetime]) -> float | None:
    """Return how many chunks a load stages in a second, by the times of its chunks; None for fewer than four.

    Much longer pauses than the others are left out: the load was stopped then.
    """
    if len(staged) < _FEWEST_CHUNKS:
        return None
    pauses = sorted((later - earlier).total_seconds() for earlier, later in pairwise(sorted(staged)))
    while len(pauses) > 1 and pauses[-1] > _GAP * sum(pauses[:-1]) / (len(pauses) - 1):
        pauses.pop()
    return len(pauses) / sum(pauses) if sum(pauses) else None


def reader_count(settings: SourceSettings) -> int:
    """Return how many chunks of a load are read at the same time; 1 if it depends on the cluster."""
    return settings.initial_load.readers or settings.spark.threads or 1


def sample_rate(settings: SourceSettings, table: TableName, size: TableSize) -> ReadRate | None:
    """Return the rate by a sample of a table; None for a table that is smaller than a sample.

    Raises:
        LoaderError: the server does not answer, or a value cannot be read.
    """
    if size.bytes < SAMPLE_BYTES or not size.rows:
        return None
    # Not at the top: the codec compiles or loads its kernels on import, and most commands do not need them.
    from loader.initial_load.sample import sample_rows_per_second

    readers = reader_count(settings)
    rows = sample_rows_per_second(settings.server, table, max(1, SAMPLE_BYTES * size.rows // size.bytes))
    speed = rows * readers * size.bytes / size.rows
    return ReadRate(bytes_per_second=speed, measured_by="sample", table=str(table), readers=readers) if rows else None


def estimate_seconds(bytes_left: float, bytes_per_second: float | None) -> float:
    """Return the seconds that reading a table takes if no other table is read, in tenths.

    Args:
        bytes_left: bytes that are still to be read.
        bytes_per_second: of all readers; None if the tables are too small to measure it.
    """
    seconds = bytes_left / bytes_per_second if bytes_per_second else 0.0
    return math.ceil(10 * (_TABLE_SECONDS + seconds)) / 10
