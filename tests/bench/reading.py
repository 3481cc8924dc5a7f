"""What it costs to read staged CSV into typed rows, and a table after merges and after maintenance."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial

from pyspark.sql import DataFrame

from loader.materialise.collapse.casts import add_typed_columns, record_struct, row_columns
from loader.materialise.collapse.staged_records import read_records
from loader.materialise.jobs.maintain_job import maintain
from loader.materialise.maintain.spec import MaintainSpec
from tests.bench.base import CHANGES, Base, Figures, timed

_CORES = 2
_ROUNDS = 3
_FEW = 10_000


def csv_rate(base: Base, rounds: int) -> Figures:
    """Records a second and core from staged files to values of the table's types, thrown away."""
    base.stage("random", 5 * CHANGES)
    work = base.pending()
    last = read_records(base.lake.warehouse.session, base.lake.staging.store, work).select(
        record_struct(work).alias("last")
    )
    typed = add_typed_columns(last, work).select(*row_columns(work))
    seconds = [timed(partial(_through, typed)) for _ in range(rounds + 1)][1:]  # the first one warms up
    return {
        "CSV": f"{work.rows:,} records",
        "records a second and core, with casts": round(work.rows / statistics.median(seconds) / _CORES),
    }


def read_penalty(base: Base, merges: int) -> Iterator[Figures]:
    """All rows read after so many merges with random keys, and after maintenance, beside the table as it was loaded."""
    loaded = _read(base)
    for _ in range(merges):
        base.stage("random", _FEW)
        base.merged()
    yield _figure(base, f"after {merges} merges of {_FEW:,} changes", loaded)
    spec = base.lake.merge_spec()
    maintain(
        base.lake.spark,
        MaintainSpec(
            source=spec.source,
            generation=spec.generation,
            staging_root=spec.staging_root,
            catalog=spec.catalog,
            tables=(str(base.schema.name),),
            keep_days=0,
        ),
    )
    yield _figure(base, "after maintenance", loaded)


def _figure(base: Base, when: str, loaded: float) -> Figures:
    seconds = _read(base)
    return {"rows read": f"{base.rows:,}", "": when, "ratio": round(seconds / loaded, 2), "seconds": round(seconds, 2)}


def _read(base: Base) -> float:
    session = base.lake.warehouse.session
    session._jvm.System.gc()  # what was done before is not to be paid for here
    table = session.table(base.lake.warehouse.name(base.schema.name))
    return statistics.median([timed(partial(_through, table)) for _ in range(_ROUNDS + 1)][1:])


def _through(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()
