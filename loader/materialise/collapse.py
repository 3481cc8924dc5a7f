"""From all staged records of a table to the last one per key, typed, checked and counted in one pass over the files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from loader.errors import StagedDataError, UnsupportedError
from loader.materialise.plan import Work
from loader.materialise.quoting import literal
from loader.materialise.reading import key_places, read_staged, unreadable
from loader.materialise.values import bad_value, misfit, record, row, typed_frame
from loader.model.table import TableSchema
from loader.typemap import spark_type

_COUNTS = ("all", "absent", *(f"{age}_{op}" for age in ("all", "new") for op in "IUD"))


@dataclass(frozen=True)
class Changes:
    """The collapsed records of a table, kept in memory or on disk by Spark until `release`.

    Attributes:
        frame: one row per key whose last record is newer than the applied position: `_op`, `_seqno`,
            `_committed_at`, then `c0`... typed.
        keys: rows of the frame; survivors: those whose last record is not `D`.
        low, high: least and greatest value of the first key column, as SQL.
        inserts, updates, deletes: staged records newer than the applied position.
    """

    frame: DataFrame
    keys: int
    survivors: int
    low: str
    high: str
    inserts: int
    updates: int
    deletes: int

    def release(self) -> None:
        """Give the memory back."""
        self.frame.unpersist()


def collapse(session: SparkSession, uris: list[str], work: Work) -> Changes:
    """Read the files of `work`, check them against their manifest, and collapse them.

    Raises:
        StagedDataError: lines that are not in the format, or not those that the manifest counts.
        UnsupportedError: an incomplete row image.
        DataError: a value that does not fit its type.
    """
    last = last_per_key(read_staged(session, uris, work.schema), work)
    frame = _typed(last, work).persist()
    try:
        try:
            found = _counts(frame, work.schema, work.applied)
        except Exception as error:
            raise unreadable(error, work.name) or error from error
        _check_counts(found, work)
        if found["bad"]:
            raise bad_value(last.where(sf.col("last._seqno") > work.applied), work)
    except BaseException:
        frame.unpersist()
        raise
    return Changes(
        frame.where(sf.col("_seqno") > work.applied),
        found["keys"],
        found["survivors"],
        _bound(found["low"], work.schema),
        _bound(found["high"], work.schema),
        *(found[f"new_{op}"] for op in "IUD"),
    )


def last_per_key(records: DataFrame, work: Work) -> DataFrame:
    """One row per key: `last`, a struct of the last record by (seqno, row offset), and counts over all its records.

    Keys are compared as staged text: the same bytes, or another key.
    """
    # The op comes last: two records at one offset would be a fault of the log's reader; even then reruns must agree.
    order = sf.struct("_seqno", "_row_offset", "_op")
    new = sf.col("_seqno") > work.applied
    counts = [sf.count_if(sf.col("_op") == op).alias(f"all_{op}") for op in "IUD"]
    counts += [sf.count_if((sf.col("_op") == op) & new).alias(f"new_{op}") for op in "IUD"]
    absent = sf.col("_absent").isNotNull() & (sf.col("_absent") != "")
    return records.groupBy(*key_places(work.schema)).agg(
        sf.max_by(record(work), order).alias("last"),
        sf.count(sf.lit(1)).alias("all"),
        sf.count_if(absent).alias("absent"),
        *counts,
    )


def _typed(last: DataFrame, work: Work) -> DataFrame:
    bad = misfit(work) & (sf.col("last._seqno") > work.applied)
    return typed_frame(last, work).select(*row(work), bad.alias("bad"), *_COUNTS)


def _counts(frame: DataFrame, schema: TableSchema, applied: int) -> dict[str, Any]:
    """One row of sums over the frame; this is what fills the cache."""
    new = sf.col("_seqno") > applied
    first = sf.when(new, sf.col(key_places(schema)[0]))
    as_text = sf.hex if _key_type(schema) == "binary" else lambda value: value.cast("string")
    row = frame.agg(
        *(sf.coalesce(sf.sum(name), sf.lit(0)).alias(name) for name in _COUNTS),
        sf.count_if("bad").alias("bad"),
        sf.count_if(new).alias("keys"),
        sf.count_if(new & (sf.col("_op") != "D")).alias("survivors"),
        as_text(sf.min(first)).alias("low"),
        as_text(sf.max(first)).alias("high"),
    ).first()
    return row.asDict() if row else {}


def _check_counts(found: dict[str, Any], work: Work) -> None:
    """What was read is what the manifests say, and whole row images."""
    counted = {"all": work.rows} | {f"all_{op}": count for op, count in work.ops.items()}
    for name, expected in counted.items():
        if found[name] != expected:
            raise StagedDataError(
                "the staged files do not hold the records that their manifest counts",
                why=f"{name.removeprefix('all_')}: {expected} in the manifests, {found[name]} in the files",
                hint="extract the intervals again",
                table=work.name,
            )
    if found["absent"]:
        raise UnsupportedError(
            "incomplete row images are not covered",
            why=f"{found['absent']} records lack columns that their statement did not touch",
            hint=f"set binlog_row_image=FULL on the server, then: loader initial-load --table {work.name} --again",
            table=work.name,
        )


def _key_type(schema: TableSchema) -> str:
    return spark_type(schema.column(schema.key[0]))


def _bound(text: str | None, schema: TableSchema) -> str:
    """A value of the first key column as SQL; constant folding makes a literal of it before files are pruned."""
    if text is None:
        return "NULL"
    kind = _key_type(schema)
    if kind == "binary":
        return f"X'{text}'"
    return literal(text) if kind == "string" else f"CAST({literal(text)} AS {kind})"
