"""Columns of every type that a server has, with the values at the edges of each and a maker of random ones.

A value is an SQL expression. The tables that are made of these columns are in tables.py.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from random import Random

from tests.integration.binlog.source import Source
from tests.integration.types import documents, texts
from tests.integration.types.kind import Kind, Make, quoted


def _integers() -> list[Kind]:
    made = []
    for name, bits in (("TINYINT", 8), ("SMALLINT", 16), ("MEDIUMINT", 24), ("INT", 32), ("BIGINT", 64)):
        for sign, low, high in ((" UNSIGNED", 0, 2**bits - 1), ("", -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)):
            edges = (low, low + 1, -1 if low else 1, 0, high - 1, high, 10, 100, high // 10)
            made.append(Kind(name + sign, tuple(map(str, edges)), _between(low, high)))
    return [*made, Kind("INT(9) ZEROFILL", ("0", "7", "4294967295")), Kind("BOOLEAN", ("0", "1"))]


def _between(low: int, high: int) -> Make:
    return lambda random: str(
        random.randint(low, high) if random.random() < 0.5 else max(low, high >> random.randrange(64))
    )


def _float(random: Random) -> str:
    bits = random.getrandbits(32)
    value = struct.unpack("<f", bits.to_bytes(4, "little"))[0]
    return repr(value) if (bits >> 23) & 0xFF != 0xFF else repr(random.uniform(-1000, 1000))


def _double(random: Random) -> str:
    bits = random.getrandbits(64)
    value = struct.unpack("<d", bits.to_bytes(8, "little"))[0]
    return f"{value!r}e0" if "e" not in repr(value) and (bits >> 52) & 0x7FF != 0x7FF else f"{random.gauss(0, 1e6):.9e}"


def _floats() -> list[Kind]:
    single = (
        "0",
        "-0.0",
        "1e-45",
        "1.17549435e-38",
        "3.4028234e38",
        "-3.4028234e38",
        "16777217",
        "0.1",
        "123456.7",
        "1e10",
    )
    double = (
        "0e0", "-0e0", "5e-324", "2.2250738585072014e-308", "1.7976931348623157e308", "-1.7976931348623157e308", "0.1e0",
        "1e15", "1e16", "1e21", "1e22", "123456789012345678e0", "1e-5", "1e-7", "9007199254740993e0",
    )  # fmt: skip
    return [
        Kind("FLOAT", single, _float), Kind("DOUBLE", double, _double), Kind("FLOAT(9,3)", ("-9999.999", "0.001", "3.14159")),
        Kind("DOUBLE(15,4)", ("12345.6789", "1e10", "-0.5")), Kind("FLOAT UNSIGNED", ("0", "0.3")),
    ]  # fmt: skip


def decimal(precision: int, scale: int) -> Kind:
    """DECIMAL of that shape: all nines, the smallest, and in between."""
    whole = precision - scale
    nines = f"{'9' * whole or '0'}.{'9' * scale or '0'}"
    least = f"0.{'0' * (scale - 1)}1" if scale else "1"

    def make(random: Random) -> str:
        digits = "".join(random.choice("0000123456789") for _ in range(precision))
        return f"{random.choice(('', '-'))}{digits[:whole] or '0'}.{digits[whole:] or '0'}"

    return Kind(
        f"DECIMAL({precision},{scale})", (nines, f"-{nines}", least, f"-{least}", "0", "1" if whole else least), make
    )


def _moment(random: Random, first: int, last: int) -> str:
    year, month, day = random.randint(first, last), random.randint(1, 12), random.randint(1, 28)
    clock = (
        f"{random.randrange(24):02}:{random.randrange(60):02}:{random.randrange(60):02}.{random.randrange(10**6):06}"
    )
    return f"{year:04}-{month:02}-{day:02} {clock}"


def _partial(random: Random) -> str:
    text = _moment(random, 0, 9999)
    cut = random.choice(((5, 7), (8, 10), (5, 5)))
    return quoted(text[: cut[0]] + "0" * (cut[1] - cut[0]) + text[cut[1] :])


def datetime(digits: int) -> Kind:
    """DATETIME, with zero and partly zero dates. Values do not round up to what is out of range."""
    edges = (
        "0000-00-00", "2024-00-15 00:00:00.5", "2024-02-00 01:02:03.000001", "0000-00-01", "1000-01-01", "0001-01-01 00:00:00.1",
        "9999-12-31 23:59:59", "2024-02-29 12:34:56.4", "1969-12-31 23:59:59.25", "2000-01-01 00:00:00.049999",
    )  # fmt: skip
    return Kind(f"DATETIME({digits})", tuple(map(quoted, edges)), _partial)


def timestamp(digits: int) -> Kind:
    """TIMESTAMP, in a session whose zone is UTC."""
    edges = (
        "0000-00-00", "1970-01-01 00:00:00.96", "1970-01-01 00:00:01", "1970-01-01 00:00:01.000001", "2038-01-19 03:14:07", "2024-02-29 12:34:56.4",
        "2001-09-09 01:46:40.949999",
    )  # fmt: skip
    return Kind(
        f"TIMESTAMP({digits}) NULL", tuple(map(quoted, edges)), lambda random: quoted(_moment(random, 1971, 2037))
    )


def time(digits: int) -> Kind:
    """TIME of both signs, to its ends."""
    edges = (
        "00:00:00", "-838:59:59", "838:59:59", "-00:00:00.000001", "-00:00:00.999999", "00:00:01", "-00:00:01", "-100:00:00.5",
        "23:59:59.949999", "-838:59:58.9", "-01:00:00", "256:00:00.25", "-00:00:00.004",
    )  # fmt: skip

    def make(random: Random) -> str:
        hours = random.choice((random.randrange(24), random.randrange(838)))
        fraction = f"{random.randrange(10**6):06}"
        return quoted(
            f"{random.choice('- ').strip()}{hours}:{random.randrange(60):02}:{random.randrange(60):02}.{fraction}"
        )

    return Kind(f"TIME({digits})", tuple(map(quoted, edges)), make)


def _date(random: Random) -> str:
    return _partial(random).split(" ", maxsplit=1)[0] + "'"


def numbers() -> list[Kind]:
    """Integers, floating point and decimals, YEAR, and columns that are generated or invisible."""
    shapes = [(p, s) for p in (1, 2, 9, 10, 18, 19, 28, 38, 64, 65) for s in (0, 1, 9, 10, 29, 30) if s <= p]
    return [
        *_integers(), *_floats(), *(decimal(*shape) for shape in shapes),
        Kind("YEAR", ("0", "1901", "2155", "2000", "1970"), lambda random: str(random.randint(1901, 2155))),
        Kind("INT INVISIBLE", ("1", "-1", "NULL")), Kind("INT GENERATED ALWAYS AS (n0 + 1) VIRTUAL", ()),
        Kind("BIGINT GENERATED ALWAYS AS (n5 * 3) STORED", ()), Kind("INT NOT NULL DEFAULT 7", ("7", "8")),
        Kind("VARCHAR(80) GENERATED ALWAYS AS (CONCAT('\"', n1, '\\\\')) VIRTUAL", ()),
    ]  # fmt: skip


def times() -> list[Kind]:
    """DATE, and every fraction of the types with one."""
    edges = (
        "0000-00-00",
        "2024-00-15",
        "2024-02-00",
        "0000-00-01",
        "1000-01-01",
        "9999-12-31",
        "2024-02-29",
        "0000-01-01",
    )
    fractioned = [make(digits) for make in (datetime, timestamp, time) for digits in range(7)]
    return [Kind("DATE", tuple(map(quoted, edges)), _date), *fractioned]


def bits() -> list[Kind]:
    """BIT of every width."""
    return [
        Kind(f"BIT({n})", ("0", "1", str(2**n - 1), str(2 ** (n - 1)), str(2**n // 3)), _between(0, 2**n - 1))
        for n in range(1, 65)
    ]


def _labels(count: int, width: int = 1) -> str:
    return ", ".join(f"'v{n:0{width}}'" for n in range(count))


def labelled() -> list[Kind]:
    """ENUM and SET at every size of theirs, with labels that need care and in several character sets."""
    made = []
    for count in (1, 2, 255, 256, 300):
        edges = ("0", "1", str(count), str(count // 2 + 1))
        made.append(Kind(f"ENUM({_labels(count)})", edges, _between(0, count)))
    for count in (1, 7, 8, 9, 16, 17, 24, 25, 32, 33, 63, 64):
        edges = ("0", "1", str(2**count - 1), str(2 ** (count - 1)), str(2**count // 3))
        made.append(Kind(f"SET({_labels(count)})", edges, _between(0, 2**count - 1)))
    careful = r"'a\"b', 'c\\d', 'e''f', '', 'n\nl', 'NULL', '\\N', ' x', 'ä€'"
    made.append(Kind(f"ENUM({careful})", tuple(map(str, range(10)))))
    made.append(
        Kind(r"SET('a\"b', 'c\\d', 'e''f', 'n\nl', '\\N', ' x', 'ä€')", tuple(map(str, (0, 1, 2, 127, 64, 33))))
    )
    for charset, label in (
        ("latin1", "ä€"),
        ("gbk", "你丂"),
        ("ucs2", "あ"),
        ("koi8r", "привет"),
        ("utf32", "х"),
        ("sjis", "ソ"),
    ):
        made.append(Kind(f"ENUM('a', '{label}') CHARACTER SET {charset}", ("0", "1", "2")))
        made.append(Kind(f"SET('a', '{label}') CHARACTER SET {charset}", ("0", "1", "2", "3")))
    return made


def _bytes(sizes: Sequence[int]) -> tuple[str, ...]:
    edges = ["''", "X'00'", "X'FF0000'", "X'0A0D5C2200'", "X'5C4E'"]
    return (*edges, *(f"REPEAT(X'{n % 256:02x}', {size})" for n, size in enumerate(sizes)))


def _random_bytes(most: int) -> Make:
    return lambda random: f"X'{random.randbytes(random.randint(0, most)).hex()}'"


def _vector(random: Random) -> list[float]:
    return [struct.unpack("<f", struct.pack("<f", random.gauss(0, 10 ** random.randint(-9, 9))))[0] for _ in range(3)]


def binaries(server: str) -> list[Kind]:
    """BINARY, VARBINARY and BLOBs at the lengths where something changes, geometries, vectors and MariaDB's own."""
    made = [
        Kind("BINARY(0)", ("''",)), Kind("BINARY(1)", ("''", "X'00'", "X'FF'")), Kind("BINARY(7)", _bytes([7])[:5]),
        Kind("BINARY(255)", _bytes([254, 255]), _random_bytes(255)), Kind("VARBINARY(0)", ("''",)),
        Kind("VARBINARY(255)", _bytes([255]), _random_bytes(255)), Kind("VARBINARY(256)", _bytes([255, 256]), _random_bytes(256)),
        Kind("TINYBLOB", _bytes([255]), _random_bytes(200)), Kind("BLOB", _bytes([255, 256, 65535]), _random_bytes(900)),
        Kind("MEDIUMBLOB", _bytes([65536]), _random_bytes(900)), Kind("LONGBLOB", _bytes([65535, 70000]), _random_bytes(900)),
        *documents.geometries(server),
    ]  # fmt: skip
    if server == "mysql":
        vectors = ("[0,-0,1]", "[3.4028235e38,-1.17549435e-38,16777217]", "[0.1,0.333333333,1e10]")
        edges = tuple(f"STRING_TO_VECTOR('{text}')" for text in vectors)
        long = "STRING_TO_VECTOR(CONCAT('[', REPEAT('-1.1754944e-38,', 2047), '2.5]'))"
        made.append(Kind("VECTOR(3)", edges, lambda random: f"STRING_TO_VECTOR('{_vector(random)}')"))
        made.append(Kind("VECTOR", (*edges, long, "STRING_TO_VECTOR('[7]')")))
        return made
    method = ("''", "X'00'", "REPEAT(X'00FF0A', 99)", "REPEAT('a', 100)", "RANDOM_BYTES(99)")
    return [*made, Kind("VARBINARY(300) COMPRESSED", method), Kind("BLOB COMPRESSED", (*method, "REPEAT('ab', 30000)"))]


