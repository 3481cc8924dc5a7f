"""Hashes of rows, equal on both sides for equal rows. SQL of the server makes one, and SQL of Spark the other.

The hash of a row is the first 60 bits of a SHA-256 over the SHA-256 of each column: of its bytes if it is binary, else
of its canonical text, see `expressions`. MySQL has no MD5 from version 9.6 on.
Texts of floating-point numbers differ between the systems. So the bits of these numbers are hashed, and as servers have
no function for bits, Python completes the hashes of a server's rows.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence

from loader.model.table import Column
from loader.types.catalogue import type_of
from loader.types.column_type import Comparison, Form
from loader.verify.expressions import comparison_of, in_warehouse, on_server, quoted

NULL = "-"
"""In the place of the digest of a NULL."""
_DIGITS = 15  # hexadecimal digits of a hash
_BITS = {
    Comparison.SINGLE: ("Float", "floatToIntBits", "f", "i"),
    Comparison.DOUBLE: ("Double", "doubleToLongBits", "d", "q"),
}


def hashed_columns(columns: Sequence[Column]) -> tuple[list[Column], list[Column]]:
    """Return the columns that are hashed as texts, and those that are hashed as bits. Vectors are in neither."""
    texts = [column for column in columns if comparison_of(column) is Comparison.TEXT]
    return texts, [column for column in columns if comparison_of(column) in _BITS]


def server_digests(columns: Sequence[Column]) -> str:
    """Return the MySQL expression for the digests of these text columns, one after the other."""
    parts = ", ".join(f"COALESCE(SHA2({on_server(column)}, 256), '{NULL}')" for column in columns)
    return f"CONCAT({parts})" if parts else "''"


def server_hash(columns: Sequence[Column]) -> str:
    """Return the MySQL expression for the hash of a row of text columns."""
    return f"CAST(CONV(LEFT(SHA2({server_digests(columns)}, 256), {_DIGITS}), 16, 10) AS UNSIGNED)"


def row_hash(digests: str, numbers: Sequence[float | None], columns: Sequence[Column]) -> int:
    """Return the hash of a row on the server, from the digests of its texts and from its numbers."""
    bits = "".join(_bits_digest(number, column) for number, column in zip(numbers, columns, strict=True))
    return int(hashlib.sha256((digests + bits).encode()).hexdigest()[:_DIGITS], 16)


def _bits_digest(number: float | None, column: Column) -> str:
    if number is None:
        return NULL
    _, _, kind, integer = _BITS[comparison_of(column)]
    (bits,) = struct.unpack(f"<{integer}", struct.pack(f"<{kind}", number))
    return hashlib.sha256(str(bits).encode()).hexdigest()


def warehouse_hash(columns: Sequence[Column]) -> str:
    """Return the Spark expression for the hash of a row."""
    texts, numbers = hashed_columns(columns)
    parts = [f"coalesce(sha2(cast({_hashed(column)} as binary), 256), '{NULL}')" for column in texts]
    parts += [_warehouse_bits(column) for column in numbers]
    digests = f"concat({', '.join(parts)})" if parts else "''"
    return f"cast(conv(left(sha2(cast({digests} as binary), 256), {_DIGITS}), 16, 10) as bigint)"


def _hashed(column: Column) -> str:
    return quoted(column.name) if type_of(column).form is Form.HEX else in_warehouse(column)


def _warehouse_bits(column: Column) -> str:
    kind, function, _, _ = _BITS[comparison_of(column)]
    name = quoted(column.name)
    bits = f"java_method('java.lang.{kind}', '{function}', {name})"
    return f"if({name} is null, '{NULL}', sha2(cast({bits} as binary), 256))"
