"""Random SQL literals for columns as information_schema describes them."""

from __future__ import annotations

import ipaddress
import json
import re
import uuid
from datetime import date, datetime, timedelta
from random import Random

from tests.chaos.access.columns import BINARIES, INTEGERS, TEXTS, Column

_NASTY = [
    "",
    " ",
    "NULL",
    "\\N",
    "\\",
    "'",
    '"',
    '""',
    ",",
    "a,b",
    "line\nbreak",
    "\r\n",
    "\t",
    "\x00",
    "\x1a",
    "a\\",
    "--",
]
_WIDE = ["é", "ß", "Ж", "中", "😀", "e\u0301"]


def text(value: str) -> str:
    """A string literal; only printable ASCII and characters beyond it stay as they are."""
    escapes = {"\\": "\\\\", "'": "''", "\n": "\\n", "\r": "\\r", "\x00": "\\0", "\x1a": "\\Z", "\t": "\\t"}
    return "'" + "".join(escapes.get(one, one) for one in value) + "'"


def literal(rng: Random, column: Column) -> str:
    """Return a random value of the column, sometimes NULL."""
    if column.nullable and rng.random() < 0.12:
        return "NULL"
    return _value(rng, column)


def key_literal(rng: Random, column: Column, number: int) -> str:
    """Return the value of a key column for a small number, so that keys meet again and again."""
    kind = column.type
    if kind in INTEGERS or kind == "decimal":
        most = (1 << (INTEGERS.get(kind, 7) - 1)) - 1 if kind != "decimal" else 10**3
        return str(number % most) + (".5" if kind == "decimal" and number % 3 == 0 else "")
    if kind in TEXTS:
        word = rng.choice(["k{}", "K{}", "k{} ", "ké{}", "k{}\t'"]).format(number)
        return text(word[: max(column.length, 1)])
    if kind == "date":
        return text(str(date(2000, 1, 1) + timedelta(days=number)))
    if kind in {"datetime", "timestamp"}:
        moment = datetime(2001, 1, 1) + timedelta(hours=number)
        return text(f"{moment:%Y-%m-%d %H:%M:%S}" + f".{number % 10}" * (column.size > 0))
    if kind == "enum":
        return text(column.labels[number % len(column.labels)])
    if kind in BINARIES:
        return f"x'{number % 65536:04x}'" if column.length > 1 else f"x'{number % 256:02x}'"
    if kind == "uuid":
        return text(str(uuid.UUID(int=number)))
    if kind == "time":
        return text(f"{number % 838:02}:00:00" + f".{number % 10}" * (column.size > 0))
    if kind == "year":
        return str(1901 + number % 255)
    if kind == "set":
        return str(number % (1 << len(column.labels)))
    if kind == "bit":
        return f"b'{number % (1 << column.size):b}'"
    return _value(rng, column)


def _value(rng: Random, column: Column) -> str:
    kind = column.type
    if kind in INTEGERS:
        return str(_integer(rng, INTEGERS[kind], "unsigned" in column.declared))
    if kind in TEXTS:
        return text(_text(rng, column.charset or "", column.length))
    if kind in BINARIES:
        length = rng.choice([0, 1, 3, min(column.length, 40)])
        return f"x'{rng.randbytes(min(length, column.length)).hex()}'"
    return _MAKERS[kind](rng, column)


def _integer(rng: Random, bits: int, unsigned: bool) -> int:
    low, high = (0, (1 << bits) - 1) if unsigned else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    return rng.choice([low, high, 0, 1, rng.randint(low, high), rng.randint(0, 100)])


