"""Parses the ### pseudo-SQL of `mysqlbinlog -vv`, the server's decoder, into staged records."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from loader.model.position import Position
from loader.model.table import Column, TableSchema
from tests.integration.binlog.source import Source

_HEAD = re.compile(r"### (INSERT INTO|UPDATE|DELETE FROM) `(.*)`\.`(.*)`")
_VALUE = re.compile(r"###   @(\d+)=(.*) /\* (\w+).*?\*/", re.DOTALL)
_ESCAPED = {  # MariaDB's writes control characters as \xhh and nothing else in another way
    "mysql": re.compile(rb"\\x([0-9A-Fa-f]{2})|\\(.)", re.DOTALL),
    "mariadb": re.compile(rb"\\x([0-9A-Fa-f]{2})"),
}
_LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f", b"0": b"\0"}
Text = str | None


@dataclass
class Change:
    """A statement: `I`, `U` or `D`, its table, and the literals of its images by column number from 1."""

    letter: str
    table: str
    images: list[dict[int, str]] = field(default_factory=list)


def changes(source: Source, start: Position, stop: Position) -> Iterator[Change]:
    """The row changes of a stretch of log, as mysqlbinlog tells them."""
    argv = [*source.server.tool("mysqlbinlog"), "-vv", "--base64-output=decode-rows", "--verify-binlog-checksum"]
    argv += [
        f"--start-position={start.logpos}",
        f"--stop-position={stop.logpos}",
        str(source.server.log_dir / start.file),
    ]
    done = subprocess.run(argv, capture_output=True, check=True)
    found: Change | None = None
    for line in _lines(done.stdout.decode("latin-1")):
        head = _HEAD.fullmatch(line)
        if head:
            if found:
                yield found
            found = Change(head[1][0], f"{head[2]}.{head[3]}")
        elif line in {"### SET", "### WHERE"} and found:
            found.images.append({})
        elif found and (value := _VALUE.fullmatch(line)):
            found.images[-1][int(value[1])] = value[2]
        elif not line.startswith("###") and found:
            yield found
            found = None


def _lines(text: str) -> Iterator[str]:
    """Lines, with those that a text's own line feed cut put together again."""
    whole = ""
    for line in text.split("\n"):
        whole = f"{whole}\n{line}" if whole else line
        if whole.startswith("###   @") and not whole.endswith("*/"):
            continue
        yield whole
        whole = ""


def staged_text(column: Column, literal: str, server: str) -> Text:
    """What is staged for a literal of the mysqlbinlog of that kind of server."""
    if literal == "NULL":
        return None
    kind = column.type
    if kind.endswith("int"):
        return _integer(column, literal)
    if kind == "enum":
        return column.labels[int(literal) - 1] if int(literal) else ""
    if kind == "set":
        return ",".join(label for label, bit in zip(column.labels, reversed(literal[2:-1]), strict=False) if bit == "1")
    if kind == "bit":
        return str(int(literal[2:-1], 2))
    if kind == "timestamp":
        return _instant(column, literal)
    if kind == "date":
        return literal.strip("'").replace(":", "-")
    if kind == "year":
        return "0000" if literal == "1900" else literal  # there is no year 1900: mysqlbinlog adds it to 0
    if kind in {"datetime", "time", "decimal"}:
        return literal.strip("'")
    if kind in {"float", "double"}:
        return literal.split(" ", maxsplit=1)[0]
    return _string(column, literal, server)


def _integer(column: Column, literal: str) -> str:
    signed, _, unsigned = literal.partition(" (")
    return unsigned.rstrip(")") if column.unsigned and unsigned else signed


def _instant(column: Column, literal: str) -> str:
    seconds, _, fraction = literal.partition(".")
    if not int(seconds):
        return "0000-00-00 00:00:00" + ("." + "0" * column.size if column.size else "")
    moment = f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%d %H:%M:%S}"
    return f"{moment}.{fraction}" if column.size else moment


def _string(column: Column, literal: str, kind: str) -> str:
    def plain(found: re.Match[bytes]) -> bytes:
        return bytes.fromhex(found[1].decode()) if found[1] else _LETTERS.get(found[2], found[2])

    raw = _ESCAPED[kind].sub(plain, literal[1:-1].encode("latin-1"))
    if column.type.endswith(("blob", "binary")):
        return raw.ljust(column.size, b"\0").hex()
    return raw.decode("cp1252" if column.charset == "latin1" else "utf-8")


def records(change: Change, schema: TableSchema, server: str) -> list[list[Text]]:
    """The records that a change is staged as: letter and values, None also for what an image leaves out."""
    columns = list(enumerate(schema.columns, 1))
    rows = [[staged_text(column, image.get(n, "NULL"), server) for n, column in columns] for image in change.images]
    if change.letter != "U":
        return [[change.letter, *rows[0]]]
    if keys(rows[0], schema) != keys(rows[1], schema):
        return [["D", *rows[0]], ["I", *rows[1]]]
    return [["U", *rows[1]]]


def keys(row: Sequence[Text], schema: TableSchema) -> list[Text]:
    """The key of a row."""
    names = [column.name for column in schema.columns]
    return [row[names.index(name)] for name in schema.key]
