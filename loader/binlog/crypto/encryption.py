"""Encrypted log files: what stands in them in the clear, and how.

MySQL (the manual, "Encrypting Binary Log Files"; WL#10957): 512 bytes with magic, version, and the fields key id (1),
encrypted file password (2) and its initial vector (3); behind them the whole log as one AES-256-CTR stream, so that
byte n of the log is byte 512 + n of the file.

MariaDB (MDEV-8041): a START_ENCRYPTION event, and behind it each event encrypted alone, at its own place and of its own
length. Its bytes from the fifth on are cipher text, but for the length in the header, which stays readable: the four
bytes that it displaces are kept in the first four of the event. In clear they are the timestamp. The initial vector is
the nonce of the file and the low 32 bits of the event's offset. AES-CBC leaves a rest of less than a block, which is
combined with the encrypted vector; in AES-CTR all are combined with encrypted counters.
"""

from __future__ import annotations

from dataclasses import dataclass

from loader.binlog.byte_cursor import Cursor
from loader.binlog.constants import FORMAT_DESCRIPTION, HEADER, MAGIC, MAGIC_ENCRYPTED, START_ENCRYPTION
from loader.errors import BinlogFormatError, UnsupportedError

MYSQL_HEADER = 512
"""Bytes before the log in an encrypted file of MySQL."""

_KEY_ID, _PASSWORD, _VECTOR = 1, 2, 3
_NONCE = 12
_SCHEME = 1


@dataclass(frozen=True)
class MysqlEncryption:
    """The header of an encrypted file of MySQL."""

    key_id: str
    password: bytes
    vector: bytes


@dataclass(frozen=True)
class MariadbEncryption:
    """START_ENCRYPTION: the version of the key, the nonce, and the end of this event, where encrypted ones begin."""

    key_version: int
    nonce: bytes
    end: int


def read_mysql_encryption(head: bytes, file: str) -> MysqlEncryption:
    """The header from the first bytes of a file.

    Raises:
        BinlogFormatError: it is cut or lacks a field. UnsupportedError: of another version than 1.
    """
    if len(head) < MYSQL_HEADER:
        raise BinlogFormatError("the header of an encrypted log is cut", file=file)
    cursor = Cursor(head[len(MAGIC_ENCRYPTED) : MYSQL_HEADER])
    if (version := cursor.number(1)) != 1:
        raise UnsupportedError(f"version {version} of log encryption is not covered", file=file)
    fields: dict[int, bytes] = {}
    while (tag := cursor.number(1)) in {_KEY_ID, _PASSWORD, _VECTOR}:
        fields[tag] = cursor.take({_KEY_ID: 0, _PASSWORD: 32, _VECTOR: 16}[tag] or cursor.number(1))
    if tag or len(fields) != _VECTOR:
        raise BinlogFormatError("the header of an encrypted log is damaged", file=file)
    return MysqlEncryption(fields[_KEY_ID].decode(), fields[_PASSWORD], fields[_VECTOR])


def read_mariadb_encryption(head: bytes, file: str) -> MariadbEncryption | None:
    """START_ENCRYPTION from the first bytes of a file; None where it is not the event behind the format.

    Raises:
        UnsupportedError: of another scheme than 1.
    """
    if not head.startswith(MAGIC) or len(head) < HEADER or head[8] != FORMAT_DESCRIPTION:
        return None
    at = len(MAGIC) + int.from_bytes(head[13:17], "little")
    event = head[at:]
    if len(event) < HEADER + 1 + 4 + _NONCE or event[4] != START_ENCRYPTION:
        return None
    cursor = Cursor(event[HEADER:])
    if (scheme := cursor.number(1)) != _SCHEME:
        raise UnsupportedError(f"scheme {scheme} of log encryption is not covered", file=file, position=at)
    return MariadbEncryption(cursor.number(4), cursor.take(_NONCE), at + int.from_bytes(event[9:13], "little"))
