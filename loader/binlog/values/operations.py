"""The operations of a column's program, by which kernels write a value as staged text."""

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
"""Fields of a column: operation; bytes of the length before a variable value; bytes of a fixed one, the fewest that a
variable one is written as, or the operation of what is compressed; two arguments; the longest text of a fixed one, or
of a byte of a variable one."""

PACKED = 16
OLD_FORMAT = 32
HEXED = 32
"""Added to the operation of a text: bytes that are none of its character set are written as hex."""
