"""Samples of a table: the rows of one part of its keys, by the hashes of the keys, which are equal on both sides.

So a wrong, missing or additional row of the part is found on either side, and an equal row is never reported.
"""

from __future__ import annotations

import secrets

from loader.model.table import TableSchema
from loader.verify.comparands import key_comparands
from loader.verify.row_hashes import hashed_values, server_hash, warehouse_hash
from loader.verify.spec import KeySample

SAMPLE_ROWS = 100_000
"""Rows of a sample. A table with less than twice as many is compared in full."""


def choose_sample(schema: TableSchema, rows: int) -> KeySample | None:
    """Return another part of the keys each time; None if the table is to be compared in full.

    Without a key there is nothing to choose by. Servers cannot hash the numbers of a floating-point key.

    Args:
        schema: of the table.
        rows: estimated rows of the table.
    """
    parts = rows // SAMPLE_ROWS
    if parts < 2 or not schema.key or hashed_values(key_comparands(schema))[1]:
        return None
    return KeySample(parts=parts, part=secrets.randbelow(parts))


def server_condition(sample: KeySample | None, schema: TableSchema) -> str:
    """Return the MySQL condition for the rows of a sample."""
    return f"{server_hash(key_comparands(schema))} % {sample.parts} = {sample.part}" if sample else "TRUE"


def warehouse_condition(sample: KeySample | None, schema: TableSchema) -> str:
    """Return the Spark condition for the rows of a sample."""
    return f"{warehouse_hash(key_comparands(schema))} % {sample.parts} = {sample.part}" if sample else "TRUE"
