"""The decrypted bytes of an encrypted log file, each at its offset in the log, as a layer over the file.

For the format see loader.binlog.crypto.encryption. A library decrypts whole blocks of log.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right, insort
from typing import Any

import numpy as np

from loader.binlog.constants import EVENT_NAMES, HEADER, MAGIC, MAGIC_ENCRYPTED
from loader.binlog.crypto.encryption import (
    MYSQL_HEADER,
    MariadbEncryption,
    MysqlEncryption,
    read_mariadb_encryption,
    read_mysql_encryption,
)
from loader.errors import LOAD_ALL_AGAIN, BinlogFormatError, UsageError
from loader.transport.base import LogFile
from loader.transport.keys import KeyFiles

_HEAD = 4096
_WINDOW = 1024 * 1024
_VECTOR = 8  # bytes of MySQL's initial vector; the others count blocks


def plain(raw: LogFile, file: str, keys: KeyFiles, start: int) -> LogFile:
    """Return the log in an open file, readable at its head and from `start` on, where an event starts.

    Raises:
        UsageError: the file is encrypted, and its key is not configured, not found, or wrong.
        BinlogFormatError: the description of the encryption is damaged.
        UnsupportedError: the kind of encryption is unknown.
    """
    raw.seek(0)
    head = raw.read(_HEAD) or b""
    raw.seek(0)
    if head.startswith(MAGIC_ENCRYPTED):
        header = read_mysql_encryption(head, file)
        log = _MysqlLog(raw, keys.of_mysql(header.key_id, file), header)
        if log.read(len(MAGIC)) != MAGIC:
            raise _wrong(header.key_id, keys.keyring, file)
        return log
    found = read_mariadb_encryption(head, file)
    if found and not _sensible(head[found.end :], found.end):
        key = keys.of_mariadb(found.key_version, file)
        for counted in (False, True):  # the file does not say which of the two modes the server uses
            chained = _MariadbLog(raw, key, found, start, file, counted=counted)
            chained.seek(found.end)
            if _sensible(chained.read(HEADER), found.end):
                return chained
        raise _wrong("1", keys.keys, file)
    return raw


def log_size(size: int, head: bytes) -> int:
    """Return the bytes of log in a file of that size with that beginning."""
    return size - MYSQL_HEADER if head.startswith(MAGIC_ENCRYPTED) else size


def _sensible(event: bytes, offset: int) -> bool:
    """Return whether the bytes are an unencrypted event of that offset, as in a dump, or empty."""
    if len(event) < HEADER:
        return True
    end = offset + int.from_bytes(event[9:13], "little")
    return event[4] in EVENT_NAMES and int.from_bytes(event[13:17], "little") == end


def _wrong(key_id: str, path: str, file: str) -> UsageError:
    return UsageError(
        f"key {key_id} does not open the log",
        why="the decrypted bytes are no binary log",
        hint="configure the key file of the server that wrote this log",
        file=file,
        key=path,
    )


class _Layer:
    """A LogFile that decrypts the bytes of another one."""

    def __init__(self, raw: LogFile) -> None:
        self._raw = raw
        self._at = 0

    def seek(self, offset: int, /) -> int:
        """See LogFile."""
        self._at = offset
        return offset

    def read(self, size: int, /) -> bytes:
        """See LogFile."""
        block = bytearray(size)
        got = self.readinto(memoryview(block))
        return bytes(block[:got])

    def readinto(self, block: memoryview, /) -> int:
        """See LogFile."""
        found = self._piece(self._at, len(block))
        block[: len(found)] = found
        self._at += len(found)
        return len(found)

    def _piece(self, at: int, size: int) -> bytes | memoryview:
        """Return between one and `size` bytes from `at` on; none at the end."""
        raise NotImplementedError


class _MysqlLog(_Layer):
    """One stream of AES-256-CTR after a header."""

    def __init__(self, raw: LogFile, master: bytes, header: MysqlEncryption) -> None:
        super().__init__(raw)
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        opener = Cipher(algorithms.AES(master), modes.CBC(header.vector)).decryptor()
        secret = hashlib.sha512(opener.update(header.password) + opener.finalize()).digest()
        self._key, self._vector = secret[:32], secret[32 : 32 + _VECTOR]

    def _piece(self, at: int, size: int) -> bytes:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self._raw.seek(MYSQL_HEADER + at)
        data = self._raw.read(min(size, _WINDOW)) or b""
        number, inside = divmod(at, 16)
        vector = self._vector + number.to_bytes(16 - _VECTOR, "big")
        stream = Cipher(algorithms.AES(self._key), modes.CTR(vector)).decryptor()
        stream.update(bytes(inside))
        return stream.update(data)


class _MariadbLog(_Layer):
    """Events that are encrypted separately. An event can be found only from an event before it."""

    def __init__(
        self, raw: LogFile, key: bytes, found: MariadbEncryption, start: int, file: str, *, counted: bool
    ) -> None:
        super().__init__(raw)
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        from loader.binlog.crypto import cipher_blocks

        self._kernels: Any = cipher_blocks
        cipher = Cipher(algorithms.AES(key), modes.ECB())  # noqa: S305 - block by block; the chaining is done here
        self._decrypt, self._encrypt = cipher.decryptor().update_into, cipher.encryptor().update_into
        self._counted = int(counted)
        self._file = file
        self._clear = found.end
        self._nonce = np.frombuffer(bytearray(found.nonce), np.uint8)
        self._marks = sorted({found.end, max(start, found.end)})
        self._block = np.empty(_WINDOW, np.uint8)
        pieces = _WINDOW // cipher_blocks.BLOCK + _WINDOW // HEADER + 2  # whole blocks, and a remainder in each event
        size = (pieces + 1) * cipher_blocks.BLOCK  # the library needs space for one more block
        self._ciphers, self._counters, self._masks = (np.empty(size, np.uint8) for _ in range(3))
        self._opened, self._stream = (np.empty(size, np.uint8) for _ in range(2))
        self._pieces = np.empty((pieces, 4), np.int64)
        self._span = np.zeros(7, np.int64)
        self._begin = self._end = 0

    def _piece(self, at: int, size: int) -> bytes | memoryview:
        if at < self._clear:
            self._raw.seek(at)
            return self._raw.read(min(size, self._clear - at)) or b""
        if not self._begin <= at < self._end:
            self._open(at)
        if not self._begin <= at < self._end:
            return b""
        first = at - self._base
        return self._block.data[first : first + min(size, self._end - at)]

    def _open(self, at: int) -> None:
        """Decrypt a window that holds byte `at`, unless the file ends before."""
        kernels, span = self._kernels, self._span
        event, length = self._event_at(at)
        first = max(0, (at - event - 4) // kernels.BLOCK)
        if first < 2:
            first, base = 0, event
        else:
            base = event + 4 + kernels.BLOCK * (first - 1)
        size = self._fill(base)
        span[: kernels.END] = base, event, length, first
        arrays = (self._ciphers, self._counters, self._masks, self._pieces)
        count = kernels.gather(self._block, size, span, self._nonce, self._counted, *arrays)
        ciphers, counters = (int(span[n]) * kernels.BLOCK for n in (kernels.CIPHERS, kernels.COUNTERS))
        self._decrypt(self._ciphers[:ciphers].data, self._opened.data)
        self._encrypt(self._counters[:counters].data, self._stream.data)
        kernels.scatter(self._pieces, count, self._opened, self._stream, self._masks, self._block)
        self._base = base
        self._begin, self._end = base + (kernels.BLOCK if first else 0), int(span[kernels.END])
        self._mark(int(span[kernels.EVENT]))

    def _event_at(self, at: int) -> tuple[int, int]:
        """Return start and length of the event that holds a byte; length 0 if the file ends before it."""
        event = self._marks[bisect_right(self._marks, at) - 1]
        while True:
            head = self._header(event)
            length = int.from_bytes(head[9:13], "little")
            if len(head) < 13 or event + length > at:
                return event, length
            if length < HEADER:
                raise self._damaged(event)
            event += length
            if event + HEADER < at:
                event = int(self._kernels.hop(self._block, self._fill(event), event, event, at))
                self._mark(event)

    def _header(self, event: int) -> bytes:
        self._raw.seek(event)
        return self._raw.read(13) or b""

    def _fill(self, offset: int) -> int:
        """Fill the block from an offset on, and return the number of bytes."""
        self._begin = self._end = 0
        self._raw.seek(offset)
        size = 0
        while size < len(self._block) and (got := self._raw.readinto(self._block.data[size:])):
            size += got
        return size

    def _mark(self, event: int) -> None:
        if self._marks[bisect_right(self._marks, event) - 1] != event:
            insort(self._marks, event)

    def _damaged(self, event: int) -> BinlogFormatError:
        return BinlogFormatError(
            "the length of an encrypted event is wrong: the log is damaged here",
            hint=f"compare with the file on the server; restore it or {LOAD_ALL_AGAIN}",
            file=self._file,
            position=event,
        )
