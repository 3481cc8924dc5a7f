"""The readable parts of encrypted log files: which key encrypted them, and how.

MySQL (manual, "Encrypting Binary Log Files"; WL#10957): a header of 512 bytes with magic, version, and the fields key
id (1), encrypted file password (2) and its initial vector (3). Then the whole log as one AES-256-CTR stream: byte n of
the log is byte 512 + n of the file.

MariaDB (MDEV-8041): a START_ENCRYPTION event; every event behind it is encrypted separately, and keeps its offset and
length. Its bytes from the fifth on are cipher text, except for the length in the header, which stays readable. The four
bytes of cipher text that the length displaces are stored in the first four bytes of the event, which hold the timestamp
in a clear event. The initial vector is the file's nonce and the low 32 bits of the event's offset. With AES-CBC, a
last part shorter than a block is XORed with the encrypted initial vector. With AES-CTR, all blocks are XORed with
encrypted counters.
"""

from __future__ import annotations

from dataclasses import dataclass

from loader.binlog.byte_cursor import Cursor
from loader.binlog.constants import FORMAT_DESCRIPTION, HEADER, MAGIC, MAGIC_ENCRYPTED, START_ENCRYPTION
from loader.errors import BinlogFormatError, UnsupportedError

MYSQL_HEADER = 512
"""Bytes of the header of an encrypted MySQL file."""

_DECRYPTED = 'set transport = "network" for the source: the server sends its log decrypted'
_KEY_ID, _PASSWORD, _VECTOR = 1, 2, 3
_NONCE = 12
_SCHEME = 1


@dataclass(frozen=True)
class MysqlEncryption:
    """The header of an encrypted MySQL file: key id, encrypted file password and its initial vector."""

    key_id: str
    password: bytes
    vector: bytes


@dataclass(frozen=True)
class MariadbEncryption:
    """A START_ENCRYPTION event: key version, nonce, and its end: the file offset where encrypted events begin."""

    key_version: int
    nonce: bytes
    end: int


def read_mysql_encryption(head: bytes, file: str) -> MysqlEncryption:
    """Parse the header of an encrypted MySQL file from its first bytes.

    Raises:
        BinlogFormatError: the header is truncated or lacks a field.
        UnsupportedError: its version is not 1.
    """
    if len(head) < MYSQL_HEADER:
        raise BinlogFormatError("the header of the encrypted log is truncated", file=file)
    cursor = Cursor(head[len(MAGIC_ENCRYPTED) : MYSQL_HEADER])
    if (version := cursor.number(1)) != 1:
        raise UnsupportedError(f"version {version} of log encryption is not supported", hint=_DECRYPTED, file=file)
    fields: dict[int, bytes] = {}
    while (tag := cursor.number(1)) in {_KEY_ID, _PASSWORD, _VECTOR}:
        fields[tag] = cursor.take({_KEY_ID: 0, _PASSWORD: 32, _VECTOR: 16}[tag] or cursor.number(1))
    if tag or len(fields) != _VECTOR:
        raise BinlogFormatError("the header of the encrypted log is damaged", file=file)
    return MysqlEncryption(fields[_KEY_ID].decode(), fields[_PASSWORD], fields[_VECTOR])


def read_mariadb_encryption(head: bytes, file: str) -> MariadbEncryption | None:
    """Parse START_ENCRYPTION from the first bytes of a file; None if the second event has another type.

    Raises:
        UnsupportedError: the encryption scheme is not 1.
    """
    if not head.startswith(MAGIC) or len(head) < HEADER or head[8] != FORMAT_DESCRIPTION:
        return None
    at = len(MAGIC) + int.from_bytes(head[13:17], "little")
    event = head[at:]
    if len(event) < HEADER + 1 + 4 + _NONCE or event[4] != START_ENCRYPTION:
        return None
    cursor = Cursor(event[HEADER:])
    if (scheme := cursor.number(1)) != _SCHEME:
        raise UnsupportedError(
            f"scheme {scheme} of log encryption is not supported", hint=_DECRYPTED, file=file, position=at
        )
    return MariadbEncryption(cursor.number(4), cursor.take(_NONCE), at + int.from_bytes(event[9:13], "little"))
