"""Rows of the corpus decode to what its sources, or mysqlbinlog, say they are."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from loader.binlog.format import HEAD_BYTES, read_format
from loader.binlog.index import Walk
from loader.model.table import TableSchema
from tests.corpus.corpus import FOLDER, GO, JAVA, MARIADB, RUST, SERVER, NamingRegistry, needs_corpus, read
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.fields import Field, Table
from tests.unit.binlog.reading import FILE, GuardedStager, everything, fields, records, staged

pytestmark = needs_corpus
LONG = "0123456789" * 10
Record = list[str | None]
ROWS: dict[str, dict[str, list[Record]]] = {
    f"{RUST}/binlog-invisible-columns.000001": {
        "mysql.t1": [
            ["I", "1", "2", "-3", "4", "05", "6000000000"],
            ["I", None, None, "-33", "44", "55", None],
            ["D", None, None, "-33", "44", "55", None],
            ["I", "111", "222", "-333", "444", "55", None],
        ]
    },
    f"{RUST}/json-opaque.binlog": {
        "foo.test": [
            ["I", '{"a": "base64:type15:VQ=="}'],
            ["I", '{"b": "2012-03-18"}'],
            ["I", '{"c": "2012-03-18 11:30:45.000000"}'],
            ["I", '{"c": "87:31:46.654321"}'],
            ["I", '{"d": 123.456}'],
            ["I", '{"e": 9.00}'],
            ["I", '{"e": [0, 1, true, false]}'],
            ["I", '{"e": null}'],
        ]
    },
    f"{RUST}/mariadb-bin.000001": {
        "toddy_test.outbox": [
            ["I", "62", "foo", "JSON", b'{"foo":1}'.hex(), "2022-04-20 22:18:04"],
            ["I", "63", "foo", "JSON", b'{"foo":1}'.hex(), "2022-04-20 22:19:55"],
        ]
    },
    f"{RUST}/mysql_type_bit.000001": {"mysql.foo": [["I", "4", "foo", "32"]]},
    f"{SERVER}/rpl_binlog_with_gipk_info_full_metadata.000001": {
        "test.t1": [["I", "1", "1"]],
        "test.t2": [["I", "1", "1", "1"]],
    },
}


@pytest.mark.parametrize("name", list(ROWS))
def test_rows_of_logs_that_name_their_columns(name: str) -> None:
    result = staged(read(name))
    found = {str(schema.name): [[line[0], *line[5:]] for line in lines(text)] for schema, text in result.text.items()}
    assert found == ROWS[name]


def test_labels_and_long_chars_of_inserts_updates_and_deletes() -> None:
    found = staged(read(f"{RUST}/mysql-enum-string-set.000001")).of("mysql.t")
    first = [LONG, found[0][6], "var1", "one,three", "0123456789"]
    second = ["field1", "field_2", "variant2", "two,four", found[0][6]]
    assert [[line[0], *line[5:]] for line in found] == [["I", *first], ["D", *first], ["I", *second], ["D", *second]]
    assert len(str(found[0][6])) > 255
    assert set(str(found[0][6])) == set("0123456789")


def lines(text: bytes) -> list[Record]:
    return [fields(line) for line in records(text)]


def named(name: str) -> dict[TableSchema, bytes]:
    """The lines of a log whose columns get names."""
    log = read(name)
    form = read_format(log[:HEAD_BYTES], FILE)
    registry = NamingRegistry(everything)
    walk = Walk(registry, FILE, 4, form.checksum, (0, 1 << 62))
    walk.feed(np.frombuffer(log[4:], np.uint8).copy())
    index = walk.finish()
    found: dict[TableSchema, bytes] = {}

    def write(schema: TableSchema, block: memoryview) -> None:
        found[schema] = found.get(schema, b"") + bytes(block)

    stager = GuardedStager(registry, FILE, 1, form.checksum, 0, False, write)
    stager.give_room(1 << 16)
    stager.stage(np.frombuffer(log, np.uint8).copy(), 0, index.rows, stager.timing(index.transactions))
    stager.check()
    return found


@pytest.mark.parametrize(
    ("name", "inserts", "updates", "deletes"),
    [
        (f"{MARIADB}/mdev6020-mysql-bin.000001", 2681, 3986, 1339),
        (f"{JAVA}/mysql-bin.checksum-crc32", 34, 23, 6),
        (f"{JAVA}/mysql-bin.checksum-none", 34, 2, 0),
    ],
)
def test_as_many_rows_as_mysqlbinlog_shows(name: str, inserts: int, updates: int, deletes: int) -> None:
    """Without keys in the log, each update is a delete and an insert."""
    letters = b"".join(line[:1] for text in named(name).values() for line in text.splitlines())
    assert (letters.count(b"I"), letters.count(b"D")) == (inserts + updates, deletes + updates)


def values(name: str, table: str) -> list[Record]:
    (text,) = (text for schema, text in named(name).items() if str(schema.name) == table)
    return [[line[0], *line[5:]] for line in lines(text)]


def test_the_server_s_own_test_of_full_rows() -> None:
    assert values(f"{SERVER}/update-full-row.binlog", "test.ba") == [
        ["I", "3", "3", "3"], ["I", "2", "2", "2"], ["I", "4", "4", "4"], ["D", "4", "4", "4"], ["I", "4", "4", "40"],
        ["D", "2", "2", "2"], ["I", "1", "1", "1"],
    ]  # fmt: skip


def test_a_negative_time_of_21_days() -> None:
    assert values(f"{RUST}/time_issue.000001", "noria.t") == [["I", "-507:48:27"]]


def test_decimals_of_a_percona_server() -> None:
    found = values(f"{GO}/tcb-eval002c-bin.003320", "test.decodedecimal")
    assert len(found) == 17
    assert found[0] == [
        "I", "1", "-10.55", "-11", "-10.550", "-10.55", "-10.550", "-10.55", "-9.99999999999999", "-10.5500000000",
        "-10.55000", "-10.55000000000000000000", "-10.5500000000000000000000000", "4", "2",
    ]  # fmt: skip


VECTORS: dict[str, tuple[int, Any]] = {
    "decimal": (246, lambda one: bytes([one["precision"], one["scale"]])),
    "decimal_big": (246, lambda one: bytes([one["precision"], one["scale"]])),
    "datetime2": (18, lambda one: bytes([one["fsp"]])),
    "time2": (19, lambda one: bytes([one["fsp"]])),
}


@pytest.mark.parametrize("kind", list(VECTORS))
def test_vectors_of_go_mysql(kind: str) -> None:
    wire, metadata = VECTORS[kind]
    vectors = json.loads((FOLDER / "go-mysql-vectors" / "vectors.json").read_text())[kind]
    for one in vectors:
        table = Table("s", "t", (Field("v", wire, metadata(one), lambda value: value),), key=())
        raw = bytes.fromhex(one["hex"])[: one.get("consumed", 99)]
        ((*_, found),) = staged(bytes(LogBuilder().insert(table, [raw]).data)).of("s.t")
        assert found == one["expected"], one
