"""Encrypted logs are read at any place as what they were before they were encrypted."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest

from loader.errors import BinlogFormatError, LoaderError, UnsupportedError, UsageError
from loader.transport import decrypted
from loader.transport.base import LogFile
from loader.transport.decrypted import log_size, plain
from loader.transport.file import FileTransport
from loader.transport.keys import KeyFiles
from tests.unit.binlog.builder import LogBuilder
from tests.unit.transport.encrypting import mariadb_encrypted, mysql_encrypted, start_encryption

NAME = "binlog.000001"
KEY_ID = "MySQLReplicationKey_0_1"
MASTER = bytes(range(32))
SIZES = (20, 0, 1, 11, 12, 13, 28, 29, 100, 5_000, 3, 70_000, 1, 2, 3, 17, 33)


def busy(*, checksum: bool) -> LogBuilder:
    """Events of many sizes, with START_ENCRYPTION where MariaDB has it."""
    log = LogBuilder(server="10.11.19-MariaDB-log", checksum=checksum)
    start_encryption(log)
    for number, size in enumerate(SIZES):
        log.event(162, bytes((number + n) % 251 for n in range(size)))
    return log


def keys(folder: Path) -> KeyFiles:
    (folder / "keyring").write_text(
        f'{{"version":"1.0","elements":[{{"user":"","data_id":"{KEY_ID}","data":"{MASTER.hex().upper()}"}}]}}'
    )
    (folder / "keys.txt").write_text(f"# keys\n2;{MASTER[:16].hex()}\n\n 1;{MASTER[8:24].hex()} # of the server\n")
    return KeyFiles(keyring=str(folder / "keyring"), keys=str(folder / "keys.txt"))


def encrypted(log: LogBuilder, how: str) -> bytes:
    if how == "mysql":
        return mysql_encrypted(bytes(log.data), MASTER, KEY_ID)
    return mariadb_encrypted(log, MASTER[8:24], how)


def whole(log: LogFile, size: int) -> bytes:
    log.seek(0)
    found = b""
    while piece := log.read(size):
        found += piece
    return found


@pytest.fixture(params=[64, 1000, 1024 * 1024])
def window(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(decrypted, "_WINDOW", request.param)
    return int(request.param)


@pytest.mark.usefixtures("window")
@pytest.mark.parametrize("how", ["mysql", "CBC", "CTR"])
@pytest.mark.parametrize("checksum", [True, False])
def test_every_byte_is_that_of_the_plain_log(how: str, checksum: bool, tmp_path: Path) -> None:
    made = busy(checksum=checksum)
    expected, hidden = bytes(made.data), encrypted(made, how)
    log = plain(io.BytesIO(hidden), NAME, keys(tmp_path), 4)
    assert whole(log, 777) == expected
    chance = random.Random(7)
    for _ in range(500):
        at, size = chance.randrange(len(expected)), chance.choice((1, 19, 300, 100_000))
        log.seek(at)
        found = log.read(size) or b""
        assert found
        assert found == expected[at : at + len(found)]
    log.seek(len(expected))
    assert not log.read(10)


@pytest.mark.parametrize("how", ["CBC", "CTR"])
def test_a_range_is_read_from_its_start_without_what_is_before(how: str, tmp_path: Path) -> None:
    made = busy(checksum=True)
    hidden = bytearray(encrypted(made, how))
    start = made.events[-4][0]
    hidden[made.events[4][0] : start] = bytes(start - made.events[4][0])
    log = plain(io.BytesIO(bytes(hidden)), NAME, keys(tmp_path), start)
    log.seek(start)
    assert log.read(1000) == bytes(made.data[start:])


def test_what_a_dump_keeps_in_clear_is_given_as_it_is() -> None:
    made = busy(checksum=True)
    raw = io.BytesIO(bytes(made.data))
    assert plain(raw, NAME, KeyFiles(), 4) is raw


def test_a_file_that_is_cut_ends_there(tmp_path: Path) -> None:
    for how in ("mysql", "CBC", "CTR"):
        made = busy(checksum=True)
        hidden = encrypted(made, how)[:-7]
        found = whole(plain(io.BytesIO(hidden), NAME, keys(tmp_path), 4), 500)
        assert bytes(made.data).startswith(found)
        assert len(made.data) - len(found) < 7 + 16


def test_a_wrong_length_is_damage_by_its_place(tmp_path: Path) -> None:
    made = busy(checksum=True)
    hidden = bytearray(encrypted(made, "CBC"))
    at = made.events[6][0]
    hidden[at + 9 : at + 13] = bytes(4)
    with pytest.raises(BinlogFormatError, match="length of an encrypted event") as caught:
        whole(plain(io.BytesIO(bytes(hidden)), NAME, keys(tmp_path), 4), 500)
    assert caught.value.where == {"file": NAME, "position": str(at)}


def refused(hidden: bytes, given: KeyFiles) -> LoaderError:
    with pytest.raises(LoaderError) as caught:
        plain(io.BytesIO(hidden), NAME, given, 4)
    return caught.value


@pytest.mark.parametrize("how", ["mysql", "CBC", "CTR"])
def test_without_a_key_file_the_option_is_named(how: str) -> None:
    error = refused(encrypted(busy(checksum=True), how), KeyFiles())
    assert isinstance(error, UsageError)
    assert error.what == "the log file is encrypted"
    assert ("?keyring=/path" if how == "mysql" else "?keys=/path") in error.hint
    assert error.where["file"] == NAME
    assert error.where["key"] == (KEY_ID if how == "mysql" else "1")


def test_a_wrong_key_is_named_with_its_file(tmp_path: Path) -> None:
    given = keys(tmp_path)
    made = busy(checksum=False)
    for hidden in (
        mysql_encrypted(bytes(made.data), MASTER[::-1], KEY_ID),
        mariadb_encrypted(made, MASTER[:16], "CBC"),
    ):
        error = refused(hidden, given)
        assert isinstance(error, UsageError)
        assert "does not open the log" in error.what
        assert error.where["key"] in {given.keyring, given.keys}


def test_a_key_that_is_not_in_the_file_is_named(tmp_path: Path) -> None:
    given = keys(tmp_path)
    error = refused(mysql_encrypted(b"", MASTER, "MySQLReplicationKey_0_2"), given)
    assert error.what == "the key file lacks key MySQLReplicationKey_0_2"
    assert error.where["key"] == given.keyring
    (tmp_path / "keys.txt").write_text(f"2;{MASTER.hex()}\n")
    error = refused(encrypted(busy(checksum=True), "CBC"), given)
    assert (error.what, error.why) == ("the key file lacks key 1", "it has 2")


def test_a_key_file_that_is_encrypted_is_refused_by_name(tmp_path: Path) -> None:
    given = keys(tmp_path)
    (tmp_path / "keys.txt").write_bytes(b"Salted__" + bytes(100))
    error = refused(encrypted(busy(checksum=True), "CBC"), given)
    assert isinstance(error, UnsupportedError)
    assert "itself encrypted" in error.what


@pytest.mark.parametrize("text", ["1;00", "1;" + "0" * 33, "key", "1:" + "0" * 32, "-1;" + "0" * 32])
def test_a_key_file_of_another_form_is_refused(text: str, tmp_path: Path) -> None:
    given = keys(tmp_path)
    (tmp_path / "keys.txt").write_text(f"# first\n{text}\n")
    error = refused(encrypted(busy(checksum=True), "CBC"), given)
    assert error.what == "the key file is invalid"
    assert error.why.startswith("line 2 ")


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[1]", b'{"elements":[{"data_id":"a","data":"zz"}]}', b"Keyring file version:2.0", b"Keyring file version:2.0EOF" + bytes(32)]
)  # fmt: skip
def test_a_keyring_of_another_form_is_refused(data: bytes, tmp_path: Path) -> None:
    given = keys(tmp_path)
    (tmp_path / "keyring").write_bytes(data)
    assert refused(encrypted(busy(checksum=True), "mysql"), given).what == "the key file is invalid"


def test_a_plain_file_is_given_as_it_is() -> None:
    raw = io.BytesIO(bytes(LogBuilder().data))
    assert plain(raw, NAME, KeyFiles(), 4) is raw


def test_sizes_are_those_of_the_log(tmp_path: Path) -> None:
    made = busy(checksum=True)
    hidden = encrypted(made, "mysql")
    assert log_size(len(hidden), hidden[:4]) == len(made.data)
    assert log_size(len(made.data), bytes(made.data[:4])) == len(made.data)
    (tmp_path / NAME).write_bytes(hidden)
    with FileTransport(str(tmp_path), keys(tmp_path)).open(NAME, 4, len(made.data)) as log:
        assert whole(log, 1 << 20) == bytes(made.data)
