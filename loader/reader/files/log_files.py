"""Which log files there are: in a folder, by an index file, one alone, or on a server."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol

from loader.errors import GapError, SourceUnavailable, UsageError
from loader.transport.base import LogFile
from loader.transport.file import PAGES, FileTransport, refuse_pages, size_of
from loader.transport.keys import NO_KEYS, KeyFiles
from loader.transport.s3 import S3Transport

_NAME = re.compile(r"(?P<base>.+)\.(?P<num>\d{6,})(\.\w+)?")


@dataclass(frozen=True)
class Named:
    """A log file: its name, the number in it, and its size in bytes now."""

    name: str
    lognum: int
    size: int


class LogFiles(Protocol):
    """The log files of one server or archive.

    `at_hand`: opening a file, or a piece of it, costs nothing.
    """

    at_hand: bool

    def listed(self) -> list[Named]:
        """All of them now, in the order of the log.

        Raises:
            GapError: a number between two files is missing, or a listed file is not there.
            SourceUnavailable, AccessDenied: folder or server do not answer.
            UsageError: no log files are there, or those of several logs.
        """

    def open(self, file: str, start: int, stop: int) -> AbstractContextManager[LogFile]:
        """See Transport.open."""


class OneFile:
    """A single log file, whatever its name."""

    at_hand = True

    def __init__(self, path: Path, keys: KeyFiles = NO_KEYS) -> None:
        self._path = path
        self._keys = keys

    def listed(self) -> list[Named]:
        """See LogFiles."""
        refuse_pages(self._path.name)
        with _disk(self._path):
            size = size_of(self._path)
        if size == 0:
            raise UsageError(
                "the file is empty, so it is no binary log",
                hint="copy it again, or give the folder of a server's log files",
                file=self._path,
            )
        return [Named(self._path.name, lognum_of(self._path.name), size)]

    def open(self, file: str, start: int, stop: int) -> AbstractContextManager[LogFile]:
        """See LogFiles."""
        return FileTransport(str(self._path.parent), self._keys).open(file, start, stop)


class IndexedFiles:
    """The files that a server's index file lists, in its order.

    A path in it is the server's: relative ones are of the server's data folder. A file is taken from there, or from
    beside the index file when it is not there, as in a copy.
    """

    at_hand = True

    def __init__(self, index: Path, datadir: Path | None = None, keys: KeyFiles = NO_KEYS) -> None:
        self._index = index
        self._datadir = datadir or index.parent
        self._keys = keys

    def listed(self) -> list[Named]:
        """See LogFiles."""
        found = []
        for path in self._paths():
            if not path.is_file():
                raise _missing(path.name, f"{self._index} lists it")
            found.append(Named(path.name, lognum_of(path.name), size_of(path)))
        return continuous(found, str(self._index))

    def open(self, file: str, start: int, stop: int) -> AbstractContextManager[LogFile]:
        """See LogFiles."""
        folders = [path.parent for path in self._paths() if path.name == file]
        return FileTransport(str(folders[0] if folders else self._index.parent), self._keys).open(file, start, stop)

    def _paths(self) -> list[Path]:
        with _disk(self._index):
            lines = self._index.read_text(encoding="utf-8", errors="surrogateescape").split("\n")
        written = [self._datadir / line.strip() for line in lines if line.strip()]
        return [path if path.is_file() else self._index.parent / path.name for path in written]


class FolderFiles:
    """The files `<basename>.<number>` of a folder without an index file, as an archive keeps them."""

    at_hand = True

    def __init__(self, folder: Path, basename: str = "", keys: KeyFiles = NO_KEYS) -> None:
        self._folder = folder
        self._basename = basename
        self._keys = keys

    def listed(self) -> list[Named]:
        """See LogFiles."""
        with _disk(self._folder):
            paths = (path for path in self._folder.iterdir() if is_log(path.name) and path.is_file())
            found = ((path.name, size_of(path)) for path in paths)
            return one_log(found, str(self._folder), self._basename)

    def open(self, file: str, start: int, stop: int) -> AbstractContextManager[LogFile]:
        """See LogFiles."""
        return FileTransport(str(self._folder), self._keys).open(file, start, stop)


class ArchivedFiles:
    """Those of a folder on S3, or one of them alone."""

    at_hand = False

    def __init__(self, folder: str, keys: KeyFiles, file: str = "") -> None:
        self._folder = folder
        self._file = file
        self._transport = S3Transport(folder, keys)

    def listed(self) -> list[Named]:
        """See LogFiles."""
        if self._file:
            return [Named(self._file, lognum_of(self._file), self._transport.size(self._file))]
        return one_log(self._transport.listed(is_log), self._folder)

    def open(self, file: str, start: int, stop: int) -> AbstractContextManager[LogFile]:
        """See LogFiles."""
        return self._transport.open(file, start, stop)


def is_log(file: str) -> bool:
    """Whether a file is named like a log, also like one inside InnoDB."""
    name = _NAME.fullmatch(file)
    return bool(name and not name[3]) or file.endswith(PAGES)


def one_log(files: Iterable[tuple[str, int]], folder: str, basename: str = "") -> list[Named]:
    """The files of a folder, by name and size, in the order of their log.

    Raises:
        UsageError: there are none, or those of several logs. GapError: one is missing.
        UnsupportedError: a log inside InnoDB.
    """
    found: dict[str, list[Named]] = {}
    for file, size in files:
        refuse_pages(file)
        name = _NAME.fullmatch(file)
        if name and basename in {"", name["base"]}:
            found.setdefault(name["base"], []).append(Named(file, int(name["num"]), size))
    if len(found) != 1:
        raise UsageError(
            f"the folder holds {'several logs' if found else 'no binary log'}",
            why=f"found {', '.join(sorted(found)) or 'no file named like binlog.000001'}",
            hint="name one file, or an index file, in the address",
            folder=folder,
        )
    return continuous(sorted(*found.values(), key=lambda one: one.lognum), folder)


def in_folder(folder: Path, keys: KeyFiles = NO_KEYS) -> LogFiles:
    """The log in a folder: by its index file where there is one, else by the names of its files.

    Raises:
        UsageError: several index files.
    """
    with _disk(folder):
        indexes = sorted(path for path in folder.glob("*.index") if not path.name.endswith("-relay-bin.index"))
    if len(indexes) > 1:
        names = ", ".join(path.name for path in indexes)
        raise UsageError("the folder has several index files", why=names, hint="name one of them", folder=folder)
    return IndexedFiles(indexes[0], keys=keys) if indexes else FolderFiles(folder, keys=keys)


def lognum_of(file: str) -> int:
    """The number in a log file's name; 1 for a file that was named otherwise."""
    found = _NAME.fullmatch(file)
    return int(found["num"]) if found else 1


def continuous(files: list[Named], where: str) -> list[Named]:
    """The files themselves, once none is missing between two of them."""
    for one, following in pairwise(files):
        if following.lognum != one.lognum + 1:
            base, _, digits = one.name.rpartition(".")
            raise _missing(f"{base}.{one.lognum + 1:0{len(digits)}d}", f"{where} goes on with {following.name}")
    return files


def _missing(file: str, why: str) -> GapError:
    return GapError(
        "a log file between two others is missing",
        why=why,
        hint="restore it from an archive, or read what is before and behind it one by one",
        file=file,
    )


@contextmanager
def _disk(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise UsageError("there is no such file or folder", hint="check the address", path=path) from error
    except OSError as error:
        raise SourceUnavailable("the log's folder cannot be read", why=str(error), path=path) from error
