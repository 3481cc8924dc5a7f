"""Files of a package: where they are, and where the archive has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_LEFT_OUT = frozenset({"__pycache__", "tests", "test", "site-packages", "dist-packages", "include"})
"""Folders that no task needs: compiled and installed elsewhere, tests and headers."""
_KINDS_LEFT_OUT = frozenset({".pyc", ".a"})


class Entry(NamedTuple):
    """A file of the archive.

    Attributes:
        source: the file.
        path: in the archive, relative.
    """

    source: Path
    path: str


def is_needed(path: Path) -> bool:
    """Return whether tasks may need a file. `path` is relative to the folder that is packed."""
    return _LEFT_OUT.isdisjoint(path.parts[:-1]) and path.suffix not in _KINDS_LEFT_OUT


def entries_of(folder: Path, target: str) -> Iterator[Entry]:
    """Return the files of a folder that tasks may need, in order of their names. Symbolic links are followed."""
    for source in sorted(folder.rglob("*")):
        path = source.relative_to(folder)
        if source.is_file() and is_needed(path):
            yield Entry(source, f"{target}/{path}")
