"""Events of a dump that say wrong sizes end it, in no time."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pymysql.err import MySQLError

from loader.binlog.constants import FORMAT_DESCRIPTION, HEADER, ROTATE
from loader.errors import BinlogFormatError
from loader.transport.dump import Events, raise_error
from loader.transport.dump import _parted as parted
from loader.transport.gtid_search import _first as first

GTID = 33
pytestmark = pytest.mark.timeout(10)


def event(kind: int, size: int, body: bytes = b"") -> bytes:
    """An event whose header says that size."""
    return bytes(4) + bytes([kind]) + bytes(4) + size.to_bytes(4, "little") + bytes(6) + body


def dump(*events: bytes) -> Events:
    """A dump of several files with these events, all of which have arrived."""
    stream = b"".join((len(one) + 1).to_bytes(3, "little") + b"\1\0" + one for one in events) + b"\1\0\0\1\xfe"
    silent = SimpleNamespace(settimeout=lambda _: None)
    connection = SimpleNamespace(_rfile=io.BufferedReader(io.BytesIO(stream)), _sock=silent, _read_timeout=1)
    return Events(cast("Any", connection), several=True)


@pytest.mark.parametrize("size", [0, 1, HEADER - 1])
@pytest.mark.parametrize("kind", [ROTATE, FORMAT_DESCRIPTION])
def test_an_event_smaller_than_its_header_is_damage(kind: int, size: int) -> None:
    with pytest.raises(BinlogFormatError, match="an event of"):
        parted(event(kind, size), inside=False)
    with pytest.raises(BinlogFormatError, match="an event of"):
        first(dump(event(kind, size)), set())


def test_a_rotate_without_a_place_is_damage() -> None:
    with pytest.raises(BinlogFormatError, match="ROTATE"):
        first(dump(event(ROTATE, HEADER)), set())


def test_a_rotate_with_a_name_that_is_no_text_is_damage() -> None:
    with pytest.raises(BinlogFormatError, match="ROTATE"):
        first(dump(event(ROTATE, HEADER + 10, bytes(8) + b"\xff\xfe")), set())


@pytest.mark.parametrize("reply", [b"\xff", b"\xff\1", b"\xff\1\4", b"\xff\xd4\4#HY000\xff"])
def test_an_error_packet_that_is_cut_is_still_an_error_of_the_server(reply: bytes) -> None:
    with pytest.raises(MySQLError):
        raise_error(reply)