def ids() -> list[Kind]:
    """MariaDB's UUID and addresses."""
    uuids = (
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-1fff-bfff-ffffffffff00",
        "123e4567-e89b-12d3-a456-426614174000",
    )
    fours = ("0.0.0.0", "255.255.255.0", "1.2.3.4", "10.0.0.0")  # noqa: S104
    sixes = (
        "::", "::1", "2001:db8::ff00:42:8300", "::ffff:1.2.3.4", "::1.2.3.4", "1::", "1:2:3:4:5:6:7:8", "1:0:0:2:0:0:0:3",
        "0:1::", "fe80::1:0:0", "1:0:2:3:4:5:6:7", "::ffff:0:1", "::1:2", "0:0:0:1::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ff00",
        "::fffe:1.2.3.4", "::0.0.1.0", "2001:0:0:1::",
    )  # fmt: skip
    return [
        Kind("UUID", tuple(map(quoted, uuids)), _uuid), Kind("INET4", tuple(map(quoted, fours)), _inet4),
        Kind("INET6", tuple(map(quoted, sixes)), _inet6),
    ]  # fmt: skip


def _uuid(random: Random) -> str:
    digits = random.randbytes(16).hex()
    return quoted(f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}")


def _inet4(random: Random) -> str:
    return quoted(".".join(str(random.choice((0, random.randrange(256)))) for _ in range(4)))


def _inet6(random: Random) -> str:
    return quoted(":".join(f"{random.choice((0, 0, 1, 0xFFFF, random.randrange(65536))):x}" for _ in range(8)))


def charsets_of(source: Source) -> list[str]:
    """All character sets of the server."""
    query = "SELECT CHARACTER_SET_NAME FROM information_schema.CHARACTER_SETS ORDER BY 1"
    return [str(name) for (name,) in source.rows(query) if name != "binary"]


def all_tables(source: Source, *, opaque: bool = True) -> dict[str, list[Kind]]:
    """The columns of each table, by its name; see documents.json for `opaque`."""
    server, charsets = source.kind, charsets_of(source)
    found = {
        "numbers": numbers(), "times": times(), "bits": bits(), "labelled": labelled(), "binaries": binaries(server),
        "documents": documents.json(server, opaque=opaque), "texts": texts.plain(server),
    }  # fmt: skip
    for at in range(0, len(charsets), 16):
        found[f"charsets{at // 16}"] = texts.of_charsets(charsets[at : at + 16])
    if server == "mariadb":
        found["ids"] = ids()
    return found
