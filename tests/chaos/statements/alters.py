"""Columns, keys and partitions of tables change."""

from __future__ import annotations

from random import Random

from tests.chaos.access.columns import quoted
from tests.chaos.statements.catalogue import Catalogue
from tests.chaos.statements.schema import column, column_name, column_type
from tests.chaos.statements.transactions import Table
from tests.chaos.statements.values import text

_WIDER = {
    "tinyint": "SMALLINT", "smallint": "INT", "mediumint": "INT", "int": "BIGINT", "float": "DOUBLE", "tinytext": "TEXT",
    "text": "MEDIUMTEXT", "varchar": "VARCHAR(400)", "char": "CHAR(30)", "varbinary": "VARBINARY(60)", "blob": "LONGBLOB",
}  # fmt: skip


def change_columns(catalogue: Catalogue) -> None:
    for table in catalogue.some(1, kept=True):
        catalogue.do(*catalogue.changes(table.name), alter(catalogue, table))
        catalogue.do(*catalogue.changes(table.name))


def alter(catalogue: Catalogue, table: Table) -> str:
    rng = catalogue.rng
    parts = [_part(catalogue, table) for _ in range(rng.choice([1, 1, 1, 2]))]
    return f"ALTER TABLE {table.quoted} {', '.join(parts)}"


def _part(catalogue: Catalogue, table: Table) -> str:
    rng = catalogue.rng
    names = {one.name for one in table.columns}
    if not table.others or (rng.random() < 0.4 and len(names) < 12):
        new = column(rng, catalogue.kind, column_name(rng, names))
        where = rng.choice(["", "", " FIRST", f" AFTER {rng.choice(table.columns).quoted}" if table.columns else ""])
        return f"ADD COLUMN {new}{where}"
    chosen, shape = rng.choice(table.others), rng.random()
    if shape < 0.35 and len(table.others) > 1:
        return f"DROP COLUMN {chosen.quoted}"
    if shape < 0.6:
        return f"RENAME COLUMN {chosen.quoted} TO {quoted(column_name(rng, names))}"
    if shape < 0.85 and chosen.type in _WIDER and "unsigned" not in chosen.declared:
        where = rng.choice(["", " FIRST"])
        return f"MODIFY COLUMN {chosen.quoted} {_WIDER[chosen.type]}{_charset(chosen.charset)}{where}"
    if shape < 0.89:
        index = f"ADD INDEX ({chosen.quoted})" if chosen.type in {"int", "bigint", "date", "datetime"} else "FORCE"
        return rng.choice([index, "ENGINE=InnoDB", "COMMENT 'x; RENAME TABLE a TO b'", "FORCE"])
    if shape < 0.91:
        return f"MODIFY COLUMN {chosen.quoted} {column_type(rng, catalogue.kind)}"
    return f"CONVERT TO CHARACTER SET {rng.choice(['utf8mb4', 'utf8mb4', 'latin1'])}"


def _charset(charset: str | None) -> str:
    return f" CHARACTER SET {charset}" if charset else ""


def change_key(catalogue: Catalogue) -> None:
    for table in catalogue.some(1):
        names = [one.quoted for one in table.key]
        extra = [one.quoted for one in table.others if one.type in _OF_KEYS and not one.nullable]
        drop = ["DROP PRIMARY KEY"] if names else []
        new = catalogue.rng.choice([names[::-1], names + extra[:1], extra[:1] + names, []])
        add = [f"ADD PRIMARY KEY ({', '.join(dict.fromkeys(new))})"] if new else []
        if drop + add:
            catalogue.do(*catalogue.changes(table.name))
            catalogue.do(f"ALTER TABLE {table.quoted} {', '.join(drop + add)}")
            catalogue.do(*catalogue.changes(table.name))


def extend_key(catalogue: Catalogue) -> None:
    """Add a column to the key of a table that keeps more. A comment tells the comparison the key before."""
    rng = catalogue.rng
    for table in catalogue.keeping() if catalogue.alone else []:
        names = [one.quoted for one in table.key]
        extra = [
            one.quoted for one in table.others if one.type in _OF_KEYS and not one.nullable and "`" not in one.name
        ]
        add = ""
        if not extra and len(names) < 4 and rng.random() < 0.7:
            extra = [quoted(column_name(rng, {one.name for one in table.columns}))]
            add = f"ADD COLUMN {extra[0]} INT NOT NULL DEFAULT {rng.randint(1, 9)}, "
        key = rng.choice([names + extra[:1], (names + extra[:1])[::-1]])
        catalogue.do(
            *catalogue.changes(table.name),
            f"ALTER TABLE {table.quoted} {add}DROP PRIMARY KEY, ADD PRIMARY KEY ({', '.join(key)}) /* was {', '.join(names)} */",
        )
        catalogue.do(*catalogue.changes(table.name), *catalogue.changes(table.name))


