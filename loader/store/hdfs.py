"""The store on HDFS: `hdfs://host:port/folder`, written and read over WebHDFS.

https://hadoop.apache.org/docs/r3.4.2/hadoop-project-dist/hadoop-hdfs/WebHDFS.html
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import IO, Any
from urllib.parse import urlsplit

from loader.errors import LoaderError, RetryableError, StoreUnavailable, UsageError
from loader.store.address import HdfsOptions, split_address
from loader.store.base import UNFINISHED, ObjectInfo, ObjectNotFound, Page, page_of, require_key
from loader.store.delegation import Delegated, keep_tokens_out_of_logs, kept_token, without_tokens
from loader.store.negotiate import Negotiate

_WEB_PORT = 9870
_TIMEOUT_SECONDS = 60
_MISSING = "FileNotFoundException"
_EXISTS = "FileAlreadyExistsException"
_DENIED = {"AccessControlException", "AuthorizationException", "SecurityException"}
_INVALID = "SecretManager$InvalidToken"  # in the text of a SecurityException: of a delegation token
_UNKNOWN_USER = "Authentication failure"  # the text of HdfsCLI for a 401


class _Failed(Exception):
    """Return the name of the Java exception with which the server refused."""


class HdfsRemote:
    """Files under a folder; see Remote.

    A file on HDFS is visible while it is written. So it is written under another name and then renamed. One kind of
    rename refuses an existing name, the other replaces it. Both are atomic on the name node.

    Attributes:
        web: addresses of WebHDFS, separated by `;`.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self._address, options = split_address(root, HdfsOptions)
        place = urlsplit(self._address)
        if not place.hostname or not place.path or place.fragment:
            raise UsageError(
                f"{self._address!r} is not a folder on HDFS", hint="write hdfs://host:port/folder", key=root
            )
        self._folder = "/" + require_key(place.path[1:])
        self.web = options.webhdfs or f"http://{place.hostname}:{_WEB_PORT}"
        self._client = _open_client(self.web, options.user)

    def delegation_token(self) -> str:
        """Return a token with which tasks can act as the user of the ticket; empty for an HDFS without Kerberos.

        Raises:
            UsageError: there is no ticket, or HDFS refuses it.
            StoreUnavailable: HDFS or the KDC does not answer.
        """
        from hdfs import HdfsError
        from hdfs.client import _Request

        # HdfsCLI lacks this operation.
        request = _Request("GET").to_method("GETDELEGATIONTOKEN")
        with self._errors(self._folder):
            try:
                answer = request(self._client, "/")
            except HdfsError:
                if self._client._session.auth.in_use:
                    raise
                return ""
        return str(answer.json()["Token"]["urlString"]) if self._client._session.auth.in_use else ""

    def creating(self, key: str, data: bytes) -> Callable[[], bool]:
        """See Remote. Only this create knows the temporary name. If that is gone, an earlier try succeeded."""
        path = self._path(key)
        temporary = ""

        def attempt() -> bool:
            nonlocal temporary
            temporary = temporary or self._uploaded(path, data)
            return self._moved(temporary, path)

        return attempt

    def put(self, key: str, file: IO[bytes]) -> None:
        """See Remote."""
        path = self._path(key)
        file.seek(0)
        temporary = self._uploaded(path, file)
        with self._errors(path):
            self._client._rename(temporary, destination=path, renameoptions="OVERWRITE")

    def get(self, key: str) -> bytes:
        """See Store."""
        path = self._path(key)
        try:
            with self._errors(path, _MISSING), self._client.read(path, chunk_size=1 << 20) as blocks:
                return b"".join(blocks)
        except _Failed:
            raise ObjectNotFound("no such object", key=self.uri(key)) from None

    def get_range(self, key: str, start: int, stop: int) -> bytes:
        """See Remote."""
        path = self._path(key)
        try:
            with self._errors(path, _MISSING):
                # WebHDFS refuses an offset at the end of the file.
                if start and start >= int(self._client.status(path)["length"]):
                    return b""
                with self._client.read(path, offset=start, length=stop - start, chunk_size=1 << 20) as blocks:
                    return b"".join(blocks)
        except _Failed:
            raise ObjectNotFound("no such object", key=self.uri(key)) from None

    def list(self, prefix: str) -> tuple[ObjectInfo, ...]:
        """See Store."""
        return tuple(sorted(self._files(prefix.rstrip("/")), key=lambda info: info.key))

    def folders(self, prefix: str) -> tuple[str, ...]:
        """See Store."""
        return tuple(sorted(name for name, status in self._entries(prefix.rstrip("/")) if _is_folder(status)))

    def folders_after(self, prefix: str, after: str) -> Page:
        """See Store. HdfsCLI cannot list in pages (LISTSTATUS_BATCH), so one request returns all names."""
        return page_of(self.folders(prefix), after)

    def delete(self, key: str) -> None:
        """See Store."""
        path = self._path(key)
        with self._errors(path):
            self._client.delete(path)

    def remove(self, prefix: str) -> None:
        """See Store."""
        path = self._path(prefix.rstrip("/"))
        with self._errors(path):
            self._client.delete(path, recursive=True)

    def uri(self, key: str) -> str:
        """See Store."""
        return f"{self._address}/{key}"

    def _path(self, key: str) -> str:
        return f"{self._folder}/{key}"

    def _uploaded(self, path: str, data: bytes | IO[bytes]) -> str:
        """Write the content to a temporary file next to the path, with a new name for each try."""
        temporary = f"{path.rpartition('/')[0]}/{UNFINISHED}{uuid.uuid4().hex}"
        try:
            with self._errors(path):
                self._client.write(temporary, data=data)
        except LoaderError:
            self._give_up(temporary)
            raise
        return temporary

    def _moved(self, temporary: str, path: str) -> bool:
        try:
            # HdfsCLI's own rename has no options, and would move the file into a folder of that name.
            with self._errors(path, _EXISTS, _MISSING):
                self._client._rename(temporary, destination=path, renameoptions="NONE")
        except _Failed as refused:
            if str(refused) == _EXISTS:
                self._give_up(temporary)
                return False
            with self._errors(path):
                self._client.status(path)  # moved by an earlier try, unless it was removed since
        return True

    def _give_up(self, temporary: str) -> None:
        # Listings skip the file. A failure to remove it must not hide the first error.
        with suppress(LoaderError), self._errors(temporary):
            self._client.delete(temporary)

    def _entries(self, folder: str) -> Sequence[tuple[str, dict[str, Any]]]:
        path = self._path(folder)
        try:
            with self._errors(path, _MISSING):
                return tuple(self._client.list(path, status=True))
        except _Failed:
            return ()

    def _files(self, folder: str) -> Iterator[ObjectInfo]:
        for name, status in self._entries(folder):
            key = f"{folder}/{name}"
            if _is_folder(status):
                yield from self._files(key)
            elif not name.startswith(UNFINISHED):
                modified = datetime.fromtimestamp(status["modificationTime"] / 1000, UTC)
                yield ObjectInfo(key, int(status["length"]), modified)

    @contextmanager
    def _errors(self, path: str, *expected: str) -> Iterator[None]:
        from hdfs import HdfsError
        from requests.exceptions import RequestException

        try:
            yield
        except HdfsError as error:
            if error.exception in expected:
                raise _Failed(error.exception) from error
            raise _translated(error, path) from error
        except RequestException as error:
            # The address in the exception can have a token, and tracebacks show causes.
            raise _unavailable(error, path) from None


