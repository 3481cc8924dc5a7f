"""Every character of every character set: the staged text of a row equals the server's conversion to UTF-8."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.binlog.values.codepages import SINGLE, UNICODE, WITH_PAIRS, decode_text, is_supported, sequences
from tests.integration.binlog.source import Source

pytestmark = pytest.mark.integration

GB18030_BEYOND = [
    bytes([a, b, c, d])
    for a in (0x90, 0x91, 0x95, 0xA0, 0xE2, 0xE3, 0xE4, 0xFE) for b in (0x30, 0x32, 0x39)
    for c in (0x81, 0x9A, 0xFE) for d in (0x30, 0x35, 0x36, 0x39)
]  # fmt: skip


def candidates(charset: str) -> list[bytes]:
    """What could be characters of the set."""
    if charset in UNICODE:
        points = [*range(0xD800), *range(0xE000, 0x10000)]
        points += [] if charset == "ucs2" else [0x10000, 0x1F600, 0x2FFFF, 0xE0001, 0x10FFFF, *range(0x10400, 0x10450)]
        return [chr(point).encode(UNICODE[charset]) for point in points]
    if charset == "latin1":
        return [bytes([byte]) for byte in range(256)]
    return sequences(charset) + (GB18030_BEYOND if charset == "gb18030" else [])


def is_character(charset: str, raw: bytes) -> bool:
    """Whether the loader takes the bytes for one character."""
    try:
        return len(decode_text(charset, raw)) == 1
    except UnicodeDecodeError:
        return False


def known_to_server(source: Source, charset: str, raws: list[bytes]) -> list[int]:
    """Numbers of those that are one character to the server; they stay in the table `raws`."""
    source.run("DROP TEMPORARY TABLE IF EXISTS raws", "CREATE TEMPORARY TABLE raws (n INT PRIMARY KEY, b VARBINARY(4))")
    rows = [f"({n}, X'{raw.hex()}')" for n, raw in enumerate(raws)]
    for first in range(0, len(rows), 8000):
        source.run(f"INSERT INTO raws VALUES {', '.join(rows[first : first + 8000])}")
    # An unknown character becomes `?`, and a broken one is cut off or becomes `?` itself.
    text, kept = f"CONVERT(CONVERT(b USING {charset}) USING utf8mb4)", f"HEX(CONVERT(b USING {charset}))"
    mark = "?".encode(UNICODE.get(charset, "ascii")).hex().upper()
    source.run(
        f"DELETE FROM raws WHERE {kept} <> HEX(b) OR COALESCE(CHAR_LENGTH({text}), 0) <> 1"
        f" OR ({text} = '?' COLLATE utf8mb4_bin AND HEX(b) <> '{mark}')"
    )
    return [n for (n,) in source.rows("SELECT n FROM raws ORDER BY n")]


def test_the_servers_have_no_other_sets(source: Source) -> None:
    names = {name for (name,) in source.rows("SELECT CHARACTER_SET_NAME FROM information_schema.CHARACTER_SETS")}
    assert {name for name in names if not is_supported(name)} == {"binary"}
    assert len(names) > 38


@pytest.mark.parametrize("charset", [*SINGLE, *WITH_PAIRS, *UNICODE, "latin1"])
def test_every_character(source: Source, charset: str, tmp_path: Path) -> None:
    if charset == "gb18030" and source.kind == "mariadb":
        pytest.skip("MariaDB does not have it")
    raws = candidates(charset)
    known = known_to_server(source, charset, raws)
    assert known == [n for n, raw in enumerate(raws) if is_character(charset, raw)]
    source.run(
        "DROP TABLE IF EXISTS texts",
        f"CREATE TABLE texts (n INT PRIMARY KEY, v VARCHAR(4) CHARACTER SET {charset}, t TEXT CHARACTER SET {charset})",
    )
    start = source.mark()
    source.run(f"INSERT INTO texts SELECT n, CONVERT(b USING {charset}), CONVERT(b USING {charset}) FROM raws")
    lines = source.staged(tmp_path, start).records(f"{source.schema}.texts")
    shown = source.rows(
        "SELECT CAST(n AS CHAR), CONVERT(v USING utf8mb4), CONVERT(t USING utf8mb4) FROM texts ORDER BY n"
    )
    assert len(shown) == len(known) >= 127
    assert [one for one, line in zip(shown, lines, strict=True) if list(one) != line[5:]] == []
