"""All that the use cases need to know about one source and where its data goes."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from loader.extract.spec import TransportSettings
from loader.materialise.rules import TableRule
from loader.materialise.spec import CatalogSettings
from loader.spark.submit import SparkSettings
from loader.staging.documents import Shaping
from loader.transport.server.address import ServerAddress


class IntervalLimits(BaseModel):
    """How much log an interval takes at most, but for a single transaction; 0 is no limit.

    Attributes:
        bytes: of log, over the files between.
        transactions: how many.
        seconds: between the commits of its first and its last transaction.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    bytes: Annotated[int, Field(ge=0)] = 1024**3
    transactions: Annotated[int, Field(ge=0)] = 0
    seconds: Annotated[int, Field(ge=0)] = 0


_DURATION = re.compile(r"(\d+)([dh])")
_HOURS = {"d": 24, "h": 1}


def parse_keep(text: object) -> timedelta | None:
    """Read `forever` (None), `30d` or `12h`.

    Raises:
        ValueError: it is none of these.
    """
    if text == "forever":
        return None
    found = _DURATION.fullmatch(str(text))
    if not found:
        raise ValueError("write forever, or days or hours: 30d, 12h")
    return timedelta(hours=int(found[1]) * _HOURS[found[2]])


class Retention(BaseModel):
    """For how long the files of an interval are kept once every table has it (None: for good).

    `archive`: a prefix in the staging root that they are moved to; empty: they are removed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    keep: timedelta | None = None
    archive: str = ""


class Maintain(BaseModel):
    """How tables are maintained. `keep_days`: for how long their snapshots stay, and the views that name them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    keep_days: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 7


class SourceSettings(Shaping):
    """One source, resolved: its server, what is captured of it, its staging root, its warehouse, its Spark.

    The options of Shaping go into each plan.
    `min_runway_hours`: see loader.source.retention. `run_minutes`: after so long a delta begins no other interval.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    server: ServerAddress
    transport: TransportSettings
    rules: tuple[TableRule, ...] = ()
    chunk_rows: int
    interval: IntervalLimits
    run_minutes: float
    min_runway_hours: float
    staging_root: str
    retention: Retention
    maintain: Maintain = Maintain()
    catalog: CatalogSettings
    spark: SparkSettings
