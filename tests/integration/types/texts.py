"""Columns of text: lengths where something changes, and every character set of a server."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from loader.binlog.values import codepages
from tests.integration.types.kind import Kind, Make

_SPECIAL = r"""'a"b\\c\n\r\0\t,\'\Z;|', '\\N', '"', ' lead and trail ', '\\\\n', 'NULL', '', '""', '\\'"""
EDGES = tuple(part if part.startswith("'") else f"'{part}" for part in _SPECIAL.split(", "))
_UTF8 = ("'ü'", "'日本'", "'😀'", "'\ufeff\u2028\u0085'", "'x '", "'éé'", "'\U0010ffff'")


def plain(server: str) -> list[Kind]:
    """Types of text at their lengths, in UTF-8 and latin1."""
    both = (*EDGES, *_UTF8)
    made = [
        Kind("CHAR(0)", ("''",)), Kind("CHAR(1)", ("''", "'x'", "'😀'")), Kind("VARCHAR(0)", ("''",)),
        Kind("CHAR(63)", both), Kind("CHAR(64)", (*both, "REPEAT('😀', 64)")), Kind("CHAR(255)", (*both, "REPEAT('😀', 255)")),
        Kind("CHAR(255) CHARACTER SET latin1", (*EDGES, "REPEAT('ÿ', 255)")), Kind("CHAR(255) CHARACTER SET utf32", (*both, "REPEAT('😀', 255)")),
        Kind("VARCHAR(63)", (*both, "REPEAT('😀', 63)")), Kind("VARCHAR(64)", (*both, "REPEAT('😀', 64)")),
        Kind("VARCHAR(255) CHARACTER SET latin1", (*EDGES, "REPEAT('€', 255)")),
        Kind("VARCHAR(256) CHARACTER SET latin1", (*EDGES, "REPEAT('€', 256)", "REPEAT('x', 255)")),
        Kind("TINYTEXT", (*both, "REPEAT('x', 255)")), Kind("TEXT", (*both, "REPEAT('\"', 65535)", "REPEAT('ab\\n', 300)")),
        Kind("MEDIUMTEXT", (*both, "REPEAT('ü', 70000)", "REPEAT('x', 251)")), Kind("LONGTEXT", (*both, "REPEAT('\\\\', 70000)")),
        Kind("VARCHAR(40) COLLATE utf8mb4_bin", both), Kind("TEXT CHARACTER SET utf8mb3", EDGES),
    ]  # fmt: skip
    if server == "mysql":
        return made
    packed = (*EDGES, "REPEAT('mehr ', 60)", "REPEAT('x', 99)", "''", "SHA2('a', 512)")
    return [
        *made, Kind("VARCHAR(400) COMPRESSED CHARACTER SET latin1", packed), Kind("VARCHAR(400) COMPRESSED", packed),
        Kind("TEXT COMPRESSED CHARACTER SET gbk", (*packed, "REPEAT('你\"', 5000)")),
        Kind("LONGTEXT COMPRESSED CHARACTER SET utf16", (*packed, "CONCAT(REPEAT('a', 1000), '😀')")),
        Kind("MEDIUMTEXT COMPRESSED", (*packed, "REPEAT('mehr 😀 ', 20000)", "REPEAT(SHA2('a', 512), 400)")),
    ]  # fmt: skip


def of_charsets(charsets: Sequence[str]) -> list[Kind]:
    """CHAR, VARCHAR and TEXT in each of the character sets, with characters from all over it."""
    made = []
    for charset in charsets:
        few = tuple(_literal(charset, Random(f"{charset}{n}"), 12) for n in range(6))
        many = tuple(_literal(charset, Random(f"{charset}{n}"), 60) for n in range(12))
        make = _maker(charset, 12)
        made += [
            Kind(f"CHAR(12) CHARACTER SET {charset}", (*few, "'a'"), make),
            Kind(f"VARCHAR(300) CHARACTER SET {charset}", (*few, *many, *EDGES), make),
            Kind(f"TEXT CHARACTER SET {charset}", (*many, *EDGES, f"REPEAT({few[0]}, 99)"), _maker(charset, 200)),
        ]
    return made


def _maker(charset: str, most: int) -> Make:
    return lambda random: _literal(charset, random, random.randint(0, most))


def _literal(charset: str, random: Random, count: int) -> str:
    """A literal of so many characters of the set, by their bytes."""
    raw = b"".join(_character(charset, random) for _ in range(count))
    return f"_{charset} X'{raw.hex()}'"


def _character(charset: str, random: Random) -> bytes:
    most = 0x10000 if charset in {"ucs2", "utf8mb3"} else 0x110000
    if charset == "latin1":
        return bytes([random.randrange(1, 256)])
    if charset in codepages.SINGLE or charset in codepages.WITH_PAIRS:
        return random.choice(_sequences(charset))
    code = random.choice((random.randrange(1, 0x80), random.randrange(0x80, 0xD800), random.randrange(0xE000, most)))
    return chr(code).encode(codepages.UNICODE.get(charset, "utf-8"))


_known: dict[str, list[bytes]] = {}


def _sequences(charset: str) -> list[bytes]:
    if charset not in _known:
        codes = codepages.codepage_of(charset)
        every = zip(codepages.sequences(charset), codes.tolist(), strict=True)
        _known[charset] = [raw for raw, code in every if code]
    return _known[charset]
