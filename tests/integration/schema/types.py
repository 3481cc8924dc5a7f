"""Column types with values at their limits, as SQL."""

from __future__ import annotations

_LONG = "REPEAT('x', 300)"
_TEXTS = (
    "''", "'a'", "'abc  '", "'  '", "'héé'", "'12'", "'0'", "'1.5'", "'x,y'", "'X'", "'2024-02-29'", "'null'", "'ß '",
    "'2024-02-29 12:34:56'", "'12:34:56'", "'漢字😀'", "'line\\nbreak\\\\'", "REPEAT('x', 60)", "CONCAT(REPEAT('x', 8), '     ')",
    "'abc\\t'", "'xxxx\\r\\n'",
)  # fmt: skip
_LATIN = tuple(text for text in _TEXTS if "漢" not in text)
_LARGE = (
    *_TEXTS,
    _LONG,
    "CONCAT(REPEAT('x', 250), REPEAT(' ', 60))",
    "CONCAT(REPEAT('é', 200), ' ')",
    "REPEAT('漢', 84)",
)
_BYTES = ("''", "X'00'", "X'61'", "X'6100'", "X'612020'", "X'ff00ff'", "X'3132'", "X'20'", "X'0000000000'")
_MOMENTS = (
    "'0000-00-00'", "'2024-00-15'", "'1000-01-01'", "'9999-12-31 23:59:59'", "'2024-02-29 12:34:56.4'", "'2000-01-01 00:00:00'",
)  # fmt: skip