def _text(rng: Random, charset: str, length: int) -> str:
    parts = _NASTY + (_WIDE if charset.startswith("utf8mb4") else ["é"] if charset != "ascii" else [])
    if rng.random() < 0.02 and length > 400:
        return "long " * rng.randint(60, min(length // 5, 2000))
    found = "".join(rng.choice([*parts, *(f"w{n}" for n in range(20))]) for _ in range(rng.randint(0, 4)))
    return found[:length]


def _decimal(rng: Random, column: Column) -> str:
    size, scale = (int(one) for one in re.findall(r"\d+", column.declared)[:2])
    whole = "".join(rng.choice("0123456789") for _ in range(rng.randint(0, size - scale)))
    part = "".join(rng.choice("0123456789") for _ in range(scale))
    sign = "-" if "unsigned" not in column.declared and rng.random() < 0.4 else ""
    return f"{sign}{whole or '0'}" + (f".{part}" if part else "")


def _float(rng: Random, column: Column) -> str:
    if "unsigned" in column.declared:
        return rng.choice(["0", "0.1", "7e20"])
    return rng.choice(["0", "-0e0", "0.1", "1e-30", "-3.5e37", "1.17549e-38", repr(rng.uniform(-1e6, 1e6))])


def _moment(rng: Random, column: Column) -> str:
    low, high = ("1970-01-02", "2038-01-01") if column.type == "timestamp" else ("1000-01-01", "9999-12-30")
    first, last = date.fromisoformat(low).toordinal(), date.fromisoformat(high).toordinal()
    day = date.fromordinal(rng.choice([first, last, rng.randint(first, last)]))
    if column.type == "date":
        return text(day.isoformat())
    fraction = "." + "".join(rng.choice("0123456789") for _ in range(column.size)) if column.size else ""
    seconds = rng.choice([0, 86399, rng.randint(0, 86399)])
    return text(f"{day.isoformat()} {seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}")


def _time(rng: Random, column: Column) -> str:
    fraction = "." + "".join(rng.choice("0123456789") for _ in range(column.size)) if column.size else ""
    hours = rng.choice([0, 1, 23, 24, 837, rng.randint(0, 837)])
    return text(f"{rng.choice(['', '-'])}{hours:02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}{fraction}")


def _set(rng: Random, column: Column) -> str:
    return text(",".join(one for one in column.labels if rng.random() < 0.4))


def _json(rng: Random, column: Column) -> str:
    leaves = [None, True, 0, -1, 1.5, 1e100, 2**40, "", "é\n", [], {}, "x" * 70]
    document = {f"k{n}": rng.choice(leaves) for n in range(rng.randint(0, 4))}
    found = rng.choice([document, [document, rng.choice(leaves)], rng.choice(leaves)])
    return text(json.dumps(found, ensure_ascii=False))


def _address(rng: Random, column: Column) -> str:
    if column.type == "inet4":
        return text(str(ipaddress.IPv4Address(rng.getrandbits(32))))
    return text(str(ipaddress.IPv6Address(rng.choice([0, 1, rng.getrandbits(128)]))))


def _vector(rng: Random, column: Column) -> str:
    numbers = (rng.choice([0, 1, -2.5, 1e-30, 3.4e38, rng.uniform(-1, 1)]) for _ in range(rng.randint(1, column.size)))
    return f"STRING_TO_VECTOR('{json.dumps([*numbers])}')"


_MAKERS = {
    "decimal": _decimal,
    "float": _float,
    "double": _float,
    "date": _moment,
    "datetime": _moment,
    "timestamp": _moment,
    "time": _time,
    "year": lambda rng, column: str(rng.choice([0, 1901, 1999, 2155])),
    "bit": lambda rng, column: f"b'{rng.getrandbits(column.size):b}'",
    "enum": lambda rng, column: text(rng.choice(column.labels)),
    "set": _set,
    "json": _json,
    "uuid": lambda rng, column: text(str(uuid.UUID(int=rng.getrandbits(128)))),
    "vector": _vector,
    "inet4": _address,
    "inet6": _address,
    "geometry": lambda rng, column: f"ST_GeomFromText('LINESTRING(0 0, {rng.randint(-9, 9)} 1)')",
    "point": lambda rng, column: f"ST_GeomFromText('POINT({rng.randint(-9, 9)} {rng.randint(-9, 9)})')",
}
