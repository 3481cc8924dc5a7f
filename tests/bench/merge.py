"""What a merge of 100,000 changes costs, by the size of the table and where in it they are.

    python -m tests.bench.merge [--quick] [--rounds N] [--json FILE]

One warm Spark session on two cores; from staged CSV to the committed table. Cases take turns in each round, so that a
noisy machine slows all of them: the seconds say little about another machine, the ratios much.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from loader.materialise.branch import Branch
from loader.materialise.history import signature
from loader.model.table import Column
from tests.bench.session import spark_session
from tests.integration.materialise import staged_writer as staged
from tests.integration.materialise.lake import Lake

_CHANGES = 100_000
_COLUMNS = (
    Column("id", "bigint"),
    Column("name", "varchar", charset="utf8mb4"),
    Column("price", "decimal", size=10, scale=2),
    Column("at", "datetime"),
    Column("note", "varchar", charset="utf8mb4"),
)
_STEP = 1_000_000  # of positions, from one interval to the next
Figures = dict[str, Any]


class Base:
    """A table of so many rows, sorted by key, and the intervals that are staged for it, one after the other."""

    def __init__(self, lake: Lake, name: str, rows: int) -> None:
        self.lake, self.rows = lake, rows
        self.schema = staged.table(name, _COLUMNS, ["id"])
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
        return staged.position(1, 1000 + (self._intervals + ahead) * _STEP)

    def _seqno(self) -> int:
        return staged.seqno(self._position())

    def stage(self, where: str, changes: int = _CHANGES) -> None:
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


def by_size(folder: Path, small: int, large: int, rounds: int) -> Iterator[Figures]:
    """Merges into a small and a large table, local and random keys."""
    spark = spark_session()
    bases = {rows: Base(Lake(spark, folder / str(rows)), f"base{rows}", rows) for rows in (small, large)}
    seconds: dict[tuple[int, str], list[float]] = {}
    for number in range(rounds + 1):
        for where in ("local", "random"):
            for rows, base in bases.items():
                base.stage(where)
                taken = base.merged()
                if number:  # the first one warms up
                    seconds.setdefault((rows, where), []).append(taken)
    median = {case: statistics.median(found) for case, found in seconds.items()}
    for where in ("local", "random"):
        yield {
            "keys": where,
            "rows": f"{large:,} to {small:,}",
            "ratio": round(median[large, where] / median[small, where], 2),
            "seconds": round(median[large, where], 2),
            "seconds of the smaller": round(median[small, where], 2),
        }
    yield from beside_merge_into(bases[small], median)


def beside_merge_into(base: Base, median: dict[tuple[int, str], float]) -> Iterator[Figures]:
    """A plain MERGE INTO, copy-on-write, of as many changes into the same table: the usual way."""
    session = base.lake.warehouse.session
    name = base.lake.warehouse.name(base.schema.name)
    for where in ("local", "random"):
        low = base.rows * 99 // 100 if where == "local" else 0
        keys = f"SELECT DISTINCT {low} + pmod(xxhash64(id), {base.rows - low}) AS id FROM range({_CHANGES})"
        session.sql(f"SELECT id, id % 5 = 0 AS gone FROM ({keys})").persist().createOrReplaceTempView("merging")
        session.table("merging").count()
        statement = (
            f"MERGE INTO {name} t USING merging s ON t.id = s.id WHEN MATCHED AND s.gone THEN DELETE"
            f" WHEN MATCHED THEN UPDATE SET name = 'other' WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'new')"
        )
        taken = timed(lambda text=statement: session.sql(text))
        yield {
            "keys": where,
            "to": "MERGE INTO, copy-on-write, without reading CSV",
            "rows": f"{base.rows:,}",
            "ratio": round(taken / median[base.rows, where], 2),
            "seconds": round(taken, 2),
        }


def many_tables(folder: Path, tables: int, rows: int) -> Iterator[Figures]:
    """So many tables with so many changes each, in one application, and one that has none."""
    lake = Lake(spark_session(), folder)
    schemas = [staged.table(f"t{number}", _COLUMNS, ["id"]) for number in range(tables)]
    row = ("name", "1.00", "2026-01-01 00:00:00", "note")
    start = staged.position(1, 1000)
    lake.loaded(*(lake.staging.load(schema, [(key, *row) for key in range(rows)], start) for schema in schemas))
    for number in range(2):
        low, high = (staged.position(1, 1000 + place * _STEP) for place in (number, number + 1))
        records = [staged.Change("U", staged.seqno(high), key, (key, *row)) for key in range(rows)]
        lake.staging.interval(low, high, [(schema, records) for schema in schemas])
        seconds = timed(lake.merged)
    quiet = staged.position(1, 1000 + 3 * _STEP)
    lake.staging.interval(staged.position(1, 1000 + 2 * _STEP), quiet, [])
    yield {
        "tables": tables,
        "changes of each": rows,
        "seconds of a table": round(seconds / tables, 2),
        "seconds of all without a change": round(timed(lake.merged), 2),
    }


def measured(folder: Path, quick: bool, rounds: int) -> Iterator[Figures]:
    """All figures, as they come."""
    large = 5_000_000 if quick else 50_000_000
    yield from by_size(folder / "size", 1_000_000, large, rounds)
    yield from many_tables(folder / "many", 20 if quick else 100, 100)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print each figure as it comes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write all figures there")
    given = parser.parse_args(arguments)
    figures = []
    with TemporaryDirectory(prefix="loader-bench-") as folder:
        for figure in measured(Path(folder), given.quick, given.rounds):
            figures.append(figure)
            print(", ".join(f"{name}: {value}" for name, value in figure.items()), flush=True)
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    sys.exit(main())
