"""Random tables: columns of every type, keys of every shape, odd names."""

from __future__ import annotations

from random import Random

from tests.chaos.access.columns import quoted
from tests.chaos.statements.values import text

_BOTH = [
    "TINYINT", "SMALLINT UNSIGNED", "MEDIUMINT", "INT", "INT UNSIGNED", "BIGINT", "BIGINT UNSIGNED", "DECIMAL(10,2)",
    "DECIMAL(38,10)", "DECIMAL(65,30)", "DECIMAL(5,0)", "FLOAT", "DOUBLE", "BIT(1)", "BIT(13)", "BIT(64)", "YEAR", "DATE",
    "DATETIME", "DATETIME(3)", "DATETIME(6)", "TIMESTAMP NULL", "TIMESTAMP(6) NULL", "TIME", "TIME(2)", "CHAR(7)",
    "VARCHAR(20)", "VARCHAR(300)", "VARCHAR(20) CHARACTER SET latin1", "VARCHAR(30) CHARACTER SET utf8mb3",
    "CHAR(5) CHARACTER SET ucs2", "VARCHAR(9) CHARACTER SET utf16", "VARCHAR(12) CHARACTER SET cp1251", "TINYTEXT", "TEXT",
    "MEDIUMTEXT", "LONGTEXT", "BINARY(5)", "VARBINARY(30)", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB",
    "ENUM('a','b','c','d''e')", "SET('x','y','z')", "JSON", "POINT",
    "SET('','a','b')", "ENUM('','x')", "VARCHAR(10) CHARACTER SET gbk", "CHAR(6) CHARACTER SET sjis", "CHAR(3)",
    "VARCHAR(8) CHARACTER SET utf32", "CHAR(4) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "BINARY(1)",
    "TINYINT UNSIGNED", "INT(6) ZEROFILL", "DECIMAL(9,4) UNSIGNED", "FLOAT(8,3)", "DOUBLE UNSIGNED", "TIME(6)", "BIT(8)",
    "DATETIME(1)", "GEOMETRY", "ENUM('é','ß') CHARACTER SET latin1", "VARCHAR(8) CHARACTER SET big5",
    "VARCHAR(8) CHARACTER SET ujis", "VARCHAR(8) CHARACTER SET euckr", "DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)",
    "VARCHAR(36) DEFAULT (UUID())", "VARCHAR(8) CHARACTER SET cp932", "VARCHAR(8) CHARACTER SET gb18030",
    "VARCHAR(8) CHARACTER SET eucjpms", "VARCHAR(8) CHARACTER SET utf16le", "VARCHAR(9) CHARACTER SET koi8r",
    "TEXT CHARACTER SET tis620", "DATE NOT NULL DEFAULT '0000-00-00'", "TIMESTAMP(2) NOT NULL DEFAULT CURRENT_TIMESTAMP(2)",
]  # fmt: skip
_OWN = {
    "mariadb": [*["UUID", "INET6", "INET4"] * 3, "VARCHAR(200) COMPRESSED", "TEXT COMPRESSED", "BLOB COMPRESSED"],
    "mysql": ["VECTOR(3)", "VECTOR(40)"],
}
_KEYS = [
    "INT", "BIGINT UNSIGNED", "SMALLINT", "VARCHAR(20)", "VARCHAR(20) COLLATE utf8mb4_bin", "CHAR(8)", "VARBINARY(8)", "DATE",
    "DATETIME(3)", "DECIMAL(8,2)", "ENUM('a','b','c','d','e','f')", "VARCHAR(16) CHARACTER SET latin1",
    "DOUBLE", "FLOAT", "TIME(2)", "TIMESTAMP(3)", "YEAR", "SET('x','y','z','u','v')", "BIT(16)", "BINARY(4)",
]  # fmt: skip
_PADDED = {"mariadb": "CHAR(8) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"}
"""A key whose index compares other values than conditions do, instead of CHAR(8)."""
_ODD_TABLES = [
    "Order Items",
    "ünïcode",
    "select",
    "quote'd",
    "UPPER",
    "a-b",
    'double"d',
    "tick`ed",
    "x" * 60,
    "emo_日本",
    "orders.bak",
    "a/b",
    "back\\slash",
    "co:lon",
    "50%",
    "#x",
    "why?",
]
_ODD_COLUMNS = ["group", "Two Words", "ünï", "it's", "tick`", "dash-ed", "per%cent", "a,b", "point.ed", "UPPER", "日本"]


