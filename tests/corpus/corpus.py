"""Where the corpus is, and how its files are read."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from loader.binlog.events.table_map import read_table_map
from loader.binlog.table_registry import TableRegistry
from loader.transport.decrypted import plain
from loader.transport.keys import KeyFiles
from tests.unit.binlog.builder import packed

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "corpus"
needs_corpus = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the corpus of third-party logs, shared/corpus beside the checkout, is not here"
)
SERVER, MARIADB, RUST = "mysql-server-std_data", "mariadb-server-std_data", "rust_mysql_common"
JAVA, GO = "mysql-binlog-connector-java", "go-mysql-history"
KEYS = KeyFiles(
    keyring=str(FOLDER / SERVER / "rpl_nogtid_encryption_keyring_master"), keys=str(FOLDER / MARIADB / "keys.txt")
)
_OTHER_FILES = {".txt", ".json", ".zst"}  # keys, vectors, a compressed payload


def names() -> list[str]:
    """Every log file of the corpus, as `folder/file`."""
    found = (path for path in FOLDER.glob("*/*") if path.is_file() and path.suffix not in _OTHER_FILES)
    return sorted(path.relative_to(FOLDER).as_posix() for path in found)


def read(name: str) -> bytes:
    """The log in that file, decompressed or decrypted."""
    data = (FOLDER / name).read_bytes()
    if name.endswith(".gz"):
        return gzip.decompress(data)
    log = plain(io.BytesIO(data), name, KEYS, 4)
    log.seek(0)
    return b"".join(iter(lambda: log.read(len(data)) or b"", b""))


class NamingRegistry(TableRegistry):
    """Gives columns of tables that the log does not name the names c0, c1, ..., and texts a character set."""

    def add(self, body: bytes) -> None:
        """See TableRegistry."""
        table = read_table_map(body)
        tags = _tags(table.optional)
        more = b""
        if 4 not in tags:
            names = b"".join(bytes([len(name)]) + name for name in (b"c%d" % i for i in range(len(table.types))))
            more += b"\x04" + packed(len(names)) + names
        if not tags & {2, 3}:
            more += b"\x02\x01\x08"  # latin1
        self._more = more
        super().add(body + more)

    def _note(self, body: bytes, number: int) -> None:
        super()._note(body[: len(body) - len(self._more)], number)


def _tags(block: bytes) -> set[int]:
    found, at = set(), 0
    while at < len(block):
        found.add(block[at])
        at += 2 + block[at + 1]
    return found
