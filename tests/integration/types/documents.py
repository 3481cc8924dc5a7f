"""Columns of JSON and GEOMETRY. JSON of MySQL is binary in its log, that of MariaDB is text."""

from __future__ import annotations

import json as notation
from random import Random
from typing import Any

from tests.integration.types.kind import Kind, Make

_OPAQUE = (
    "JSON_OBJECT('t', CAST('10:11:12.5' AS TIME(6)), 'neg', CAST('-838:59:59' AS TIME), 'z', CAST('-00:00:00.000001' AS TIME(6)))",
    "JSON_ARRAY(CAST('0000-00-00' AS DATE), CAST('2024-01-02' AS DATE), CAST('9999-12-31 23:59:59.999999' AS DATETIME(6)))",
    "JSON_ARRAY(TIMESTAMP'2024-01-02 03:04:05.678', CAST('0000-00-00' AS DATETIME), CAST(2024 AS YEAR), b'101', X'FF00')",
    "JSON_OBJECT('a', CAST(1.50 AS DECIMAL(10,4)), 'b', CAST(-0.000000000000000000000000000001 AS DECIMAL(60,30)))",
    "JSON_ARRAY(CAST(99999999999999999999999999999999999999999999999999999999999999999 AS DECIMAL(65,0)), CAST(0 AS DECIMAL))",
    "JSON_OBJECT('b', CAST(REPEAT('x', 40) AS BINARY), 'c', CAST(REPEAT('y', 400) AS BINARY), 'e', CAST('' AS BINARY))",
    "JSON_ARRAY(ST_GeomFromText('POINT(1 2)'))", "CAST(CAST('12:00:00' AS TIME) AS JSON)", "CAST(X'00FF' AS JSON)",
)  # fmt: skip
_PLAIN = (
    "{}", "[]", "null", "true", '"text"', '""', "0", "-1", "32767", "32768", "-32768", "-32769", "2147483647", "2147483648",
    "-2147483649", "9223372036854775807", "-9223372036854775808", "18446744073709551615", "1.5", "-0.0", "1e15", "1e16", "1e100",
    "5e-324", '{"": [], "a": {}}', '[true, false, null, 1, 65536, 4294967296, 0.1, "x"]',
    '"\\\\u0000\\\\u001f\\\\u007f/\\\\"\\\\\\\\"', '{"ü": "😀", "b\\\\n": "\\\\t"}',
)  # fmt: skip


def json(server: str, *, opaque: bool = True) -> list[Kind]:
    """JSON in full: scalars at the sizes of their forms, opaque values, both formats, depth and length.

    The text of opaque values does not tell what they are, so that it cannot be read back.
    """
    depth = 100 if server == "mysql" else 31
    large = [
        "'" + "[" * depth + "]" * depth + "'",
        "'" + '{"k":' * (depth - 1) + "1" + "}" * (depth - 1) + "'",
        "CONCAT('[', REPEAT('12345, ', 20000), '1.5e-300]')",
        'CONCAT(\'{"a": "\', REPEAT(\'x\', 70000), \'", "b": [1, true, "y"], "c": 70000}\')',
        "CONCAT('[\"', REPEAT('x', 127), '\", \"', REPEAT('y', 128), '\", \"', REPEAT('z', 16384), '\"]')",
        "'{" + ", ".join(f'"{"k" * n}": {n}' for n in range(1, 200)) + "}'",
    ]
    edges = [*(f"'{text}'" for text in _PLAIN), *large]
    if server == "mysql" and opaque:
        edges += [
            *_OPAQUE,
            "JSON_SET('{\"a\": \"long enough\", \"b\": 1}', '$.a', 'x')",
            "JSON_ARRAY(1e0, -0e0, 1e-7, 0.1e0)",
        ]
    return [
        Kind("JSON", tuple(edges), _random_json(server)),
        Kind("JSON", tuple(reversed(edges)), _random_json(server)),
    ]


def _random_json(server: str) -> Make:
    def make(random: Random) -> str:
        if server == "mysql" and random.random() < 0.3:
            return random.choice(_OPAQUE)
        text = notation.dumps(_structure(random, 4), ensure_ascii=random.random() < 0.5)
        return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"

    return make


def _structure(random: Random, depth: int) -> Any:
    choice = random.randrange(9 if depth else 6)
    if choice == 0:
        return random.choice((None, True, False))
    if choice == 1:
        return random.randint(-(2**63), 2**64 - 1) >> random.randrange(64)
    if choice == 2:
        return random.choice(
            (random.gauss(0, 1), random.gauss(0, 10 ** random.randint(-20, 20)), float(random.randint(0, 10**9)))
        )
    if choice < 6:
        return "".join(random.choice("ab\"\\\n\t/\x01üあ😀' ") for _ in range(random.choice((0, 1, 5, 130))))
    inner = [_structure(random, depth - 1) for _ in range(random.choice((0, 1, 3, 9)))]
    return inner if choice == 6 else {f"k{random.randrange(99)}{'é' * (n % 3)}": one for n, one in enumerate(inner)}


def geometries(server: str) -> list[Kind]:
    """GEOMETRY of every shape, with and without a reference system."""
    shapes = (
        "POINT(0 0)", "POINT(-1.5 7.25)", "LINESTRING(0 0,1 1,2 -3)", "POLYGON((0 0,1 0,1 1,0 0),(0.1 0.1,0.2 0.1,0.2 0.2,0.1 0.1))",
        "MULTIPOINT(1 1,2 2)", "MULTILINESTRING((0 0,1 1),(2 2,3 3))", "MULTIPOLYGON(((0 0,1 0,1 1,0 0)))",
        "GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 1))", "GEOMETRYCOLLECTION EMPTY",
    )  # fmt: skip
    edges = [f"ST_GeomFromText('{shape}'{srid})" for shape in shapes for srid in ("", ", 4326", ", 3857")]
    points = [edge for edge in edges if "'POINT" in edge]

    def make(random: Random) -> str:
        corners = ",".join(f"{random.gauss(0, 20)!r} {random.gauss(0, 20)!r}" for _ in range(random.randint(2, 40)))
        return f"ST_GeomFromText('LINESTRING({corners})')"

    made = [
        Kind("GEOMETRY", tuple(edges), make),
        Kind("POINT", tuple(points)),
        Kind("GEOMETRYCOLLECTION", tuple(edges[-6:])),
    ]
    return [*made, Kind("GEOMETRY SRID 4326", (points[1],))] if server == "mysql" else made
