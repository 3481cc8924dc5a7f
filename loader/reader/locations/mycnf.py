"""Finds the log of a server by its option file.

Format: the MySQL manual, "Using Option Files": sections in brackets, `name` or `name=value` with `-` and `_` alike,
`#` and `;` for comments, quotes around values, escapes, `!include` and `!includedir` (files named *.cnf; MariaDB reads
them in the order of their names).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from loader.errors import UsageError
from loader.reader.files.log_files import FolderFiles, IndexedFiles, LogFiles
from loader.transport.keys import NO_KEYS, KeyFiles

_SECTIONS = re.compile(r"mysqld(-\d+\.\d+)?|server|mariadbd?(-\d+\.\d+)?|mysqld\d*|galera")
_ESCAPES = {r"\b": "\b", r"\t": "\t", r"\n": "\n", r"\r": "\r", r"\\": "\\", r"\s": " "}
_DEEPEST = 10  # levels of included files, as in the server
_DATADIR = "/var/lib/mysql"  # in the packages of all distributions


def read_options(path: Path) -> dict[str, str]:
    """Return the server's options in a file and its included files: names with `_`; '' for no value; the last one wins.

    Raises:
        UsageError: a file cannot be read, or files include each other.
    """
    found: dict[str, str] = {}
    for section, name, value in _lines(path, 0):
        if _SECTIONS.fullmatch(section):
            found[name.replace("-", "_").lower()] = value
    return found


def log_of(path: Path, keys: KeyFiles = NO_KEYS) -> LogFiles:
    """Return the log of the server with this option file.

    Raises:
        UsageError: the file cannot be read, or the server writes no log.
    """
    options = read_options(path)
    if "skip_log_bin" in options or "disable_log_bin" in options:
        raise UsageError(
            "the server of this option file writes no binary log",
            hint="remove skip_log_bin and disable_log_bin from the file, set log_bin, and restart the server",
            file=path,
        )
    datadir = path.parent / options.get("datadir", _DATADIR)
    base = options.get("log_bin", "")
    index = options.get("log_bin_index", "")
    if base.lower() in {"", "1", "on"}:
        base = _default_base(datadir, options)
    log = datadir / base
    stem = log.with_suffix("") if log.suffix else log  # the server drops an extension
    indexed = datadir / index if index else stem.with_name(f"{stem.name}.index")
    if index and not indexed.suffix:
        indexed = indexed.with_name(f"{indexed.name}.index")
    return IndexedFiles(indexed, datadir, keys) if indexed.exists() else FolderFiles(stem.parent, stem.name, keys)


def _default_base(datadir: Path, options: dict[str, str]) -> str:
    """Return the base name without log_bin: of MySQL 8, or the older one (from host or pid file) that exists."""
    for index in (datadir / "binlog.index", *sorted(datadir.glob("*-bin.index"))):
        if index.exists() and not index.name.endswith("relay-bin.index"):
            return index.stem
    named = options.get("log_basename", "")
    return f"{named}-bin" if named else "binlog"


def _lines(path: Path, depth: int) -> Iterator[tuple[str, str, str]]:
    """Yield section, name and value of each option, in the order in which the server reads them."""
    if depth > _DEEPEST:
        raise UsageError("option files include each other", file=path)
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise UsageError("an option file cannot be read", why=str(error), file=path) from error
    section = ""
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("!includedir"):
            for file in sorted((path.parent / line[len("!includedir") :].strip()).glob("*.cnf")):
                yield from _lines(file, depth + 1)
        elif line.startswith("!include"):
            yield from _lines(path.parent / line[len("!include") :].strip(), depth + 1)
        elif line.startswith("["):
            section = line[1:].partition("]")[0].strip()
        elif line and line[0] not in "#;":
            name, _, value = line.partition("=")
            yield section, name.strip().removeprefix("loose-").removeprefix("loose_"), _value(value.strip())


def _value(text: str) -> str:
    """Return a value without quotes or a trailing comment, with its escapes resolved."""
    if text[:1] in {'"', "'"} and text.find(text[0], 1) > 0:
        text = text[1 : text.find(text[0], 1)]
    else:
        text = re.sub(r"\s+#.*", "", text)
    return re.sub(r"\\[btnr\\s]", lambda found: _ESCAPES[found[0]], text)
