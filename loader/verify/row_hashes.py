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

from loader.types.column_type import Comparison
from loader.verify.comparands import Comparand
from loader.verify.expressions import quoted

NULL = "-"
"""In the place of the digest of a NULL."""
_DIGITS = 15  # hexadecimal digits of a hash
_BITS = {
    Comparison.SINGLE: ("Float", "floatToIntBits", "f", "i"),
    Comparison.DOUBLE: ("Double", "doubleToLongBits", "d", "q"),
}


def hashed_values(compared: Sequence[Comparand]) -> tuple[list[Comparand], list[Comparand]]:
    """Return the values that are hashed as texts, and those that are hashed as bits. Vectors are in neither."""
    texts = [one for one in compared if one.comparison is Comparison.TEXT]
    return texts, [one for one in compared if one.comparison in _BITS]


def server_digests(texts: Sequence[Comparand]) -> str:
    """Return the MySQL expression for the digests of these texts, one after the other."""
    parts = ", ".join(f"COALESCE(SHA2({one.server}, 256), '{NULL}')" for one in texts)
    return f"CONCAT({parts})" if parts else "''"


def server_hash(texts: Sequence[Comparand]) -> str:
    """Return the MySQL expression for the hash of a row of texts."""
    return f"CAST(CONV(LEFT(SHA2({server_digests(texts)}, 256), {_DIGITS}), 16, 10) AS UNSIGNED)"


def row_hash(digests: str, numbers: Sequence[float | None], hashed: Sequence[Comparand]) -> int:
    """Return the hash of a row on the server, from the digests of its texts and from its numbers."""
    bits = "".join(_bits_digest(number, one) for number, one in zip(numbers, hashed, strict=True))
    return int(hashlib.sha256((digests + bits).encode()).hexdigest()[:_DIGITS], 16)


def _bits_digest(number: float | None, compared: Comparand) -> str:
    if number is None:
        return NULL
    _, _, kind, integer = _BITS[compared.comparison]
    (bits,) = struct.unpack(f"<{integer}", struct.pack(f"<{kind}", number))
    return hashlib.sha256(str(bits).encode()).hexdigest()


def warehouse_hash(compared: Sequence[Comparand]) -> str:
    """Return the Spark expression for the hash of a row."""
    texts, numbers = hashed_values(compared)
    parts = [f"coalesce(sha2(cast({_hashed(one)} as binary), 256), '{NULL}')" for one in texts]
    parts += [_warehouse_bits(one) for one in numbers]
    digests = f"concat({', '.join(parts)})" if parts else "''"
    return f"cast(conv(left(sha2(cast({digests} as binary), 256), {_DIGITS}), 16, 10) as bigint)"


def _hashed(text: Comparand) -> str:
    return quoted(text.name) if text.is_binary else text.warehouse


def _warehouse_bits(number: Comparand) -> str:
    kind, function, _, _ = _BITS[number.comparison]
    name = quoted(number.name)
    bits = f"java_method('java.lang.{kind}', '{function}', {name})"
    return f"if({name} is null, '{NULL}', sha2(cast({bits} as binary), 256))"
