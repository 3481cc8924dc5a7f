"""The keys of encrypted logs, from the key file of the server that wrote them.

MySQL: the file of component_keyring_file (JSON), or of the older plugin keyring_file (records of sizes, names and bytes
that are combined with a constant). MariaDB: the unencrypted file of file_key_management, with lines `id;hex`.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from itertools import cycle
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from loader.errors import UnsupportedError, UsageError

_PLUGIN = re.compile(rb"Keyring file version:(1\.0|2\.0)")
_PLUGIN_END = b"EOF"
_DIGEST = 32  # SHA-256 after the end, from version 2.0 on
_SIZES = struct.Struct("<5Q")  # of a record, key id, type, user, key
_OBFUSCATION = b"*305=Ljt0*!@$Hnm(*-9-w;:"
_OPENSSL = b"Salted__"
_LINE = re.compile(r"\s*(\d+);((?:[0-9a-fA-F]{2})+)(?![0-9a-fA-F]).*")
_KEY_BYTES = (16, 24, 32)
_LOG_KEY = 1  # of file_key_management: the server encrypts its own files with it


class KeyFiles(BaseModel):
    """Paths of key files, or empty. They are read where a log is opened, so also by Spark tasks.

    Attributes:
        keyring: of a MySQL server.
        keys: of a MariaDB server.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    keyring: str = ""
    keys: str = ""

    def of_mysql(self, key_id: str, file: str) -> bytes:
        """Return the key with a name.

        Raises:
            UsageError: no keyring is configured, it cannot be read, or it has no such key.
        """
        path = _given(self.keyring, "keyring", key_id, file)
        data = _read(path)
        found = _plugin_keys(data, path) if _PLUGIN.match(data) else _component_keys(data, path)
        if key_id not in found:
            raise _missing(key_id, path, file, "the server purges keys that its current logs no longer need")
        return found[key_id]

    def of_mariadb(self, version: int, file: str) -> bytes:
        """Return the key that the server encrypts its logs with.

        Raises:
            UsageError: no key file is configured, it cannot be read, or it has no such key.
            UnsupportedError: the key file is encrypted.
        """
        path = _given(self.keys, "keys", str(_LOG_KEY), file)
        if version != 1:
            raise _missing(f"{_LOG_KEY} version {version}", path, file, "a key file holds the first version only")
        found = _listed_keys(_read(path), path)
        if _LOG_KEY not in found:
            raise _missing(str(_LOG_KEY), path, file, f"it has {', '.join(map(str, sorted(found))) or 'none'}")
        return found[_LOG_KEY]


NO_KEYS = KeyFiles()


def _given(path: str, option: str, key_id: str, file: str) -> str:
    if not path:
        raise UsageError(
            "the log file is encrypted",
            hint=f"name the server's key file: ?{option}=/path in an address, {option} of a source in the"
            " configuration; or read the log over the network, where the server decrypts it",
            file=file,
            key=key_id,
        )
    return path


def _missing(key_id: str, path: str, file: str, why: str) -> UsageError:
    return UsageError(
        f"the key file lacks key {key_id}",
        why=why,
        hint="use the key file that the server had when it wrote this log",
        file=file,
        key=path,
    )


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UsageError("the key file cannot be read", why=str(error), key=path) from error


def _component_keys(data: bytes, path: str) -> dict[str, bytes]:
    try:
        return {entry["data_id"]: bytes.fromhex(entry["data"]) for entry in json.loads(data)["elements"]}
    except (ValueError, KeyError, TypeError) as error:
        raise _unreadable(path, "a file of component_keyring_file or keyring_file is needed") from error


def _plugin_keys(data: bytes, path: str) -> dict[str, bytes]:
    head = _PLUGIN.match(data)
    digested = bool(head and head[1] == b"2.0")
    records = data[head.end() if head else 0 : len(data) - (_DIGEST if digested else 0)]
    if not records.endswith(_PLUGIN_END):
        raise _unreadable(path, "it is truncated")
    records = records[: -len(_PLUGIN_END)]
    if digested and hashlib.sha256(records).digest() != data[-_DIGEST:]:
        raise _unreadable(path, "its digest does not match")
    found = {}
    while records:
        total, *sizes = _SIZES.unpack_from(records)
        at, fields = _SIZES.size, []
        for size in sizes:
            fields.append(records[at : at + size])
            at += size
        found[fields[0].decode()] = bytes(a ^ b for a, b in zip(fields[3], cycle(_OBFUSCATION), strict=False))
        records = records[total:]
    return found


def _listed_keys(data: bytes, path: str) -> dict[int, bytes]:
    if data.startswith(_OPENSSL):
        raise UnsupportedError(
            "the key file is itself encrypted",
            hint="decrypt it with `openssl enc -d` and configure the result",
            key=path,
        )
    found = {}
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key = _LINE.fullmatch(line)
        if not key or len(key[2]) // 2 not in _KEY_BYTES:
            raise _unreadable(path, f"line {number} is not a number, a semicolon and 32, 48 or 64 hex digits")
        found[int(key[1])] = bytes.fromhex(key[2])
    return found


def _unreadable(path: str, why: str) -> UsageError:
    return UsageError("the key file is invalid", why=why, hint="configure the key file of the server", key=path)
