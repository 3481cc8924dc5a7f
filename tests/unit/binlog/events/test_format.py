"""The start of a log file: server version, checksums, and whether the server has closed it."""

from __future__ import annotations

import struct
import zlib

import pytest

from loader.binlog.format import LogFormat, read_format, read_format_event
from loader.errors import BinlogFormatError, UnsupportedError
from tests.unit.binlog.builder import MAGIC, LogBuilder

FILE = "binlog.000007"


def old(server: str, lengths: int, version: int = 4, header: int = 19) -> bytes:
    """A first event of servers before checksums: so many post-header lengths and nothing behind them."""
    body = struct.pack("<H50sIB", version, server.encode(), 0, header) + bytes(lengths)
    return MAGIC + struct.pack("<IBIIIH", 0, 15, 1, 19 + len(body), 0, 0) + body


@pytest.mark.parametrize("server", ["8.4.0", "9.7.4-2", "5.6.51-log", "8.0.2-dmr-debug-log-asan"])
@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("in_use", [True, False])
def test_the_format_of_a_mysql_log(server: str, checksum: bool, in_use: bool) -> None:
    log = LogBuilder(server=server, checksum=checksum, in_use=in_use)
    form = read_format(bytes(log.data), FILE)
    assert form == LogFormat(server, 4 if checksum else 0, log.end, in_use, started=True)
    assert not form.mariadb


@pytest.mark.parametrize("server", ["10.11.19-MariaDB-0+deb12u1-log", "11.4.2-MariaDB", "5.5.36-MariaDB-debug-log"])
def test_a_mariadb_log_is_known_by_its_version(server: str) -> None:
    assert read_format(bytes(LogBuilder(server=server).data), FILE).mariadb


@pytest.mark.parametrize(
    ("server", "lengths"), [("5.5.17-log", 27), ("5.1.73", 26), ("5.0.96", 18), ("5.1.30-ndb", 22)]
)
def test_logs_of_servers_before_checksums_have_none(server: str, lengths: int) -> None:
    assert read_format(old(server, lengths), FILE) == LogFormat(
        server, 0, 4 + 19 + 57 + lengths, in_use=False, started=False
    )


def test_an_unknown_checksum_algorithm_is_refused() -> None:
    log = bytes(LogBuilder().data)
    changed = log[:-5] + b"\2"
    with pytest.raises(UnsupportedError, match="checksum algorithm 2"):
        read_format(changed + zlib.crc32(changed[4:]).to_bytes(4, "little"), FILE)


def test_a_dump_from_the_middle_of_a_log_without_checksums_has_an_old_sum_and_no_end_position() -> None:
    event = bytearray(LogBuilder(checksum=False).data[4:])
    event[13:17] = bytes(4)
    assert read_format_event(bytes(event), FILE).checksum == 0
    event[13:17] = b"\1\0\0\0"
    with pytest.raises(BinlogFormatError, match="checksum of the first event of the log is wrong"):
        read_format_event(bytes(event), FILE)


@pytest.mark.parametrize(("version", "header"), [(3, 19), (1, 13), (4, 13), (5, 19)])
def test_other_versions_of_the_format_are_refused(version: int, header: int) -> None:
    what = f"version {version} is not supported" if version != 4 else f"event headers of {header} bytes"
    with pytest.raises(UnsupportedError, match=what):
        read_format(old("5.0.96", 18, version, header), FILE)


@pytest.mark.parametrize(
    ("server", "why"),
    [
        ("5.1.17-beta-log", "row events of version 0"), ("5.1.5-alpha", "row events of version 0"),
        ("5.2.2-a_drop6p13-debug-log", "numbered its event types differently"), ("5.1-wl2325-5.0.54", "numbered its event types differently"),
        ("5.1.15-wl2325-log", "numbered its event types differently"),
    ],
)  # fmt: skip
def test_releases_that_mean_other_things_are_refused_by_name(server: str, why: str) -> None:
    with pytest.raises(UnsupportedError, match=f"binary logs of MySQL {server}") as caught:
        read_format(old(server, 22), FILE)
    assert why in caught.value.why


def test_a_log_that_starts_with_another_event_is_refused_by_name() -> None:
    log = bytearray(old("4.1.24", 18))
    log[8] = 1
    with pytest.raises(UnsupportedError, match="starts with START_V3"):
        read_format(bytes(log), FILE)


@pytest.mark.parametrize("data", [b"", b"\xfebi", b"ELF", b"\0\0\0\0" * 10])
def test_what_is_no_log_is_said_to_be_none(data: bytes) -> None:
    with pytest.raises(BinlogFormatError, match="not a binary log") as caught:
        read_format(data, FILE)
    assert caught.value.where == {"file": FILE}


def test_a_first_event_that_is_cut_is_damage() -> None:
    log = bytes(LogBuilder().data)
    for length in range(4, len(log)):
        with pytest.raises(BinlogFormatError, match="truncated"):
            read_format(log[:length], FILE)