def column_type(rng: Random, kind: str) -> str:
    """Return a random type for a column that is not part of a key."""
    return rng.choice(_BOTH + _OWN[kind])


def column_name(rng: Random, taken: set[str]) -> str:
    """Return a name that no column of the table has, by the server's case-insensitive rule."""
    lower = {one.lower() for one in taken}
    odd = [one for one in _ODD_COLUMNS if one.lower() not in lower]
    if odd and rng.random() < 0.15:
        return rng.choice(odd)
    return next(f"c{n}" for n in range(1000) if f"c{n}" not in lower)


def table_name(rng: Random, taken: set[str]) -> str:
    """Return a name that no table has, odd at times."""
    odd = [one for one in _ODD_TABLES if one not in taken]
    if odd and rng.random() < 0.2:
        return rng.choice(odd)
    return next(f"t{n}" for n in range(1000) if f"t{n}" not in taken)


def create_table(rng: Random, kind: str, name: str, *, keyed: bool = False) -> str:
    """Return the CREATE TABLE of a random table; with a primary key if it must be `keyed`."""
    parts, names = [], set[str]()
    key = _key(rng, kind) or (["INT"] if keyed else [])
    for place, declared in enumerate(key):
        parts.append(f"k{place} {declared} NOT NULL")
    for _ in range(rng.randint(1, 7)):
        found = column_name(rng, names)
        names.add(found)
        parts.append(column(rng, kind, found))
    if key == ["INT"] and rng.random() < 0.3:
        parts.append("calc INT GENERATED ALWAYS AS (k0 * 2 - 1) " + rng.choice(["STORED", "VIRTUAL"]))
    rng.shuffle(parts)
    if key:
        order = [f"k{place}" for place in range(len(key))]
        rng.shuffle(order)
        declared_as = "PRIMARY KEY" if keyed or rng.random() < 0.9 else "UNIQUE KEY"
        parts.append(f"{declared_as} ({', '.join(order)})")
    return f"CREATE TABLE {quoted(name)} (\n  {', '.join(parts)}\n) {_options(rng, key)}".rstrip()


def column(rng: Random, kind: str, name: str) -> str:
    """Return the definition of a random column, with a default at times, invisible at times."""
    declared = column_type(rng, kind)
    found = f"{quoted(name)} {declared}"
    if "NULL" not in declared and rng.random() < 0.2:
        found += " NOT NULL" + ("" if "DEFAULT" in declared else _default(rng, declared))
    if rng.random() < 0.06 and "NOT NULL" not in found:
        found += " INVISIBLE"
    return found


def _default(rng: Random, declared: str) -> str:
    base = declared.split("(", maxsplit=1)[0].split(maxsplit=1)[0]
    if base in {"TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "DECIMAL", "FLOAT", "DOUBLE"}:
        return rng.choice(["", f" DEFAULT {rng.randint(0, 100)}"])
    if base in {"CHAR", "VARCHAR"}:
        return rng.choice(["", f" DEFAULT {text('dé')}" if "ascii" not in declared and "1251" not in declared else ""])
    return ""


def _key(rng: Random, kind: str) -> list[str]:
    shape = rng.random()
    if shape < 0.12:
        return []
    if shape < 0.5:
        return ["INT"]
    found = [rng.choice(_KEYS) for _ in range(rng.choice([1, 1, 2, 3]))]
    return [_PADDED.get(kind, one) if one == "CHAR(8)" else one for one in found]


def _options(rng: Random, key: list[str]) -> str:
    found = rng.choice(["", "", "DEFAULT CHARSET=utf8mb4", "DEFAULT CHARSET=latin1"])
    if key == ["INT"] and rng.random() < 0.25:
        found += rng.choice(_PARTITIONS)
    return found


_PARTITIONS = [
    " PARTITION BY HASH (k0) PARTITIONS 3",
    " PARTITION BY RANGE (k0) (PARTITION p0 VALUES LESS THAN (15), PARTITION p1 VALUES LESS THAN (40),"
    " PARTITION p2 VALUES LESS THAN MAXVALUE)",
    " PARTITION BY LIST (k0 MOD 3) (PARTITION p0 VALUES IN (0), PARTITION p1 VALUES IN (1, -1),"
    " PARTITION p2 VALUES IN (2, -2))",
]
