"""Write `loader/binlog/values/codepages.bin`: what each byte sequence of the servers' character sets is in Unicode.

    python -m infra.charsets

The source is a MySQL server's own CONVERT ... USING utf8mb4. The integration tests compare the file with MySQL and
MariaDB, so this is run again only for a character set that a later server adds.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pymysql

from infra.servers import start_server
from loader.binlog.values.codepages import DATA, SINGLE, WITH_PAIRS, sequences

_AT_ONCE = 8000


def characters(cursor: Any, charset: str, wanted: list[bytes]) -> Iterator[str]:
    """Return the character of each byte sequence on the server; empty for an invalid sequence."""
    cursor.execute("CREATE TEMPORARY TABLE sequences (n INT PRIMARY KEY, b VARBINARY(4))")
    for first in range(0, len(wanted), _AT_ONCE):
        rows = [f"({first + n}, X'{raw.hex()}')" for n, raw in enumerate(wanted[first : first + _AT_ONCE])]
        cursor.execute(f"INSERT INTO sequences VALUES {', '.join(rows)}")
    cursor.execute(
        f"SELECT b, HEX(CONVERT(b USING {charset})), CONVERT(CONVERT(b USING {charset}) USING utf8mb4)"
        " FROM sequences ORDER BY n"
    )
    for raw, kept, text in cursor.fetchall():
        whole = text and kept == raw.hex().upper() and len(text) == 1
        yield text if whole and (text != "?" or raw == b"?") else ""
    cursor.execute("DROP TEMPORARY TABLE sequences")


def main() -> None:
    """Start a server, ask it, write the file."""
    codes: list[int] = []
    with TemporaryDirectory() as folder:
        server = start_server("mysql", Path(folder), {})
        connection = pymysql.connect(host=server.host, port=server.port, user=server.user, charset="utf8mb4")
        with connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE charsets")
            cursor.execute("USE charsets")
            for charset in (*SINGLE, *WITH_PAIRS):
                codes += [ord(text) if text else 0 for text in characters(cursor, charset, sequences(charset))]
        server.kill()
    # Neighbouring sequences have neighbouring characters, so their differences compress well.
    DATA.write_bytes(zlib.compress(np.diff(np.array(codes, "<u2"), prepend=np.uint16(0)).astype("<u2").tobytes(), 9))


if __name__ == "__main__":
    main()
