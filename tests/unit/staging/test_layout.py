"""Where staged objects lie: names of any bytes become path segments, and no two names the same one."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loader.model.table import TableName
from loader.staging.layout import chain_folder, encode, interval_folder, load_folder, part_key
from loader.store.base import require_key

SAFE = re.compile(r"[A-Za-z0-9_!~-]{1,255}\Z")
NAME = st.text(st.characters(), min_size=1, max_size=200)
TRICKY = [
    "a", "A", "!", "~", "!~", "!61", "a!", ".", "..", "/", "\\", "\0", " ", "a/b", "a.b", "a b", "é", "e\u0301", "漢",
    "\udcff", "%2F", "-", "_", "con", "x" * 64, "x" * 200, "é" * 64, "!" * 39 + "é" * 100, "~" * 41,
]  # fmt: skip


@settings(deadline=None, max_examples=500)
@given(st.lists(NAME | st.sampled_from(TRICKY), unique=True, max_size=30))
def test_different_names_become_different_safe_segments(names: list[str]) -> None:
    segments = [encode(name) for name in names]
    assert len(set(segments)) == len(names)
    assert all(SAFE.match(segment) for segment in segments)


def test_a_hundred_thousand_names_stay_apart() -> None:
    random = np.random.default_rng(1)
    letters = np.array(list("aAbB01._-!~/\\ é漢%"))
    names = {"".join(letters[random.integers(0, len(letters), size)]) for size in random.integers(1, 12, 120_000)}
    names |= {"x" * 110 + "".join(letters[random.integers(0, len(letters), 12)]) for _ in range(10_000)}
    assert len(names) > 100_000
    assert len({encode(name) for name in names}) == len(names)


def test_an_encoded_name_is_no_encoding_of_another() -> None:
    assert encode("a/b") == "a!2fb"
    assert encode("a!2fb") == "a!212fb"
    long = "x" * 200
    assert encode(encode(long)) != encode(long)


@pytest.mark.parametrize(
    ("name", "segment"),
    [
        ("orders", "orders"),
        ("order_items-2", "order_items-2"),
        ("a.b", "a!2eb"),
        ("..", "!2e!2e"),
        ("A", "A"),
        ("é", "!c3!a9"),
    ],
)
def test_names_that_people_use_stay_readable(name: str, segment: str) -> None:
    assert encode(name) == segment


@pytest.mark.parametrize("name", ["x" * 121, "é" * 64, "/" * 64])
def test_a_long_name_keeps_its_beginning_and_ends_in_a_digest(name: str) -> None:
    segment = encode(name)
    assert len(segment) == 40 + 2 + 64
    assert segment[40:42] == "!~"
    assert encode(name[:-1] + "q") != segment


def test_folders_sort_as_positions_do() -> None:
    seqnos = [0, 9, 10, 999_999_999_999, 10**12, 54 * 10**12 + 123, 10**19]
    folders = [interval_folder("shop", "0001", seqno) for seqno in seqnos]
    assert folders == sorted(folders)
    assert folders[5] == "shop/0001/00000054000000000123"


def test_every_key_is_under_its_interval() -> None:
    folder = interval_folder("my shop", "0001", 7)
    assert chain_folder("my shop", "0001") == "my!20shop/0001"
    key = part_key(folder, "a1b2", TableName("s.x", "t/y"), "0123456789abcdef", "000054-000003")
    assert key == "my!20shop/0001/00000000000000000007/a1b2/s!2ex/t!2fy/0123456789abcdef/part-000054-000003.csv"
    assert load_folder("s", "0001", TableName("a", "b.c")) == "s/0001/load/a/b!2ec"


# What MySQL takes as a name in backticks: 64 characters of the BMP but NUL, the last one no space.
IDENTIFIER = st.text(
    st.characters(min_codepoint=1, max_codepoint=0xFFFF, exclude_categories=("Cs",)), min_size=1, max_size=64
)


@settings(deadline=None, max_examples=500)
@given(st.lists(st.tuples(IDENTIFIER, IDENTIFIER), unique=True, max_size=20))
def test_any_identifier_has_a_key_of_its_own_under_the_root(names: list[tuple[str, str]]) -> None:
    folder = interval_folder("shop", "0001", 1)
    keys = [part_key(folder, "a", TableName(*name), "id", "1") for name in names]
    assert len(set(keys)) == len(names)
    assert all(require_key(key).startswith(f"{folder}/a/") and key.count("/") == 7 for key in keys)


def test_a_hundred_thousand_pairs_of_names_stay_apart() -> None:
    random = np.random.default_rng(2)
    letters = np.array([*"aA1._-!~/\\ é漢%?#:", "\x01", "\uffff"])
    texts = ["".join(letters[random.integers(0, len(letters), size)]) for size in random.integers(1, 65, 220_000)]
    names = set(zip(texts[::2], texts[1::2], strict=True))
    assert len(names) >= 100_000
    keys = {part_key("s/0001/1", "a", TableName(*name), "id", "1") for name in names}
    assert len(keys) == len(names)
    assert all(require_key(key).count("/") == 7 for key in keys)


@settings(deadline=None, max_examples=300)
@given(st.lists(st.tuples(NAME, NAME, NAME), unique=True, max_size=10))
def test_keys_of_different_tables_and_sources_differ(names: list[tuple[str, str, str]]) -> None:
    keys = {
        part_key(interval_folder(source, "0001", 1), "a", TableName(schema, table), "id", "1")
        for source, schema, table in names
    }
    assert len(keys) == len(names)
    assert all(key.count("/") == 7 for key in keys)
