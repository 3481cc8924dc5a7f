"""MariaDB's UUID, INET4 and INET6: bytes without a schema, text with a matching schema."""

from __future__ import annotations

import ipaddress
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loader.model.table import Column, TableName, TableSchema
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.fields import BINARY, Table, char, integer, varchar
from tests.unit.binlog.reading import staged

MANY = settings(deadline=None, max_examples=100)
SIZES = {"uuid": 16, "inet4": 4, "inet6": 16}


def read(told: str, *raws: bytes, size: int = 0, name: str = "v", named: bool = True) -> list[str | None]:
    """The values of a BINARY column of which the server says that it is of type `told`."""
    known = TableSchema(TableName("s", "t"), (Column("id", "int"), Column(name, told)), ())
    table = Table("s", "t", (integer("id"), char("v", size or SIZES.get(told, 12), BINARY)), key=())
    log = LogBuilder().begin()
    log.table_map(table, **({} if named else {"optional": b""}))
    log.write(table, *((n, raw) for n, raw in enumerate(raws)))
    log.xid()
    return [line[6] for line in staged(bytes(log.data), mariadb=True, known=known, nameless=True).of("s.t")]


@MANY
@given(st.lists(st.uuids(), min_size=1), st.booleans())
def test_any_uuid(values: list[uuid.UUID], named: bool) -> None:
    assert read("uuid", *(v.bytes.rstrip(b"\0") for v in values), named=named) == [str(v) for v in values]


@MANY
@given(st.lists(st.ip_addresses(v=4), min_size=1), st.booleans())
def test_any_inet4(values: list[ipaddress.IPv4Address], named: bool) -> None:
    assert read("inet4", *(v.packed.rstrip(b"\0") for v in values), named=named) == [str(v) for v in values]


WORDS = st.lists(st.sampled_from([0, 0, 1, 0xFFFF]) | st.integers(0, 0xFFFF), min_size=8, max_size=8)


@MANY
@given(WORDS)
def test_any_inet6_reads_back(words: list[int]) -> None:
    raw = b"".join(word.to_bytes(2, "big") for word in words)
    (text,) = read("inet6", raw.rstrip(b"\0"))
    assert ipaddress.IPv6Address(text).packed == raw


@pytest.mark.parametrize(
    "text",
    [
        "::", "::1", "1::", "::ffff:1.2.3.4", "::1.2.3.4", "2001:db8::ff00:42:8300", "1:2:3:4:5:6:7:8", "1::2:0:0:0:3",
        "1::2:3:4:5:6:7", "::fffe:102:304", "::1:0:0", "fe80::1:0:0", "::ffff:0:1", "0:1::",
    ],
)  # fmt: skip
def test_inet6_in_the_server_s_way(text: str) -> None:
    raw = ipaddress.IPv6Address(text).packed
    expected = {"1::2:0:0:0:3": "1:0:0:2::3", "::1:0:0": "::1:0:0", "::ffff:0:1": "::ffff:0.0.0.1"}.get(text, text)
    assert read("inet6", raw) == [expected]


def test_a_vector_in_a_varbinary() -> None:
    known = TableSchema(TableName("s", "t"), (Column("v", "vector"),), ())
    table = Table("s", "t", (varchar("v", 12, BINARY),), key=())
    log = LogBuilder().insert(table, [bytes.fromhex("0000803f00002040000040c0")])
    ((_, text),) = staged(bytes(log.data), mariadb=True, known=known, nameless=True).text.items()
    assert text.decode().split(",", 5)[5] == '"[1,2.5,-3]"\n'


def test_what_does_not_fit_the_schema_stays_bytes() -> None:
    assert read("uuid", b"ab", size=15) == [(b"ab" + bytes(13)).hex()]
    assert read("inet4", b"ab", size=16) == [(b"ab" + bytes(14)).hex()]
    assert read("uuid", b"ab", name="w") == [(b"ab" + bytes(14)).hex()]
    assert read("vector", bytes(12)) == [bytes(12).hex()]
