"""What a merge of 100,000 changes costs, by the size of the table and where in it they are.

    python -m tests.bench.merge [--quick] [--rounds N] [--json FILE]

One warm Spark session on two cores; from staged CSV to the committed table. Cases take turns in each round, so that a
noisy machine slows all of them: the seconds say little about another machine, the ratios much.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.base import CHANGES, COLUMNS, STEP, Base, Figures, timed
from tests.bench.figures import parser, report
from tests.bench.reading import csv_rate, read_penalty
from tests.bench.session import spark_session
from tests.bench.split import split
from tests.integration.materialise import staged_writer as staged
from tests.integration.materialise.lake import Lake


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
    yield csv_rate(bases[small], rounds)
    yield from beside_merge_into(bases[small], median)


def beside_merge_into(base: Base, median: dict[tuple[int, str], float]) -> Iterator[Figures]:
    """A plain MERGE INTO, copy-on-write, of as many changes into the same table: the usual way."""
    session = base.lake.warehouse.session
    name = base.lake.warehouse.name(base.schema.name)
    for where in ("local", "random"):
        low = base.rows * 99 // 100 if where == "local" else 0
        keys = f"SELECT DISTINCT {low} + pmod(xxhash64(id), {base.rows - low}) AS id FROM range({CHANGES})"
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
    schemas = [staged.table(f"t{number}", COLUMNS, ["id"]) for number in range(tables)]
    row = ("name", "1.00", "2026-01-01 00:00:00", "note")
    start = staged.position(1, 1000)
    lake.loaded(*(lake.staging.load(schema, [(key, *row) for key in range(rows)], start) for schema in schemas))
    for number in range(2):
        low, high = (staged.position(1, 1000 + place * STEP) for place in (number, number + 1))
        records = [staged.Change("U", staged.seqno(high), key, (key, *row)) for key in range(rows)]
        lake.staging.interval(low, high, [(schema, records) for schema in schemas])
        with split() as steps:
            seconds = timed(lake.merged)
    quiet = staged.position(1, 1000 + 3 * STEP)
    lake.staging.interval(staged.position(1, 1000 + 2 * STEP), quiet, [])
    yield {
        "tables": tables,
        "changes of each": rows,
        "seconds of a table": round(seconds / tables, 2),
        **{f"for {step}": f"{part / steps.total():.0%}" for step, part in steps.items()},
        "seconds of all without a change": round(timed(lake.merged), 2),
    }


def measured(folder: Path, quick: bool, rounds: int) -> Iterator[Figures]:
    """All figures, as they come."""
    large = 5_000_000 if quick else 50_000_000
    yield from by_size(folder / "size", 1_000_000, large, rounds)
    yield from read_penalty(Base(Lake(spark_session(), folder / "read"), "read", large // 10), 20)
    yield from many_tables(folder / "many", 20 if quick else 100, 100)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print each figure as it comes."""
    options = parser(__doc__, "a tenth of the rows")
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args(arguments)
    with TemporaryDirectory(prefix="loader-bench-") as folder:
        report(measured(Path(folder), given.quick, given.rounds), given.json)


if __name__ == "__main__":
    sys.exit(main())