def _open_client(web: str, user: str) -> Any:
    try:
        from hdfs import InsecureClient
    except ImportError as error:
        raise UsageError("HDFS needs HdfsCLI", why=str(error), hint="pip install 'binlog-loader[hdfs]'") from error
    keep_tokens_out_of_logs()
    client = InsecureClient(web, user=user or os.environ.get("HADOOP_USER_NAME"), timeout=_TIMEOUT_SECONDS)
    token = kept_token(web)
    client._session.auth = Delegated(token) if token else Negotiate()
    # Private, but the only ways to rename without replacing, and to answer a server with Kerberos.
    if not hasattr(client, "_rename") or not hasattr(client, "_session"):
        raise UsageError("this version of HdfsCLI is not supported", hint="install it with -c constraints.txt")
    return client


def _is_folder(status: dict[str, Any]) -> bool:
    return bool(status["type"] == "DIRECTORY")


def _translated(error: Any, path: str) -> LoaderError:
    if _INVALID in str(error):
        return RetryableError(
            "HDFS refused the delegation token of a task",
            why=_text(error),
            hint="run again: the driver then gets a new token; if jobs take longer than a token is valid, a day by"
            " default, raise dfs.namenode.delegation.token.renew-interval of HDFS",
            key=path,
        )
    if error.exception in _DENIED or str(error).startswith(_UNKNOWN_USER):
        return UsageError(
            "HDFS denies access to the loader",
            why=_text(error),
            hint="allow the user (staging.hdfs.user, $HADOOP_USER_NAME, or of the Kerberos ticket) to write to the"
            " staging root",
            key=path,
        )
    return _unavailable(error, path)


def _unavailable(error: Exception, path: str) -> StoreUnavailable:
    hint = "check the name node, the data nodes and staging.hdfs.webhdfs, then run again"
    return StoreUnavailable("HDFS cannot write or read a file", why=_text(error), hint=hint, key=path)


def _text(error: Exception) -> str:
    """Return the text of an exception, which can have the address of a data node, without the token in the address."""
    return without_tokens(str(error))