def alter_otherwise(catalogue: Catalogue) -> None:
    """Add a column with a default in a session of another character set, sql_mode or time zone."""
    rng = catalogue.rng
    for table in catalogue.some(1, kept=True):
        setting, back = rng.choice(_SETTINGS["both"] + _SETTINGS[catalogue.kind])
        new = quoted(column_name(rng, {one.name for one in table.columns}))
        part = rng.choice([f"ADD COLUMN {new} {rng.choice(_DEFAULTS)}", *_restricted(rng, table)])
        before, after = catalogue.changes(table.name), catalogue.changes(table.name)
        catalogue.do(*before, setting, f"ALTER TABLE {table.quoted} {part}", *after, back)


def _restricted(rng: Random, table: Table) -> list[str]:
    """Return changes of columns that the server makes only if a session's modes, or the rows, allow it."""
    chosen = [one for one in table.others if one.type in {"int", "varchar", "enum", "set", "datetime", "decimal"}]
    if not chosen:
        return []
    one = rng.choice(chosen)
    kind = f"{one.declared}{_charset(one.charset)}"
    if one.type in {"enum", "set"}:
        labels = rng.sample([*one.labels, "new"], k=len(one.labels) + 1)
        kind = f"{one.type.upper()}({', '.join(map(text, labels))}){_charset(one.charset)}"
    return [f"MODIFY COLUMN {one.quoted} {kind} {rng.choice(['NULL', 'NOT NULL'])}"]


def by_statement(catalogue: Catalogue) -> None:
    """Change rows in a session that logs statements: the log does not say which rows."""
    if catalogue.rng.random() < 0.4:  # it stops tables, which hides what else happens to them
        for table in catalogue.some(1):
            before, after = catalogue.changes(table.name), catalogue.changes(table.name)
            logged = catalogue.changes(table.name)
            catalogue.do(
                *before, "SET SESSION binlog_format = STATEMENT", *logged, "SET SESSION binlog_format = ROW", *after
            )


_OF_KEYS = {"int", "date", "varchar"}
_NAMES, _MODE = "SET NAMES utf8mb4", "SET SESSION sql_mode = DEFAULT"
_SETTINGS = {
    "both": [
        *((f"SET NAMES {charset}", _NAMES) for charset in ("latin1", "binary", "gbk", "cp1251", "swe7")),
        *(
            (f"SET SESSION sql_mode = '{mode}'", _MODE)
            for mode in ("ANSI_QUOTES,NO_BACKSLASH_ESCAPES", "", "TRADITIONAL", "ANSI")
        ),
        ("SET SESSION time_zone = '-07:00'", "SET SESSION time_zone = '+00:00'"),
    ],
    "mysql": [("SET SESSION sql_mode = 'TIME_TRUNCATE_FRACTIONAL'", _MODE)],
    "mariadb": [
        (f"SET SESSION sql_mode = '{mode}'", _MODE)
        for mode in ("EMPTY_STRING_IS_NULL", "TIME_ROUND_FRACTIONAL", "ORACLE")
    ],
}
"""Of both servers and of one of them: settings of a session that change what literals mean, and how to go back."""
_DEFAULTS = [
    r"VARCHAR(20) DEFAULT 'a\\b'",
    "VARCHAR(20) NOT NULL DEFAULT _utf8mb4'é'",
    "VARCHAR(20) CHARACTER SET latin1 NOT NULL DEFAULT N'é'",
    "CHAR(6) CHARACTER SET ucs2 NOT NULL DEFAULT 'dé '",
    "VARCHAR(6) NOT NULL DEFAULT ''",
    "VARCHAR(6) NOT NULL DEFAULT 12",
    "DATE NOT NULL DEFAULT '20-1-2'",
    "DATE NOT NULL DEFAULT 20200102",
    "TIME(1) NOT NULL DEFAULT '-1:2:3.46'",
    "DATETIME(1) NOT NULL DEFAULT '2020-02-02 02:02:02.987'",
    "YEAR NOT NULL DEFAULT 5",
    "INT NOT NULL DEFAULT '7'",
    "INT NOT NULL DEFAULT x'31'",
    "BIT(8) NOT NULL DEFAULT b'101'",
    "DECIMAL(4,1) NOT NULL DEFAULT 1.25",
    "FLOAT NOT NULL DEFAULT 0.1",
    "DOUBLE NOT NULL DEFAULT -0.0",
    "ENUM('a','b') NOT NULL DEFAULT 'B'",
    "SET('a','b') NOT NULL DEFAULT 'b,a'",
    "BINARY(4) NOT NULL DEFAULT 'ab'",
    "INT NULL DEFAULT (NULL)",
    "JSON NOT NULL",
    "VARCHAR(20) DEFAULT 'dé'",
    "TIMESTAMP(3) NULL DEFAULT '2020-02-02 02:02:02.123'",
    "DATETIME NOT NULL DEFAULT '2020-02-02 02:02:02'",
    "VARBINARY(9) NOT NULL DEFAULT x'00ff'",
    "INT NOT NULL",
    "ENUM('é','b') NOT NULL",
    "DECIMAL(9,3) DEFAULT 1.5",
    "TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3)",
    "DATETIME DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP",
    "VARCHAR(36) DEFAULT (UUID())",
    "BIGINT UNSIGNED NOT NULL AUTO_INCREMENT UNIQUE",
    "INT GENERATED ALWAYS AS (1 + 1) STORED",
]
