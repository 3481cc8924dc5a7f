"""The tables that merges are measured on: rows in the order of the key, and intervals with changes of them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from loader.materialise.iceberg.branch import Branch
from loader.materialise.iceberg.table_metadata import signature
from loader.materialise.merge.merge_planner import MergePlanner
from loader.materialise.plan.interval_chain import Chain
from loader.materialise.plan.merge_plan import Merge, Work
from loader.model.table import Column
from tests.integration.materialise import staged_writer as staged
from tests.integration.materialise.lake import Lake

CHANGES = 100_000
COLUMNS = (
    Column("id", "bigint"),
    Column("name", "varchar", charset="utf8mb4"),
    Column("price", "decimal", size=10, scale=2),
    Column("at", "datetime"),
    Column("note", "varchar", charset="utf8mb4"),
)
STEP = 1_000_000  # of positions, from one interval to the next
Figures = dict[str, Any]


class Base:
    """A table of so many rows, sorted by key, and the intervals that are staged for it, one after the other."""

    def __init__(self, lake: Lake, name: str, rows: int) -> None:
        self.lake, self.rows = lake, rows
        self.schema = staged.table(name, COLUMNS, ["id"])
        self._intervals = 0
        self._fill()

    def _fill(self) -> None:
        warehouse, session = self.lake.warehouse, self.lake.warehouse.session
        warehouse.create(self.schema, staged.SOURCE, staged.GENERATION)
        session.conf.set("spark.sql.iceberg.distribution-mode", "none")
        rows = session.range(0, self.rows, 1, max(1, self.rows // 1_000_000)).selectExpr(
            "id",
            "concat('name ', id % 100003)",
            "CAST(id % 1000000 / 100 AS decimal(10,2))",
            "TIMESTAMP_NTZ'2026-01-01 00:00:00' + make_dt_interval(0, 0, 0, id % 1000000)",
            "sha2(CAST(id AS string), 224)",
            "0L",
            "TIMESTAMP'2026-01-01 00:00:00'",
        )
        stands_at = signature(
            seqno=self._seqno(),
            position=self._position(),
            source=staged.SOURCE,
            generation=staged.GENERATION,
            schema_id=self.schema.schema_id,
        )
        with Branch(warehouse, self.schema.name, None) as branch:
            rows.createOrReplaceTempView("base")
            with branch.signed(stands_at):
                session.sql(f"INSERT INTO {branch.target} SELECT * FROM base")
            branch.publish(1)

    def _position(self, ahead: int = 0) -> str:
        return staged.position(1, 1000 + (self._intervals + ahead) * STEP)

    def _seqno(self) -> int:
        return staged.seqno(self._position())

    def stage(self, where: str, changes: int = CHANGES) -> None:
        """An interval with 60% updates, 20% deletes and 20% inserts, in the newest 1% of the keys or anywhere."""
        pick = random.Random(f"{self.schema.name} {where} {self._intervals}")
        old = changes * 8 // 10
        span = range(self.rows - max(old * 2, self.rows // 100), self.rows) if where == "local" else range(self.rows)
        keys = pick.sample(span, old)
        new = range(self.rows + self._intervals * changes, self.rows + self._intervals * changes + changes - old)
        seqno = staged.seqno(self._position(1))
        row = (
            "another name",
            "12.25",
            "2026-02-02 02:02:02",
            "a note that is as long as those of most rows are, or more",
        )
        ops = ["U"] * (changes * 6 // 10) + ["D"] * (old - changes * 6 // 10) + ["I"] * (changes - old)
        records = [
            staged.Change(op, seqno, number, (key, *row))
            for number, (op, key) in enumerate(zip(ops, (*keys, *new), strict=True))
        ]
        self.lake.staging.interval(self._position(), self._position(1), [(self.schema, records)], parts=4)
        self._intervals += 1

    def pending(self) -> Work:
        """What the next merge reads."""
        lake, name = self.lake, self.schema.name
        chain = Chain(lake.staging.store, staged.SOURCE, staged.GENERATION)
        merge = MergePlanner(lake.warehouse, chain).plan(name, lake.warehouse.metadata(name), self._seqno())
        if not isinstance(merge, Merge):
            raise SystemExit("nothing is staged")
        (work,) = merge.works
        return work

    def merged(self) -> float:
        """Seconds of a merge of what is staged."""
        return timed(self._merge)

    def _merge(self) -> None:
        result = self.lake.merged()
        errors = [one.error for one in result.tables if one.error]
        if errors:
            raise SystemExit(str(errors[0]))


def timed(work: Callable[[], object]) -> float:
    """Seconds that it takes."""
    began = time.monotonic()
    work()
    return time.monotonic() - began
