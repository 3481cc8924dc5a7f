"""The store on a local folder: `file:///path`."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from loader.errors import StoreUnavailable, UsageError
from loader.store.address import LocalOptions, split_address
from loader.store.base import UNFINISHED, ObjectInfo, ObjectNotFound, Page, page_of, require_key

_OPTIONS = "?shared="


class LocalStore:
    """Objects as files. A file is written under another name, synced, then linked or renamed.

    Without `durable` files are not synced, so a crash of the machine can lose data. Only the user of the process can
    read the files, unless the root has `?shared=True`: see LocalOptions.
    """

    def __init__(self, root: str, *, durable: bool = True) -> None:
        self._durable = durable
        self.root = root.rstrip("/")
        plain = (self.root, LocalOptions())  # a path can contain a question mark
        address, options = split_address(self.root, LocalOptions) if _OPTIONS in self.root else plain
        self._file_mode, self._folder_mode = (0o666, 0o777) if options.shared else (0o600, 0o700)
        self._folder = Path(address.removeprefix("file://"))
        if not self._folder.is_absolute():
            raise UsageError(f"{root!r} is not a local store", hint="write it like file:///data/staging")

    def create(self, key: str, data: bytes) -> bool:
        """See Store: `link` refuses an existing name, atomically."""
        path = self._path(key)
        with self._errors(key), self._unfinished(path) as (temporary, file):
            file.write(data)
            self._sync(file)
            try:
                os.link(temporary, path)
            except FileExistsError:
                return False
            self._sync_folder(path.parent)
        return True

    @contextmanager
    def writing(self, key: str) -> Iterator[BinaryIO]:
        """See Store."""
        path = self._path(key)
        with self._errors(key), self._unfinished(path) as (temporary, file):
            yield file
            self._sync(file)
            temporary.replace(path)
            self._sync_folder(path.parent)

    def get(self, key: str) -> bytes:
        """See Store."""
        with self._errors(key):
            try:
                return self._path(key).read_bytes()
            except FileNotFoundError:
                raise ObjectNotFound("no such object", key=self.uri(key)) from None

    @contextmanager
    def reading(self, key: str) -> Iterator[BinaryIO]:
        """See Store."""
        with self._errors(key):
            try:
                file = self._path(key).open("rb")
            except FileNotFoundError:
                raise ObjectNotFound("no such object", key=self.uri(key)) from None
            with file:
                yield file

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """See Store; files still being written are left out."""
        folder = self._path(prefix.rstrip("/"))
        with self._errors(prefix):
            found = sorted((path for path in folder.rglob("*") if path.is_file()), key=Path.as_posix)
            for path in found:
                if not path.name.startswith(UNFINISHED):
                    status = path.stat()
                    modified = datetime.fromtimestamp(status.st_mtime, UTC)
                    yield ObjectInfo(path.relative_to(self._folder).as_posix(), status.st_size, modified)

    def folders(self, prefix: str) -> tuple[str, ...]:
        """See Store."""
        with self._errors(prefix):
            folder = self._path(prefix.rstrip("/"))
            found = (path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else ()
            return tuple(sorted(found))

    def folders_after(self, prefix: str, after: str) -> Page:
        """See Store."""
        return page_of(self.folders(prefix), after)

    def delete(self, key: str) -> None:
        """See Store."""
        with self._errors(key):
            self._path(key).unlink(missing_ok=True)

    def remove(self, prefix: str) -> None:
        """See Store."""
        folder = self._path(prefix.rstrip("/"))
        with self._errors(prefix), suppress(FileNotFoundError):
            shutil.rmtree(folder)

    def uri(self, key: str) -> str:
        """See Store."""
        return f"file://{self._folder}/{key}"

    def _path(self, key: str) -> Path:
        return self._folder / require_key(key)

    @contextmanager
    def _unfinished(self, path: Path) -> Iterator[tuple[Path, BinaryIO]]:
        for missing in reversed([folder for folder in path.parents if not folder.exists()]):
            missing.mkdir(self._folder_mode, exist_ok=True)
        temporary = path.with_name(f"{UNFINISHED}{uuid.uuid4().hex}")
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, self._file_mode)
        try:
            with open(handle, "wb") as file:  # noqa: PTH123 - a file descriptor, not a path
                yield temporary, file
        finally:
            temporary.unlink(missing_ok=True)

    @contextmanager
    def _errors(self, key: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreUnavailable(
                "the staging store failed",
                why=str(error),
                hint="free disk space or fix the permissions of the folder, then run again",
                key=self.uri(key),
            ) from error

    def _sync(self, file: BinaryIO) -> None:
        file.flush()
        if self._durable:
            os.fsync(file.fileno())

    def _sync_folder(self, folder: Path) -> None:
        if not self._durable:
            return
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class NoStore(LocalStore):
    """Accepts blocks and keeps nothing, for work that only counts."""

    def __init__(self) -> None:
        super().__init__(f"file://{os.devnull}", durable=False)

    @contextmanager
    def writing(self, key: str) -> Iterator[BinaryIO]:
        """See Store."""
        with Path(os.devnull).open("wb") as file:
            yield file
