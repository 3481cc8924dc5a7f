"""A comparison with a server, in the order of the command and in this process."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, cast

from pyspark.sql import SparkSession

from loader import pipeline
from loader.delta.run import delta
from loader.pipeline.verification import TableVerification, Verified
from loader.settings import SourceSettings
from loader.verify.verify import verify


def verified(
    spark: SparkSession, settings: SourceSettings, tables: tuple[str, ...] = (), *, sampled: bool = False
) -> Verified:
    """Compare tables, or all tables, after a delta up to a snapshot of the server."""
    starting: Future[SparkSession] = Future()
    starting.set_result(spark)
    with pipeline.verification(settings, tables, sampled=sampled) as opened:
        applied = None
        if opened.delta:
            applied = delta(starting, cast("Any", opened.delta.spec)).model_dump(mode="json")
        compared = verify(spark, cast("Any", opened.comparison(applied).spec))
        return opened.finish(compared.model_dump(mode="json"))


def by_table(found: Verified) -> dict[str, TableVerification]:
    """The comparisons, by the names of tables without their schema."""
    return {one.table.partition(".")[2]: one for one in found.tables}
