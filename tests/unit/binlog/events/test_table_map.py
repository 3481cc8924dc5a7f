"""A table map becomes the table's schema: names, types, signs, lengths, character sets, labels, key."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loader.binlog.events.table_map import read_table_map
from loader.binlog.values.charsets import charset_of
from loader.errors import BinlogFormatError, UnsupportedError
from loader.model.table import Column, TableName, TableSchema
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.fields import (
    ASCII,
    BINARY,
    LATIN1,
    UTF8MB3,
    Table,
    bit,
    blob,
    char,
    date,
    datetime,
    decimal,
    enum,
    floating,
    integer,
    json,
    set_of,
    time,
    timestamp,
    varchar,
    year,
)  # fmt: skip
from tests.unit.binlog.reading import staged

EVERYTHING = Table(
    "shop", "all",
    (
        integer("i1", 1), integer("u1", 1, unsigned=True), integer("i2", 2), integer("i3", 3, unsigned=True), year("y"),
        integer("i4", 4), integer("u8", 8, unsigned=True), decimal("d", 20, 4), floating("f", 4), floating("g", 8),
        varchar("v", 100), varchar("w", 300, LATIN1), varchar("x", 10, BINARY), char("c", 40, ASCII),
        char("b", 16, BINARY), char("long", 1020, UTF8MB3), blob("t1", 1, LATIN1), blob("t2", 2, UTF8MB3),
        blob("b3", 3), blob("b4", 4), date(), datetime("dt", 6), timestamp("ts", 3), time("tm", 1), bit("t", 12),
        enum("e", ["a", "b'"]), set_of("s", ["p", "q"], LATIN1), enum("e2", ["z"]), json("j"),
    ),
    key=(5, 0),
)  # fmt: skip
COLUMNS = (
    Column("i1", "tinyint"), Column("u1", "tinyint", unsigned=True), Column("i2", "smallint"),
    Column("i3", "mediumint", unsigned=True), Column("y", "year"), Column("i4", "int"),
    Column("u8", "bigint", unsigned=True), Column("d", "decimal", size=20, scale=4), Column("f", "float"),
    Column("g", "double"), Column("v", "varchar", charset="utf8mb4"), Column("w", "varchar", charset="latin1"),
    Column("x", "varbinary"), Column("c", "char", charset="ascii"), Column("b", "binary", size=16),
    Column("long", "char", charset="utf8mb3"), Column("t1", "tinytext", charset="latin1"),
    Column("t2", "text", charset="utf8mb3"), Column("b3", "mediumblob"), Column("b4", "longblob"),
    Column("day", "date"), Column("dt", "datetime", size=6), Column("ts", "timestamp", size=3),
    Column("tm", "time", size=1),
    Column("t", "bit", size=12), Column("e", "enum", charset="utf8mb4", labels=("a", "b'")),
    Column("s", "set", charset="latin1", labels=("p", "q")), Column("e2", "enum", charset="utf8mb4", labels=("z",)),
    Column("j", "json"),
)  # fmt: skip


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("prefixes", [False, True])
def test_every_type_with_both_forms_of_collations_and_keys(listed: bool, prefixes: bool) -> None:
    body = EVERYTHING.body(77, optional=EVERYTHING.optional(listed=listed, prefixes=prefixes))
    schema, lengths = read_table_map(body).schema()
    assert schema == TableSchema(TableName("shop", "all"), COLUMNS, ("i4", "i1"))
    assert [lengths[index] for index in (10, 11, 12, 13, 15, 16, 17, 18, 19, 28)] == [1, 2, 1, 1, 2, 1, 2, 3, 4, 4]


def test_a_table_without_key_has_none() -> None:
    schema, _ = read_table_map(Table("s", "t", (integer(),), key=()).body(1)).schema()
    assert schema.key == ()


@settings(deadline=None, max_examples=100)
@given(st.lists(st.booleans(), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_signs_are_counted_over_numbers_only(signs: list[bool], random: Random) -> None:
    fields = []
    for index, unsigned in enumerate(signs):
        fields += [varchar(f"v{index}")] * random.randint(0, 1) + [integer(f"n{index}", 4, unsigned=unsigned)]
    schema, _ = read_table_map(Table("s", "t", tuple(fields), ()).body(1)).schema()
    assert [column.unsigned for column in schema.columns if column.type == "int"] == signs


@settings(deadline=None, max_examples=100)
@given(st.lists(st.sampled_from([255, 8, 33, 11, 63, 45, 46]), min_size=1, max_size=40), st.booleans())
def test_collations_are_counted_over_texts_only(collations: list[int], listed: bool) -> None:
    fields = []
    for index, collation in enumerate(collations):
        fields += [integer(f"n{index}"), enum(f"e{index}", ["a"], LATIN1), varchar(f"v{index}", 40, collation)]
    table = Table("s", "t", tuple(fields), ())
    schema, _ = read_table_map(table.body(1, optional=table.optional(listed=listed))).schema()
    found = [column.charset for column in schema.columns if column.name.startswith("v")]
    assert found == ["" if collation == 63 else charset_of(collation) for collation in collations]


NAME = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40).filter(lambda text: len(text.encode()) < 250)


@settings(deadline=None, max_examples=150)
@given(NAME, NAME, st.lists(NAME, min_size=1, max_size=20, unique=True))
def test_names_of_any_characters_are_kept(schema_name: str, table: str, columns: list[str]) -> None:
    fields = tuple(integer(name) for name in columns)
    schema, _ = read_table_map(Table(schema_name, table, fields).body(1)).schema()
    assert schema.name == TableName(schema_name, table)
    assert [column.name for column in schema.columns] == columns
    assert schema.key == (columns[0],)


def test_names_that_are_not_utf8_stay_distinct() -> None:
    first, second = (read_table_map(Table("s", name, (integer(),)).body(1)).name for name in ("a\udcff", "a\udcfe"))
    assert first != second
    assert first.table == "a\udcff"


def test_metadata_of_later_servers_is_passed_over() -> None:
    table = Table("s", "t", (integer(),))
    extra = bytes([99, 3]) + b"abc" + bytes([13, 1, 4])
    schema, _ = read_table_map(table.body(1, optional=table.optional() + extra)).schema()
    assert schema.columns == (Column("n", "int"),)


def test_a_table_map_that_is_cut_is_damage_except_between_entries() -> None:
    body = EVERYTHING.body(77)
    visibility, key, enums, sets = 2 + 4, 2 + 2, 2 + 9, 2 + 5
    fine = {len(body) - visibility, len(body) - visibility - key}
    for length in range(len(body)):
        if length in fine:
            assert read_table_map(body[:length]).schema()[0].columns == COLUMNS
        else:
            with pytest.raises((BinlogFormatError, UnsupportedError)):
                read_table_map(body[:length]).schema()
    assert body[len(body) - visibility - key - enums - sets] == 5


@pytest.mark.parametrize(
    ("collation", "charset"),
    [
        (63, "binary"), (8, "latin1"), (48, "latin1"), (11, "ascii"), (65, "ascii"), (33, "utf8mb3"), (83, "utf8mb3"),
        (192, "utf8mb3"), (215, "utf8mb3"), (223, "utf8mb3"), (45, "utf8mb4"), (46, "utf8mb4"), (224, "utf8mb4"),
        (255, "utf8mb4"), (323, "utf8mb4"), (1032, "latin1"), (1069, "utf8mb4"), (2048, "utf8mb3"), (2304, "utf8mb4"),
        (28, "gbk"), (54, "utf16"), (249, "gb18030"), (2560, "ucs2"), (1, "big5"), (1025, "big5"), (52, "cp1251"),
        (3327, "utf32"), (0, "collation 0"), (400, "collation 400"), (1024, "collation 1024"), (3328, "collation 3328"),
        (3338, "collation 3338"),
    ],
)  # fmt: skip
def test_character_sets_of_collations(collation: int, charset: str) -> None:
    assert charset_of(collation) == charset


def test_a_thousand_tables_are_each_known_again() -> None:
    log = LogBuilder()
    tables = [Table("shop", f"t{number}", (integer("id"),)) for number in range(1000)]
    for _ in range(2):
        for number, table in enumerate(tables):
            log.insert(table, (number,))
    found = staged(bytes(log.data))
    assert len(found.text) == 1000
    for number, table in enumerate(tables):
        assert [line[5] for line in found.of(f"shop.{table.name}")] == [str(number)] * 2
