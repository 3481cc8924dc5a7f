"""The log files of a folder, an index file, a single path, or an archive on S3."""

from __future__ import annotations

import re
import shlex
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
class ListedFile:
    """A log file: its name, the number in its name, and its current size in bytes."""

    name: str
    lognum: int
    size: int


class LogFiles(Protocol):
    """The log files of one server or archive.

    Attributes:
        at_hand: whether opening a file, or a part of it, is cheap: the files are on local disk.
    """

    at_hand: bool

    def listed(self) -> list[ListedFile]:
        """Return the current files, in the order of the log.

        Raises:
            GapError: a file between two others is missing, or a listed file does not exist.
            SourceUnavailable, AccessDenied: folder or server do not answer.
            UsageError: there are no log files, or files of several logs.
        """

    def open(self, file: str, start: int, stop: int) -> AbstractContextManager[LogFile]:
        """See Transport.open."""


class OneFile:
    """A single log file with any name."""

    at_hand = True

    def __init__(self, path: Path, keys: KeyFiles = NO_KEYS) -> None:
        self._path = path
        self._keys = keys

    def listed(self) -> list[ListedFile]:
        """See LogFiles."""
        refuse_pages(self._path.name)
        with _disk(self._path):
            size = size_of(self._path)
        if size == 0:
            raise UsageError(
                "the file is empty, so it is not a binary log",
                hint="copy it again, or give the folder of a server's log files",
                file=self._path,
            )
        return [ListedFile(self._path.name, lognum_of(self._path.name), size)]

    def open(self, file: str, start: int, stop: int) -> AbstractContextManager[LogFile]:
        """See LogFiles."""
        return FileTransport(str(self._path.parent), self._keys).open(file, start, stop)


class IndexedFiles:
    """The files that a server's index file lists, in its order.

    The index file has paths on the server; relative ones start at its data folder. If a path does not exist here, as in
    a copy of the log, the file next to the index file is read.
    """

    at_hand = True

    def __init__(self, index: Path, datadir: Path | None = None, keys: KeyFiles = NO_KEYS) -> None:
        self._index = index
        self._datadir = datadir or index.parent
        self._keys = keys

    def listed(self) -> list[ListedFile]:
        """See LogFiles."""
        found = []
        for path in self._paths():
            if not path.is_file():
                raise _missing(path.name, f"{self._index} lists it")
            found.append(ListedFile(path.name, lognum_of(path.name), size_of(path)))
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
    """The files `<basename>.<number>` of a folder without an index file, such as an archive."""

    at_hand = True

    def __init__(self, folder: Path, basename: str = "", keys: KeyFiles = NO_KEYS) -> None:
        self._folder = folder
        self._basename = basename
        self._keys = keys

    def listed(self) -> list[ListedFile]:
        """See LogFiles."""
        with _disk(self._folder):
            paths = (path for path in self._folder.iterdir() if is_log(path.name) and path.is_file())
            found = ((path.name, size_of(path)) for path in paths)
            return one_log(found, str(self._folder), self._basename)

    def open(self, file: str, start: int, stop: int) -> AbstractContextManager[LogFile]:
        """See LogFiles."""
        return FileTransport(str(self._folder), self._keys).open(file, start, stop)


class ArchivedFiles:
    """The log files of a folder on S3, or a single one of them."""

    at_hand = False

    def __init__(self, folder: str, keys: KeyFiles, file: str = "") -> None:
        self._folder = folder
        self._file = file
        self._transport = S3Transport(folder, keys)

    def listed(self) -> list[ListedFile]:
        """See LogFiles."""
        if self._file:
            return [ListedFile(self._file, lognum_of(self._file), self._transport.size(self._file))]
        return one_log(self._transport.listed(is_log), self._folder)

    def open(self, file: str, start: int, stop: int) -> AbstractContextManager[LogFile]:
        """See LogFiles."""
        return self._transport.open(file, start, stop)


def is_log(file: str) -> bool:
    """Return whether a file has the name of a log file, also of a log inside InnoDB."""
    name = _NAME.fullmatch(file)
    return bool(name and not name[3]) or file.endswith(PAGES)


def one_log(files: Iterable[tuple[str, int]], folder: str, basename: str = "") -> list[ListedFile]:
    """Return the log files among files (name, size) of a folder, in the order of the log.

    Raises:
        UsageError: there are no log files, or files of several logs.
        GapError: a file is missing.
        UnsupportedError: a log inside InnoDB.
    """
    found: dict[str, list[ListedFile]] = {}
    for file, size in files:
        refuse_pages(file)
        name = _NAME.fullmatch(file)
        if name and basename in {"", name["base"]}:
            found.setdefault(name["base"], []).append(ListedFile(file, int(name["num"]), size))
    if len(found) != 1:
        raise UsageError(
            f"the folder contains {'several logs' if found else 'no binary log'}",
            why=f"found {', '.join(sorted(found)) or 'no file named like binlog.000001'}",
            hint="give the path of one file or of an index file",
            folder=folder,
        )
    return continuous(sorted(*found.values(), key=lambda one: one.lognum), folder)


def in_folder(folder: Path, keys: KeyFiles = NO_KEYS) -> LogFiles:
    """Return the log in a folder: by its index file if there is one, else by the names of the files.

    Raises:
        UsageError: the folder has several index files.
    """
    with _disk(folder):
        indexes = sorted(path for path in folder.glob("*.index") if not path.name.endswith("-relay-bin.index"))
    if len(indexes) > 1:
        names = ", ".join(path.name for path in indexes)
        raise UsageError(
            "the folder has several index files", why=names, hint="give the path of one of them", folder=folder
        )
    return IndexedFiles(indexes[0], keys=keys) if indexes else FolderFiles(folder, keys=keys)


def lognum_of(file: str) -> int:
    """Return the number in a log file's name; 1 if the name has no number."""
    found = _NAME.fullmatch(file)
    return int(found["num"]) if found else 1


def continuous(files: list[ListedFile], where: str) -> list[ListedFile]:
    """Return the files.

    Raises:
        GapError: a file between two others is missing.
    """
    for one, following in pairwise(files):
        if following.lognum != one.lognum + 1:
            base, _, digits = one.name.rpartition(".")
            raise _missing(f"{base}.{one.lognum + 1:0{len(digits)}d}", f"the next file in {where} is {following.name}")
    return files


def _missing(file: str, why: str) -> GapError:
    return GapError(
        "a log file between two others is missing",
        why=why,
        hint="restore it from an archive, or read the files before it and after it one by one",
        file=file,
    )


@contextmanager
def _disk(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        hint = f"check the address: ls -l {shlex.quote(str(path.parent))}"
        raise UsageError("there is no such file or folder", hint=hint, path=path) from error
    except OSError as error:
        raise SourceUnavailable(
            "the log's folder cannot be read",
            why=str(error),
            hint="let the user of the loader read it (ls -ld shows its rights), then run again",
            path=path,
        ) from error
