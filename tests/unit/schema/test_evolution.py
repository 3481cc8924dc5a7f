"""The schema after ALTER TABLE, and the effects that the log does not have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loader.errors import UnsupportedError
from loader.model.table import Column, TableName, TableSchema
from loader.schema.changes import Altered
from loader.schema.evolution import STRICT, ColumnOrigin, ConstantOrigin, Evolution, Origin, Step, created_like, evolve
from loader.schema.statement_reader import table_changes

NAME = TableName("shop", "t")
ID, A, B = Column("id", "int"), Column("a", "varchar", charset="utf8mb4"), Column("B", "datetime", size=3)
OLD = TableSchema(NAME, (ID, A, B), ("id",))
KEPT = {"id": ColumnOrigin("id"), "a": ColumnOrigin("a"), "B": ColumnOrigin("B")}


def steps(*texts: str, sql_mode: int = STRICT, mariadb: bool = False) -> list[Step]:
    found = []
    for at, text in enumerate(texts):
        (change,) = table_changes(f"ALTER TABLE t {text}", "shop", sql_mode, mariadb)
        assert isinstance(change, Altered), change
        found.append(Step(change, bool(sql_mode & STRICT), f"binlog.000001:{at}", mariadb))
    return found


def evolved(*texts: str, old: TableSchema = OLD, sql_mode: int = STRICT) -> Evolution:
    """Without a table map, and with one that agrees."""
    told = evolve(old, steps(*texts, sql_mode=sql_mode), None)
    known = replace(
        told.schema,
        columns=tuple(
            replace(c, charset=c.charset or ("latin1" if "char" in c.type else "")) for c in told.schema.columns
        ),
    )
    assert evolve(old, steps(*texts, sql_mode=sql_mode), known) == Evolution(known, told.origins)
    return told


def names(told: Evolution) -> list[str]:
    return [column.name for column in told.schema.columns]


def test_no_step_and_the_same_schema() -> None:
    assert evolve(OLD, [], OLD) == evolve(OLD, [], None) == Evolution(OLD, KEPT)


def test_a_character_set_that_is_not_known_is_taken_from_the_log() -> None:
    unknown = replace(OLD, columns=(ID, replace(A, charset=""), B))
    assert evolve(unknown, [], OLD).schema == OLD


ORDERS = {
    "ADD x INT": ["id", "a", "B", "x"],
    "ADD x INT FIRST, ADD y INT AFTER X": ["x", "y", "id", "a", "B"],
    "ADD x INT AFTER id, ADD y INT AFTER id": ["id", "y", "x", "a", "B"],
    "DROP a, ADD a INT": ["id", "B", "a"],
    "RENAME COLUMN a TO b2, RENAME COLUMN b TO a, RENAME COLUMN b2 TO c": None,
    "RENAME COLUMN a TO b, RENAME COLUMN b TO a": ["id", "b", "a"],
    "CHANGE b c DATETIME(6) FIRST, DROP id": ["c", "a"],
    "MODIFY A VARCHAR(9) AFTER b": ["id", "B", "A"],
    "CHANGE a c VARCHAR(9), ADD x INT AFTER c": ["id", "c", "x", "B"],
    "MODIFY id INT AFTER a, MODIFY a VARCHAR(9) AFTER b": ["id", "B", "a"],
    "MODIFY B DATETIME(6) AFTER a, MODIFY a VARCHAR(9) FIRST": ["a", "id", "B"],
    "ADD x INT AFTER c, CHANGE a c VARCHAR(9) FIRST": ["c", "id", "x", "B"],
    "ADD (x INT, y INT), DROP b": ["id", "a", "x", "y"],
}


@pytest.mark.parametrize("text", [text for text, expected in ORDERS.items() if expected])
def test_names_are_those_before_the_statement_and_places_those_after_it(text: str) -> None:
    assert names(evolved(text)) == ORDERS[text]


def test_values_follow_their_column_through_several_statements() -> None:
    told = evolved("RENAME COLUMN a TO b, RENAME COLUMN b TO a", "RENAME COLUMN a TO x, ADD a INT DEFAULT 4", "DROP b")
    assert told.origins == {"id": ColumnOrigin("id"), "x": ColumnOrigin("B"), "a": ConstantOrigin("4")}


def test_conditions_of_mariadb_are_judged_by_the_schema() -> None:
    told = evolved(
        "ADD COLUMN IF NOT EXISTS A INT, DROP COLUMN IF EXISTS c, CHANGE COLUMN IF EXISTS c d INT, ADD IF NOT EXISTS z INT"
    )
    assert told.origins == {**KEPT, "z": ConstantOrigin(None)}


ORIGINS: dict[str, dict[str, Origin]] = {
    "MODIFY id BIGINT": {"id": ColumnOrigin("id")},
    "MODIFY id BIGINT AUTO_INCREMENT": {"id": ColumnOrigin("id", numbered=True)},
    "ADD s TIMESTAMP NULL, MODIFY id INT": {"s": ConstantOrigin(None)},
    "MODIFY a VARCHAR(20)": {"a": ColumnOrigin("a", longest=20)},
    "MODIFY a LONGTEXT": {"a": ColumnOrigin("a")},
    "MODIFY a TINYTEXT": {"a": ColumnOrigin("a", longest=63)},
    "MODIFY b DATETIME(6)": {"b": ColumnOrigin("B")},
    "ADD x INT NOT NULL, ADD y DECIMAL(9,2) DEFAULT 1": {"x": ConstantOrigin("0"), "y": ConstantOrigin("1.00")},
    "ADD x FLOAT(9,2) NOT NULL DEFAULT '0.00', ADD y DECIMAL(9,2) DEFAULT 1.500": {
        "x": ConstantOrigin("0"), "y": ConstantOrigin("1.50"),
    },
    "ADD x INT, ADD PRIMARY KEY (id, x)": {"x": ConstantOrigin("0")},
    "ADD x ENUM('p','q') NOT NULL, ADD y SET('p','q') DEFAULT 'q,p'": {"x": ConstantOrigin("p"), "y": ConstantOrigin("p,q")},
    "ADD x DATETIME(2) DEFAULT '2024-01-02 03:04:05.6'": {"x": ConstantOrigin("2024-01-02 03:04:05.60")},
    "ADD x BINARY(3) DEFAULT 'a', ADD y VARBINARY(3) DEFAULT 0x0": {"x": ConstantOrigin("610000"), "y": ConstantOrigin("00")},
    "ADD x BIT(9) DEFAULT b'101', ADD y FLOAT DEFAULT 0.1, ADD z YEAR NOT NULL": {
        "x": ConstantOrigin("5"), "y": ConstantOrigin("0.1"), "z": ConstantOrigin("0000"),
    },
    "ADD x CHAR(5) DEFAULT 'a  ', ADD y VARCHAR(5) DEFAULT 'a  '": {"x": ConstantOrigin("a"), "y": ConstantOrigin("a  ")},
    "ADD x TIMESTAMP NULL": {"x": ConstantOrigin(None)}, "ADD x JSON NOT NULL": {"x": ConstantOrigin("null")},
    "ADD x TIMESTAMP NOT NULL DEFAULT '0000-00-00 00:00:00'": {"x": ConstantOrigin("0000-00-00 00:00:00")},
    "CONVERT TO CHARACTER SET latin1": KEPT, "ADD INDEX (a), COMMENT 'x'": KEPT,
}  # fmt: skip


@pytest.mark.parametrize("text", list(ORIGINS))
def test_where_values_come_from(text: str) -> None:
    told = evolved(text)
    assert {**told.origins, **ORIGINS[text]} == told.origins


HIDDEN = {
    "DROP id, ADD ID INT NOT NULL": "the key got the new column ID",
    "ADD x INT DEFAULT (RAND())": "the server computed DEFAULT RAND ( )",
    "ADD x DATETIME DEFAULT NOW()": "the server computed",
    "ADD x INT AS (id + 1)": "its values are generated",
    "ADD x INT AUTO_INCREMENT UNIQUE": "the server numbered the rows",
    "ADD x TIMESTAMP": "explicit_defaults_for_timestamp decides",
    "ADD x TIMESTAMP DEFAULT '2024-01-01 00:00:00'": "is not supported",
    "ADD x FLOAT DEFAULT 1e30": "is not supported",
    "ADD x GEOMETRY NOT NULL": "the implicit default of type geometry is not known",
    "ADD x INT NOT NULL DEFAULT (NULL)": "another value than DEFAULT NULL",
    "ADD x INT DEFAULT NULL, ADD PRIMARY KEY (id, x)": "another value than DEFAULT NULL",
    "ADD x DOUBLE NOT NULL DEFAULT '-0.0'": "is not supported",
    "MODIFY id VARCHAR(9)": "column id: int becomes varchar",
    "MODIFY id BIGINT UNSIGNED": "int becomes bigint unsigned",
    "MODIFY a CHAR(9)": "CHAR removes trailing spaces",
    "MODIFY b DATETIME": "datetime(3) becomes datetime",
    "MODIFY b TIMESTAMP(3)": "datetime(3) becomes timestamp(3)",
    "MODIFY id FLOAT(7,2)": "rounds",
    "MODIFY id INT AS (5) STORED": "its values are generated",
    "DROP PARTITION p": "DROP PARTITION",
    "ADD a INT": "the table already had a column a at this position",
    "DROP x": "the table had no column x at this position",
    "ADD x INT AFTER y": "the table had no column y at this position",
    "CHANGE IF EXISTS x y INT, ADD COLUMN IF NOT EXISTS Y INT": "several actions concern column y",
    "ADD PRIMARY KEY (x)": "the table had no column x at this position",
}


HIDDEN_BY_MARIADB = {
    "ADD x INT DEFAULT 5, ALTER X SET DEFAULT 6": "the default of the new column x changes",
    "ADD (x INT DEFAULT 5), ALTER COLUMN IF EXISTS x DROP DEFAULT": "the default of the new column x changes",
    "DROP a, ADD A INT DEFAULT 5": "another column got the name A",
    "DROP COLUMN IF EXISTS a, CHANGE b a DATETIME(3)": "another column got the name a",
    "RENAME COLUMN b TO a, DROP a": "another column got the name a",
}


@pytest.mark.parametrize(
    ("text", "why", "mariadb"),
    [*((*one, False) for one in HIDDEN.items()), *((*one, True) for one in HIDDEN_BY_MARIADB.items())],
)
def test_what_the_log_does_not_tell_is_refused(text: str, why: str, mariadb: bool) -> None:
    with pytest.raises(UnsupportedError, match="the log does not show how ALTER TABLE changed the rows") as caught:
        evolve(OLD, steps("ADD z INT", text, mariadb=mariadb), None)
    assert why in caught.value.why
    assert caught.value.where == {"table": "shop.t", "position": "binlog.000001:1"}
    assert caught.value.hint == "loader initial-load --table shop.t --again"


@pytest.mark.parametrize(
    "text",
    [
        "DROP COLUMN IF EXISTS x, ADD x INT DEFAULT 5, ALTER a SET DEFAULT 'b'",
        "RENAME COLUMN a TO b, CHANGE b a DATETIME(3)",
        "ADD x INT DEFAULT 5, ALTER INDEX x IGNORED, ALTER CONSTRAINT x NOT ENFORCED",
    ],
)
def test_columns_of_mariadb_that_replace_none(text: str) -> None:
    assert evolve(OLD, steps(text, mariadb=True), None).schema != OLD


LOOSE = ["MODIFY id BIGINT", "MODIFY id INT NOT NULL", "MODIFY a VARCHAR(9)", "CONVERT TO CHARACTER SET latin1", "ADD PRIMARY KEY (id)"]  # fmt: skip


@pytest.mark.parametrize("text", LOOSE)
def test_outside_strict_mode_values_may_be_changed_to_fit(text: str) -> None:
    evolved(text)
    with pytest.raises(UnsupportedError) as caught:
        evolve(OLD, steps(text, sql_mode=0), None)
    assert "outside strict mode" in caught.value.why


def test_outside_strict_mode_what_cannot_change_a_value_is_told() -> None:
    told = evolved("MODIFY id INT COMMENT 'x', CHANGE b c DATETIME(3), ADD x INT NOT NULL, DROP a", sql_mode=0)
    assert told.origins == {"id": ColumnOrigin("id"), "c": ColumnOrigin("B"), "x": ConstantOrigin("0")}


def test_a_timestamp_without_null_may_get_the_time_of_the_statement() -> None:
    old = replace(OLD, columns=(ID, Column("s", "timestamp")))
    for text, dated in (("TIMESTAMP(3) NOT NULL", True), ("TIMESTAMP", True), ("TIMESTAMP(6) NULL", False)):
        assert evolved(f"MODIFY s {text}", old=old).origins["s"] == ColumnOrigin("s", dated=dated)
    with pytest.raises(UnsupportedError, match="the log does not show how ALTER TABLE changed"):
        evolve(OLD, steps("ADD s TIMESTAMP NULL", "MODIFY s TIMESTAMP NOT NULL"), None)


LABELS = {
    ("a", "b"): [("a", "b", "c"), ("b", "a"), ("b", "a", "c")],
    ("a", "b", "c"): [("a",), ("c", "x")],
}
CHANGED = {
    ("a", "b"): [("A", "b")],
    ("a", "é"): [("a",), ("a", "e")],
    ("1", "a"): [("a", "2")],
    ("x y", "a"): [("xy", "a")],
}


@pytest.mark.parametrize(("old", "new", "kept"), [
    (old, new, kept) for table, kept in ((LABELS, True), (CHANGED, False)) for old, news in table.items() for new in news
])  # fmt: skip
def test_labels_keep_their_values_unless_one_may_become_another(
    old: tuple[str, ...], new: tuple[str, ...], kept: bool
) -> None:
    before = replace(OLD, columns=(ID, Column("e", "enum", charset="utf8mb4", labels=old)))
    text = "MODIFY e ENUM(" + ",".join(f"'{label}'" for label in new) + ")"
    if kept:
        assert evolved(text, old=before).origins["e"] == ColumnOrigin("e")
        return
    with pytest.raises(UnsupportedError):
        evolve(before, steps(text), None)


@pytest.mark.parametrize(("labels", "charset"), [(("é",), "latin1"), (("a",), "utf16"), (("a",), "DEFAULT")])
def test_servers_do_not_convert_labels(labels: tuple[str, ...], charset: str) -> None:
    before = replace(OLD, columns=(ID, Column("e", "set", charset="utf8mb4", labels=labels)))
    with pytest.raises(UnsupportedError) as caught:
        evolve(before, steps(f"CONVERT TO CHARACTER SET {charset}"), None)
    assert "keeps the bytes of labels" in caught.value.why
    assert evolve(before, steps("CONVERT TO CHARACTER SET utf8mb4"), None) if labels == ("a",) else True


KEYS = {
    "DROP PRIMARY KEY": (), "DROP PRIMARY KEY, ADD PRIMARY KEY (A, id)": ("a", "id"), "RENAME COLUMN id TO k": ("k",),
    "CHANGE id k INT": ("k",), "DROP id": (), "ADD x INT PRIMARY KEY FIRST": ("x",), "ADD UNIQUE (a)": ("id",),
}  # fmt: skip


@pytest.mark.parametrize("text", [text for text in KEYS if "ADD x INT PRIMARY KEY" not in text])
def test_keys(text: str) -> None:
    assert evolved(text).schema.key == KEYS[text]


def test_a_unique_key_can_take_the_place_of_a_primary_key() -> None:
    for text in ("DROP PRIMARY KEY", "ADD UNIQUE (a)", "DROP INDEX i", "MODIFY a VARCHAR(9) NOT NULL", "DROP B"):
        columns = evolve(OLD, steps(text), None).schema.columns
        new = TableSchema(
            NAME, tuple(replace(c, charset=c.charset or "utf8mb4" * (c.name == "a")) for c in columns), ("a",)
        )
        assert evolve(OLD, steps(text), new).schema.key == ("a",)
    keyless = evolve(OLD, steps("DROP PRIMARY KEY"), None).schema
    assert (keyless.key, evolve(keyless, [], replace(OLD, key=("a",))).schema.key) == ((), ("a",))
    with pytest.raises(UnsupportedError, match="does not agree"):
        evolve(OLD, steps("DROP PRIMARY KEY, ADD PRIMARY KEY (id)"), replace(OLD, key=("a",)))


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("ADD PRIMARY KEY IF NOT EXISTS (a)", [("id",), ("a",)]),  # `id` is the primary key, or a unique key
        ("ADD COLUMN IF NOT EXISTS a VARCHAR(9) PRIMARY KEY", [("id",), ("a",)]),
        ("DROP PRIMARY KEY, ADD PRIMARY KEY IF NOT EXISTS (a)", [(), ("a",)]),  # `a` is a unique key
    ],
)
def test_a_primary_key_if_there_is_none(text: str, keys: list[tuple[str, ...]]) -> None:
    assert evolve(OLD, steps(text, mariadb=True), None).schema.key == keys[0]
    assert [evolve(OLD, steps(text, mariadb=True), replace(OLD, key=key)).schema.key for key in keys] == keys


DIFFERENT = {
    "the columns are (id, a), not (id, a, B)": replace(OLD, columns=(ID, A)),
    "the columns are (a, id, B), not (id, a, B)": replace(OLD, columns=(A, ID, B)),
    "column id is bigint, not int": replace(OLD, columns=(replace(ID, type="bigint"), A, B)),
    "column a is varchar latin1, not varchar utf8mb4": replace(OLD, columns=(ID, replace(A, charset="latin1"), B)),
    "column B is datetime, not datetime(3)": replace(OLD, columns=(ID, A, replace(B, size=0))),
    "the key is (a), not (id)": replace(OLD, key=("a",)),
}


@pytest.mark.parametrize("differs", list(DIFFERENT))
def test_a_table_map_that_does_not_follow_from_the_statements(differs: str) -> None:
    with pytest.raises(UnsupportedError, match="table map does not agree with the statements") as caught:
        evolve(OLD, [], DIFFERENT[differs])
    assert caught.value.why == differs
    assert caught.value.hint == "loader initial-load --table shop.t --again"


def test_a_generated_key_stays_first_if_the_log_has_it_there() -> None:
    key, a, x = Column("my_row_id", "bigint", unsigned=True), Column("a", "int"), Column("x", "int")
    old, new = TableSchema(NAME, (key, a), ("my_row_id",)), TableSchema(NAME, (key, x, a), ("my_row_id",))
    told = evolve(old, steps("ADD x INT FIRST"), new)
    assert told.schema == new
    assert told.origins == {"my_row_id": ColumnOrigin("my_row_id"), "x": ConstantOrigin(None), "a": ColumnOrigin("a")}
    between = evolve(old, steps("ADD x INT FIRST"), None).schema
    assert names(evolve(between, [], new)) == ["my_row_id", "x", "a"]
    own = TableSchema(NAME, (x, key, a), ("my_row_id",))
    assert evolve(old, steps("ADD x INT FIRST"), own).schema == own


def test_characters_that_a_set_turns_into_others_are_refused() -> None:
    for charset, kept in (("cp932", False), ("tis620", False), ("sjis", True), ("utf8mb4", True)):
        new = replace(OLD, columns=(ID, replace(A, charset=charset), B))
        if kept:
            assert evolve(OLD, steps("MODIFY a VARCHAR(20)"), new).schema == new
            continue
        with pytest.raises(UnsupportedError) as caught:
            evolve(OLD, steps("MODIFY a VARCHAR(20)"), new)
        assert caught.value.why == f"column a: the conversion to {charset} changes some characters"


@pytest.mark.parametrize("key", [("id",), ()])
def test_a_text_joins_the_key(key: tuple[str, ...]) -> None:
    for charset, kept in (("cp932", False), ("sjis", False), ("koi8r", True), ("utf8mb4", True)):
        old = TableSchema(NAME, (ID, replace(A, charset=charset)), key)
        drop = "DROP PRIMARY KEY, " if key else ""
        if kept:
            assert evolve(old, steps(f"{drop}ADD PRIMARY KEY (a)"), None).schema.key == ("a",)
            continue
        with pytest.raises(UnsupportedError, match="the same text"):
            evolve(old, steps(f"{drop}ADD PRIMARY KEY (a)"), None)
        with pytest.raises(UnsupportedError, match="the same text"):  # an earlier statement added the key
            evolve(old, steps("DROP PRIMARY KEY") if key else [], replace(old, key=("a",)))
        in_key = replace(old, key=("a",))
        assert evolve(in_key, steps("ADD x INT"), None).schema.key == ("a",)


def test_a_text_becomes_longer_with_its_characters() -> None:
    before = replace(OLD, columns=(ID, Column("a", "text", charset="latin1")))
    new = replace(OLD, columns=(ID, Column("a", "mediumtext", charset="utf8mb4")))
    assert evolve(before, steps("CONVERT TO CHARACTER SET utf8mb4"), new).schema == new
    # The first row comes after the end of a merge.
    between = evolve(before, steps("CONVERT TO CHARACTER SET utf8mb4"), None).schema
    assert evolve(between, [], new).schema == new
    with pytest.raises(UnsupportedError, match="does not agree"):
        evolve(new, steps("CONVERT TO CHARACTER SET latin1"), before)


@pytest.mark.parametrize(("charset", "marked"), [("hebrew", True), ("utf8mb4", True), ("latin1", False)])
def test_a_text_that_joins_the_key_is_marked(charset: str, marked: bool) -> None:
    name = Column("v", "varchar", charset=charset)
    before = TableSchema(TableName("s", "t"), (ID, name), ("id",))
    told = evolve(before, steps("ADD UNIQUE KEY (v)"), None)
    assert told.origins == {"id": ColumnOrigin("id"), "v": ColumnOrigin("v")}
    told = evolve(before, steps("DROP PRIMARY KEY, ADD PRIMARY KEY (id, v)"), None)
    assert told.origins == {"id": ColumnOrigin("id"), "v": ColumnOrigin("v", joins_key=marked)}


def test_created_like_has_another_name_alone() -> None:
    assert created_like(TableName("o", "p"), OLD) == TableSchema(TableName("o", "p"), OLD.columns, OLD.key)
