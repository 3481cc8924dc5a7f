"""The rows of a table on the server, as sums of hashes and as texts. The connection decides what it sees."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from pymysql.connections import Connection
from pymysql.cursors import SSCursor

from loader.model.table import TableSchema
from loader.resources import sql
from loader.source.schemas import quote_table
from loader.source.server_facts import query
from loader.verify.comparands import Comparand, OnMisfit, comparands_of, comparisons
from loader.verify.expressions import Row, canonical_rows
from loader.verify.key_sample import server_condition
from loader.verify.row_hashes import hashed_values, row_hash, server_digests, server_hash
from loader.verify.spec import KeySample, Sums, TableSums


def server_sums(
    connection: Connection[Any],
    schema: TableSchema,
    buckets: int,
    sample: KeySample | None = None,
    on_misfit: OnMisfit = "error",
) -> Sums:
    """Return number and sum of hashes of the rows in each bucket, of all rows or of a sample.

    Raises:
        MySQLError: from the driver, for example if the table was altered after the snapshot.
    """
    compared = comparands_of(schema, on_misfit)
    texts, numbers = hashed_values(compared)
    if not numbers:
        sampled = server_condition(sample, schema)
        statement = sql("verify/sums").format(
            hash=server_hash(texts), table=quote_table(schema.name), sampled=sampled, buckets=buckets
        )
        with connection.cursor() as cursor:
            cursor.execute(statement)
            return {int(bucket): (int(count), int(total)) for bucket, count, total in cursor.fetchall()}
    found: defaultdict[int, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for hashed, _ in _hashed(connection, schema, compared, (), sample):
        count, total = found[hashed % buckets]
        found[hashed % buckets] = count + 1, total + hashed
    return dict(found)


def count_rows(connection: Connection[Any], schema: TableSchema) -> int:
    """Return the number of rows."""
    ((count,),) = query(connection, f"SELECT COUNT(*) FROM {quote_table(schema.name)}")
    return int(count)


def server_rows(connection: Connection[Any], table: TableSums, wanted: Collection[int]) -> Iterator[Row]:
    """Yield the canonical texts of the rows in the wanted buckets."""
    compared, texts = table.compared_values, [one.server for one in table.compared_values]
    found = _hashed(connection, table.table_schema, compared, texts, table.sample)
    rows = (row for hashed, row in found if hashed % table.buckets in wanted)
    yield from canonical_rows(comparisons(compared), rows)


def _hashed(
    connection: Connection[Any],
    schema: TableSchema,
    compared: Sequence[Comparand],
    more: Collection[str],
    sample: KeySample | None,
) -> Iterator[tuple[int, Row]]:
    """Yield the hash of each row, or of each row of a sample, and the values of more expressions."""
    texts, numbers = hashed_values(compared)
    expressions = ", ".join([server_digests(texts), *(one.server for one in numbers), *more])
    last = 1 + len(numbers)
    with connection.cursor(SSCursor) as cursor:
        cursor.execute(f"SELECT {expressions} FROM {quote_table(schema.name)} WHERE {server_condition(sample, schema)}")
        for row in cursor.fetchall_unbuffered():
            yield row_hash(row[0], row[1:last], numbers), row[last:]
