"""Logs encrypted as servers do it, event by event and plainly, to compare the loader's block-wise decrypting with."""

from __future__ import annotations

import hashlib
import struct

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from tests.unit.binlog.builder import LogBuilder

NONCE = bytes(range(100, 112))


def aes(key: bytes, mode: modes.Mode, data: bytes) -> bytes:
    """Encrypted whole blocks, or a stream."""
    encryptor = Cipher(algorithms.AES(key), mode).encryptor()
    return encryptor.update(data) + encryptor.finalize()


def mysql_encrypted(log: bytes, master: bytes, key_id: str) -> bytes:
    """The log as MySQL writes it with binlog_encryption=ON."""
    password, vector = bytes(range(32)), bytes(range(50, 66))
    secret = hashlib.sha512(password).digest()
    sealed = aes(master, modes.CBC(vector), password)
    fields = b"\1" + bytes([len(key_id)]) + key_id.encode() + b"\2" + sealed + b"\3" + vector
    head = (b"\xfdbin\1" + fields).ljust(512, b"\0")
    return head + aes(secret[:32], modes.CTR(secret[32:40] + bytes(8)), log)


def start_encryption(log: LogBuilder) -> None:
    """The event behind which `mariadb_encrypted` hides all others."""
    log.event(164, b"\1" + struct.pack("<I", 1) + NONCE)


def mariadb_encrypted(log: LogBuilder, key: bytes, mode: str) -> bytes:
    """The log as MariaDB writes it with encrypt_binlog=ON; mode is CBC or CTR."""
    found = bytearray(log.data)
    for at, size, _ in log.events[2:]:
        found[at : at + size] = _hidden(log.data[at : at + size], key, NONCE + struct.pack("<I", at), mode)
    return bytes(found)


def _hidden(event: bytearray, key: bytes, vector: bytes, mode: str) -> bytes:
    length = bytes(event[9:13])
    event = event[:]
    event[9:13] = event[:4]
    body = bytes(event[4:])
    whole = len(body) // 16 * 16
    if mode == "CTR":
        secret = aes(key, modes.CTR(vector), body)
    else:
        mask = aes(key, modes.ECB(), vector)  # noqa: S305 - as the server does
        rest = bytes(a ^ b for a, b in zip(body[whole:], mask, strict=False))
        secret = aes(key, modes.CBC(vector), body[:whole]) + rest
    found = bytearray(bytes(4) + secret)
    found[:4] = found[9:13]
    found[9:13] = length
    return bytes(found)
