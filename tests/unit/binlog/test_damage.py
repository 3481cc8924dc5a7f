"""Every flipped bit and every truncation is detected, with an error that names the damage."""

from __future__ import annotations

from decimal import Decimal

import pytest

from loader.errors import BinlogFormatError, DataError, LoaderError, UnsupportedError
from tests.unit.binlog.builder import LogBuilder, resealed
from tests.unit.binlog.fields import LATIN1, Table, blob, datetime, decimal, enum, integer, json, set_of, time, varchar
from tests.unit.binlog.jsonb import document
from tests.unit.binlog.reading import Staged, outcome, staged

TABLE = Table(
    "s", "t",
    (
        integer("id"), varchar("v", 300), varchar("l", 20, LATIN1), decimal("d", 12, 3), datetime("at", 3),
        time("tm", 1),
        enum("e", ["a", "b"]), set_of("f", ["p", "q"]), json("j"), blob("b", 3),
    ),
)  # fmt: skip
pytestmark = pytest.mark.timeout(120)


def small(checksum: bool = True) -> LogBuilder:
    """A log with each kind of event, about 700 bytes."""
    at, clock = (2024, 2, 29, 1, 2, 3, 4000), (True, 1, 2, 3, 500_000)
    row = (1, "é", b"\xe9", Decimal("-1.234"), at, clock, 1, 3, document({"a": [1, "x"]}), b"\1")
    log = LogBuilder(checksum=checksum)
    log.begin()
    log.table_map(TABLE)
    log.write(TABLE, row, last=False)
    log.update(TABLE, (row, (2, *row[1:])))
    log.xid()
    log.gtid(2)
    log.query("ALTER TABLE t ADD x INT", "s")
    log.rotate()
    return log


WHOLE = small()
TEXT = staged(bytes(WHOLE.data)).text


def flipped(log: bytes | bytearray, bit: int) -> bytearray:
    damaged = bytearray(log)
    damaged[bit // 8] ^= 1 << bit % 8
    return damaged


def is_known(error: LoaderError) -> bool:
    return (
        isinstance(error, (BinlogFormatError, UnsupportedError, DataError))
        and error.exit_code == 4
        and bool(error.what)
    )


def test_the_log_is_fine_before_it_is_damaged() -> None:
    assert sum(len(text.splitlines()) for text in TEXT.values()) == 3


def test_every_cut_is_an_error_except_between_transactions() -> None:
    fine = {at for at, _, kind in WHOLE.events if kind in (33, 4)} | {WHOLE.events[0][0] + WHOLE.events[0][1]}
    for length in range(len(WHOLE.data)):
        found = outcome(bytes(WHOLE.data[:length]))
        if length in fine:
            assert isinstance(found, Staged), f"cut at {length}: {found}"
        else:
            assert isinstance(found, LoaderError), f"the cut at {length} was not found"
            assert is_known(found), f"cut at {length}: {found!r}"


def test_every_flipped_bit_is_found_by_the_checksums() -> None:
    in_use = 4 + 17
    for bit in range(len(WHOLE.data) * 8):
        found = outcome(bytes(flipped(WHOLE.data, bit)))
        if bit == in_use * 8:
            assert isinstance(found, Staged), "the server sets this bit after it made the sum"
        else:
            assert isinstance(found, LoaderError), f"bit {bit % 8} of byte {bit // 8} was not found"
            assert is_known(found), f"bit {bit}: {found!r}"


@pytest.mark.parametrize("server", ["8.4.0", "5.7.44-log", "5.6.51", "11.4.2-MariaDB-log"])
def test_every_flipped_bit_of_the_first_event_is_found_in_a_log_of_statements_only(server: str) -> None:
    log = LogBuilder(server=server)
    log.query("ALTER TABLE t ADD x INT", "s")
    at, size, _ = log.events[0]
    bits = range(at * 8, (at + size) * 8)
    unnoticed = [bit for bit in bits if isinstance(outcome(bytes(flipped(log.data, bit))), Staged)]
    assert unnoticed == [(4 + 17) * 8], "only the in-use flag, which the server sets after it made the sum, may differ"


@pytest.mark.parametrize("kind", [2, 19, 30, 162])
def test_an_event_without_its_content_is_damage(kind: int) -> None:
    for size in range(12):
        log = LogBuilder(checksum=False)
        if kind == 30:
            log.begin()
        log.event(kind, bytes(size))
        assert isinstance(outcome(bytes(log.data)), BinlogFormatError), f"{size} bytes"


def test_a_flipped_bit_names_file_and_event() -> None:
    at, size, _ = WHOLE.events[4]
    found = outcome(bytes(flipped(WHOLE.data, (at + size // 2) * 8)))
    assert isinstance(found, BinlogFormatError)
    assert found.where == {"file": "binlog.000001", "position": str(at)}
    assert "checksum of an event is wrong" in found.what


@pytest.mark.parametrize("number", range(len(WHOLE.events)))
def test_every_flipped_bit_under_a_right_checksum_ends_in_rows_or_a_known_error(number: int) -> None:
    at, size, _ = WHOLE.events[number]
    for bit in range(at * 8, (at + size - 4) * 8):
        found = outcome(resealed(flipped(WHOLE.data, bit), WHOLE.events[number]))
        assert isinstance(found, Staged) or is_known(found), f"bit {bit - at * 8} of event {number}: {found!r}"


def test_every_flipped_bit_without_checksums_ends_in_rows_or_a_known_error() -> None:
    log = small(checksum=False).data
    for bit in range(len(log) * 8):
        found = outcome(bytes(flipped(log, bit)))
        assert isinstance(found, Staged) or is_known(found), f"bit {bit}: {found!r}"


def test_bytes_that_are_no_log_at_all() -> None:
    for data in (b"", b"\xfe", b"\xfebin", b"\xfebi\0" * 20, bytes(300), b"\xff" * 300, b"/*!50530 SET @@SESSION"):
        found = outcome(data)
        assert isinstance(found, BinlogFormatError | UnsupportedError)


def test_an_encrypted_log_is_refused_as_such() -> None:
    found = outcome(b"\xfd\x62\x69\x6e" + bytes(600))
    assert isinstance(found, UnsupportedError)
    assert "encrypted" in found.what
