"""ENUM and SET are staged as their labels."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loader.errors import DataError, LoaderError, UnsupportedError
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.fields import LATIN1, Field, Table, enum, set_of
from tests.unit.binlog.reading import staged

LABEL = st.text(st.characters(codec="utf-8", exclude_characters=","), max_size=20)


def column(field: Field, *values: int) -> list[str | None]:
    table = Table("s", "t", (field,), key=())
    return [line[5] for line in staged(bytes(LogBuilder().insert(table, *([v] for v in values)).data)).of("s.t")]


@settings(deadline=None, max_examples=60)
@given(st.lists(LABEL, min_size=1, max_size=300))
def test_an_enum_is_its_label(labels: list[str]) -> None:
    assert column(enum("e", labels), *range(len(labels) + 1)) == ["", *labels]


@pytest.mark.parametrize("count", [1, 255, 256, 1000])
def test_an_enum_of_one_and_of_two_bytes(count: int) -> None:
    assert column(enum("e", [f"l{i}" for i in range(count)]), 1, count) == ["l0", f"l{count - 1}"]


@settings(deadline=None, max_examples=80)
@given(
    st.lists(LABEL, min_size=1, max_size=64, unique=True), st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=10)
)
def test_a_set_is_its_labels_in_their_order(labels: list[str], masks: list[int]) -> None:
    masks = [0, 2 ** len(labels) - 1, *(mask % 2 ** len(labels) for mask in masks)]
    # The server writes no comma behind an empty text (Field_set::val_str).
    expected = [",".join(label for i, label in enumerate(labels) if mask >> i & 1).lstrip(",") for mask in masks]
    assert column(set_of("s", labels), *masks) == expected


@pytest.mark.parametrize("count", [1, 8, 9, 16, 17, 24, 25, 32, 33, 63, 64])
def test_every_size_of_a_set(count: int) -> None:
    labels = [f"l{i}" for i in range(count)]
    assert column(set_of("s", labels), 1 << (count - 1), 2**count - 1) == [labels[-1], ",".join(labels)]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (enum("e", ["a", "b"]), 3),
        (enum("e", ["a"]), 255),
        (set_of("e", ["a", "b"]), 4),
        (set_of("e", ["a"] * 9), 1 << 9),
    ],
)
def test_a_value_without_a_label_is_an_error_by_column(field: Field, value: int) -> None:
    with pytest.raises(DataError, match="a value is not a") as caught:
        column(field, value)
    assert caught.value.where["column"] == "e"


def test_labels_follow_their_character_set() -> None:
    assert column(enum("e", [b"caf\xe9", b"\x80", b"\x81"], LATIN1), 1, 2, 3) == ["café", "€", "\x81"]
    assert column(enum("e", [b"\xc4\xe3", b"a\x81\x40"], 28), 1, 2) == ["你", "a丂"]  # gbk
    assert column(enum("e", [b"\x30\x42", b"\0a"], 35), 1, 2) == ["あ", "a"]  # ucs2
    assert column(enum("e", [b"\xd0\xd2", b"x"], 7), 1, 2) == ["пр", "x"]  # koi8r
    assert column(enum("e", [b"\x90\x30\x81\x30", b"\x81\x30\x81\x30"], 248), 1, 2) == ["\U00010000", "\x80"]


@pytest.mark.parametrize(
    ("labels", "collation"), [([b"\xff\xfe"], 255), ([b"\x81"], 28), ([b"\xa1"], 16), ([b"x"], 999)]
)
def test_labels_that_cannot_be_read_are_refused(labels: list[bytes], collation: int) -> None:
    with pytest.raises(UnsupportedError, match="labels in"):
        column(enum("e", labels, collation), 1)


def test_several_enums_and_sets_take_their_own_labels() -> None:
    table = Table(
        "s",
        "t",
        (enum("a", ["x", "y"]), set_of("b", ["p", "q"]), enum("c", ["u", "v", "w"], LATIN1), set_of("d", ["r"])),
        (),
    )
    log = LogBuilder().insert(table, (2, 3, 3, 1), (1, 2, 0, 0))
    assert [line[5:] for line in staged(bytes(log.data)).of("s.t")] == [["y", "p,q", "w", "r"], ["x", "q", "", ""]]


@pytest.mark.parametrize("field", [enum("e", ["a", "b"]), set_of("e", ["a", "b"])])
def test_a_table_map_without_labels_is_damage(field: Field) -> None:
    bare = Field("e", field.wire, field.metadata, field.encode, collation=255, labels=())
    table = Table("s", "t", (bare,), key=())
    log = LogBuilder().begin()
    log.table_map(table, optional=b"\x0a\x02\xfc\xff\x04\x02\x01e")
    log.xid()
    with pytest.raises(LoaderError) as caught:
        staged(bytes(log.data))
    assert caught.value.exit_code == 4
