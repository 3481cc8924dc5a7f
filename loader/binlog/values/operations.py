"""Operations of a column's program: how kernels write a value as staged text."""

from __future__ import annotations

(
    INT,
    UINT,
    FLOAT,
    DOUBLE,
    DECIMAL,
    YEAR,
    DATE,
    DATETIME,
    TIMESTAMP,
    TIME,
    BIT,
    ENUM,
    SET,
    UTF8,
    LATIN1,
    HEX,
    JSON,
    SINGLE,
    MULTIBYTE,
    UNICODE,
    VECTOR,
    COMPRESSED,
    UUID,
    INET4,
    INET6,
    OLD,
) = range(26)

OP, PREFIX, SIZE, X, Y, MOST = range(6)
"""Fields of a column's program.

OP: operation.
PREFIX: bytes of the length before a value; 0 for values of a fixed size.
SIZE: bytes of a fixed value; or the bytes to which a variable value is padded; or (COMPRESSED) the operation of the
    decompressed value.
X, Y: two arguments of the operation.
MOST: maximum bytes of text of a fixed value, or per byte of a variable value.
"""

PACKED = 16
"""Added to a column's length prefix: the server compresses its values."""
OLD_FORMAT = 32
"""Instead of a column's length prefix: its values have an old temporal format, see legacy_temporal."""
HEXED = 32
"""Added to the operation of a text: bytes that are invalid in its character set are written as hex."""
HEXED_KEY = 2 * HEXED
"""Added instead of HEXED to the operation of a text in a key: a text that looks like that hex is invalid.

In the warehouse, both would be the same key.
"""
