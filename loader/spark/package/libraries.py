"""The installed libraries that tasks on executors need: those of the loader, without Airflow, Spark and commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from loader.resources import folder
from loader.spark.package.entries import Entry, entries_of, is_needed

_ROOTS = ("pandas", "pyarrow", "boto3", "hdfs", "requests")
"""What the extras `spark`, `s3` and `hdfs` add. The cluster brings its own pyspark."""
_LOADER = "binlog-loader"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PACKAGE = Path(__file__).resolve().parents[2]


def library_entries(target: str) -> Iterator[Entry]:
    """Return the files of the loader and of all libraries that it needs.

    Args:
        target: folder in the archive.
    """
    yield from entries_of(_PACKAGE, f"{target}/loader")
    if (statements := folder("sql")).parent != _PACKAGE:
        yield from entries_of(statements, f"{target}/loader/_sql")
    for found in distributions():
        for file in found.files or ():
            source = Path(str(found.locate_file(file)))
            if _is_library(found, file.parts) and is_needed(Path(file)) and source.is_file():
                yield Entry(source, f"{target}/{file}")


def distributions() -> list[Distribution]:
    """Return the installed distributions, by name: the loader, its extras for tasks, and all that they require."""
    found: dict[str, Distribution] = {}
    wanted = [_LOADER, *_ROOTS]
    while wanted:
        name = _normal(wanted.pop())
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:  # of an extra that is not installed, or for another platform
            continue
        wanted += [match[0] for text in found[name].requires or () if (match := _required(text))]
    return [found[name] for name in sorted(found)]


def _required(requirement: str) -> re.Match[str] | None:
    """Return the name in a requirement; None if it belongs to an extra."""
    _, _, marker = requirement.partition(";")
    return None if "extra" in marker else _NAME.match(requirement)


def _normal(name: str) -> str:
    """Return a name as https://packaging.python.org/en/latest/specifications/name-normalization/ says."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _is_library(found: Distribution, parts: tuple[str, ...]) -> bool:
    """Return whether a file is of a library, not a program, and not code of the loader, which may be a checkout."""
    return parts[0] != ".." and (_normal(found.name) != _LOADER or parts[0].endswith(".dist-info"))
