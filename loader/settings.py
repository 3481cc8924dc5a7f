"""Settings of one source: its server, its tables, and where its data goes."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from loader.extract.spec import TransportSettings
from loader.initial_load.server.read_limits import ReadLimits
from loader.materialise.rules import TableRule
from loader.materialise.spec import CatalogSettings
from loader.spark.settings import SparkSettings
from loader.staging.documents import Shaping
from loader.transport.server.address import ServerAddress


class IntervalLimits(BaseModel):
    """Limits of an interval. A transaction larger than the limits gets its own interval; 0 is no limit.

    Attributes:
        bytes: bytes of log, over all its files.
        transactions: number of transactions.
        seconds: time between the commits of its first and its last transaction.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    bytes: Annotated[int, Field(ge=0)] = 1024**3
    transactions: Annotated[int, Field(ge=0)] = 0
    seconds: Annotated[int, Field(ge=0)] = 0


AUTO_LOAD_BYTES = 1024**3
"""Tables of this size are read within about a minute, which delays a delta little."""
_DURATION = re.compile(r"(\d+)([dh])")
_HOURS = {"d": 24, "h": 1}


def parse_keep(text: object) -> timedelta | None:
    """Parse a duration such as `30d` or `12h`. Return None for `forever`.

    Raises:
        ValueError: the text is of another form.
    """
    if text == "forever":
        return None
    match = _DURATION.fullmatch(str(text))
    if not match:
        raise ValueError("write forever, or days or hours: 30d, 12h")
    return timedelta(hours=int(match[1]) * _HOURS[match[2]])


class Retention(BaseModel):
    """How long staged files are kept after every table has applied their interval.

    Attributes:
        keep: the time; None keeps them forever.
        archive: a prefix in the staging root that files are moved to; empty removes them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    keep: timedelta | None = None
    archive: str = ""


class Maintain(BaseModel):
    """How tables are maintained.

    Attributes:
        keep_days: days that snapshots, and the views that name them, are kept.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    keep_days: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 7


class SourceSettings(Shaping):
    """The resolved settings of one source: server, captured tables, staging root, warehouse, Spark.

    The options of Shaping go into each plan.

    Attributes:
        min_runway_hours: see loader.source.retention.
        read_from: a replica that initial loads read; None to read the server itself.
        run_minutes: after this time a delta starts no further interval.
        auto_load: deltas load captured tables that are not loaded.
        auto_load_bytes: the largest tables that they load, all tables of a delta together, as the server estimates it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    server: ServerAddress
    transport: TransportSettings
    rules: tuple[TableRule, ...] = ()
    chunk_rows: int
    read_from: ServerAddress | None = None
    initial_load: ReadLimits = ReadLimits()
    interval: IntervalLimits
    run_minutes: float
    min_runway_hours: float
    staging_root: str
    retention: Retention
    maintain: Maintain = Maintain()
    auto_load: bool = False
    auto_load_bytes: int = AUTO_LOAD_BYTES
    catalog: CatalogSettings
    spark: SparkSettings