def _integers() -> dict[str, tuple[str, ...]]:
    found = {}
    for name, bits in (("TINYINT", 8), ("SMALLINT", 16), ("MEDIUMINT", 24), ("INT", 32), ("BIGINT", 64)):
        for sign, low, high in ((" UNSIGNED", 0, 2**bits - 1), ("", -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)):
            found[name + sign] = ("0", "1", "100", str(low), str(high), str(high // 2 + 1))
    return found


def _decimal(precision: int, scale: int) -> dict[str, tuple[str, ...]]:
    nines = "9" * (precision - scale) + ("." + "9" * scale if scale else "")
    return {f"DECIMAL({precision},{scale})": ("0", "1", "-1", nines, f"-{nines}", "0.5", "12.25")}


_NUMBERS = {
    **_integers(),
    **{name: values for shape in ((5, 0), (10, 0), (5, 2), (10, 2), (38, 2), (40, 2), (65, 2)) for name, values in _decimal(*shape).items()},
    "FLOAT": ("0", "0.1", "-1.5", "16777216", "3.4e38", "1e-40", "123456.7"),
    "DOUBLE": ("0e0", "0.1e0", "-1.5e0", "1e300", "16777217e0", "123456.7e0"),
    "FLOAT(7,2)": ("0", "0.1", "12345.67"),
    "DOUBLE(9,1)": ("0", "0.1", "12345.6"),
    "BIT(1)": ("b'0'", "b'1'"),
    "BIT(9)": ("b'0'", "b'1'", "b'111111111'"),
    "BIT(63)": ("0", "1", "9223372036854775807"),
    "BIT(64)": ("0", "1", "18446744073709551615"),
    "YEAR": ("0", "1901", "2024", "2155"),
    "YEAR UNSIGNED": ("0", "2155"),
    "YEAR(4) ZEROFILL": ("0", "2155"),
}  # fmt: skip
_TIMES = {
    "DATE": ("'0000-00-00'", "'2024-02-29'", "'2024-00-15'", "'1000-01-01'"),
    "DATETIME": _MOMENTS,
    "DATETIME(3)": _MOMENTS,
    "DATETIME(6)": (*_MOMENTS, "'2024-02-29 12:34:56.400001'"),
    "TIMESTAMP NULL": ("'2024-02-29 12:34:56.4'", "'1970-01-01 00:00:01'"),
    "TIMESTAMP(6) NULL": ("'2024-02-29 12:34:56.4'", "'2024-02-29 12:34:56.400001'"),
    "TIME": ("'00:00:00'", "'-838:59:59'", "'12:34:56.6'"),
    "TIME(2)": ("'00:00:00'", "'-838:59:59'", "'12:34:56.6'"),
}
_STRINGS = {
    "CHAR(1)": ("''", "'a'", "'é'"),
    "CHAR(12)": tuple(text for text in _TEXTS if "REPEAT" not in text and "2024" not in text),
    "CHAR(200)": _TEXTS,
    "VARCHAR(4)": ("''", "'a'", "'abc '", "'  '", "'漢字😀'", "'12'"),
    "VARCHAR(12)": tuple(text for text in _TEXTS if "REPEAT('x', 60)" not in text and "2024" not in text),
    "VARCHAR(400)": _LARGE,
    "TINYTEXT": _TEXTS,
    "TEXT": _LARGE,
    "MEDIUMTEXT": (*_LARGE, "CONCAT(REPEAT('x', 65530), REPEAT(' ', 10))"),
    "LONGTEXT": (*_LARGE, "CONCAT(REPEAT('x', 65530), REPEAT(' ', 10))"),
    "CHAR(12) CHARACTER SET latin1": tuple(text for text in _LATIN if "REPEAT" not in text and "2024" not in text),
    "VARCHAR(300) CHARACTER SET latin1": (*_LATIN, _LONG.replace("300", "299")),
    "TEXT CHARACTER SET latin1": (*_LATIN, _LONG),
    "VARCHAR(100) CHARACTER SET utf16": _TEXTS,
    "TEXT CHARACTER SET sjis": ("''", "'a'", "'漢字'", "'ソ\\\\'"),
    "VARCHAR(30) CHARACTER SET ascii": ("''", "'a'", "'abc  '"),
    "BINARY(1)": ("''", "'a'", "X'00'", "X'ff'", "' '"),
    "BINARY(5)": _BYTES,
    "VARBINARY(1)": ("''", "'a'", "X'00'", "X'ff'", "' '"),
    "VARBINARY(5)": _BYTES,
    "VARBINARY(300)": (*_BYTES, _LONG.replace("300", "299"), "CONCAT(REPEAT('x', 250), REPEAT(X'20', 50))"),
    "TINYBLOB": _BYTES,
    "BLOB": (*_BYTES, _LONG, "CONCAT(REPEAT('x', 250), REPEAT(X'20', 50))", "CONCAT(REPEAT('x', 250), REPEAT(X'00', 50))"),
    "LONGBLOB": (*_BYTES, _LONG),
    "ENUM('a','b','c')": ("'a'", "'b'", "'c'", "0"),
    "ENUM('c','b','a','d')": ("'a'", "'b'", "'c'", "'d'", "0"),
    "ENUM('a','b')": ("'a'", "'b'"),
    "ENUM('A','b','Ä')": ("'A'", "'b'"),
    "ENUM('1','2','x y','é')": ("'1'", "'2'", "'x y'", "'é'"),
    "ENUM('3','2','x')": ("'3'", "'2'", "'x'"),
    "ENUM('é','e') CHARACTER SET latin1 COLLATE latin1_bin": ("'é'", "'e'"),
    "ENUM('','a')": ("''", "'a'", "0"),
    "SET('a','b','c')": ("''", "'a'", "'b,c'", "'a,b,c'"),
    "SET('x','a','y','b','c','d')": ("''", "'a'", "'b,c'", "'x,a,b,c'"),
    "SET('c','b','a')": ("''", "'a'", "'b,c'"),
    "SET('a','c')": ("''", "'a'", "'a,c'"),
    "JSON": ("'1'", "'null'", "'{\"a\": [1, 2]}'", "'\"x\"'"),
    "GEOMETRY": ("ST_GeomFromText('POINT(1 2)')", "ST_GeomFromText('LINESTRING(0 0,1 1)', 4326)"),
    "POINT": ("ST_GeomFromText('POINT(1 2)')",),
}  # fmt: skip
_OF_SERVERS = {
    "mariadb": {"INET6": ("'::'", "'2001:db8::1'"), "INET4": ("'1.2.3.4'",), "UUID": ("'123e4567-e89b-12d3-a456-426614174000'",)},
    "mysql": {"VECTOR(3)": ("STRING_TO_VECTOR('[1,2,3]')", "STRING_TO_VECTOR('[1,2]')"), "VECTOR(5)": ("STRING_TO_VECTOR('[1,2,3]')",)},
}  # fmt: skip


def all_types(kind: str) -> dict[str, tuple[str, ...]]:
    """Every type of a server, as it is declared, and its values."""
    return {**_NUMBERS, **_TIMES, **_STRINGS, **_OF_SERVERS[kind]}
