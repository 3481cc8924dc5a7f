"""Types of the two servers in the view of events: each log is read as its own server counts its columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.reader.events import WriteRowsEvent
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.fields import BINARY, Table, geometry, integer, varchar, vector
from tests.unit.reader.logs import read, written

GBK, KOI8R, LATIN2 = 28, 7, 9
PLACE = bytes.fromhex("e61000000101000000000000000000f03f0000000000000040")


@pytest.mark.parametrize(("server", "mariadb"), [("9.7.0", False), ("11.8.2-MariaDB-log", True)])
def test_geometry_vector_and_text_of_other_character_sets(server: str, mariadb: bool, tmp_path: Path) -> None:
    place = geometry("g", BINARY if mariadb else None)
    other = varchar("v", 9, BINARY) if mariadb else vector("v")
    table = Table(
        "s", "t", (integer("id"), varchar("a", 40, GBK), place, other, varchar("b", 40, KOI8R), varchar("c", 9, LATIN2))
    )
    row = (
        1,
        "你".encode("gbk"),
        PLACE,
        b"\x01\x02" if mariadb else [1, -2.5],
        "я".encode("koi8-r"),
        "ł".encode("iso8859-2"),
    )
    (path,) = written(tmp_path, [bytes(LogBuilder(server=server).insert(table, row).data)])
    (event,) = (event for event in read(path) if isinstance(event, WriteRowsEvent))
    after = event.rows[0].after
    assert after
    expected = b"\x01\x02" if mariadb else "[1,-2.5]"
    assert after.as_dict() == {"id": 1, "a": "你", "g": PLACE, "v": expected, "b": "я", "c": "ł"}
    assert after["g"].as_bytes() == PLACE
