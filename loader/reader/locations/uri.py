"""Resolves the address of a log to its log files.

`file:///path/binlog.000054`, `file:///folder` (with or without an index file), `file:///folder/binlog.index`,
`file:///etc/mysql/my.cnf`, a plain path of any of these, `s3://bucket/folder` or `s3://bucket/folder/binlog.000054`
with the credentials of the machine, or `mysql://user[:password]@host[:port]/`. Behind all but the last,
`?keyring=/path` or `?keys=/path` is the key file of a log that MySQL or MariaDB encrypted.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from pydantic import PrivateAttr, ValidationError

from loader.errors import UsageError
from loader.reader.files.log_files import ArchivedFiles, IndexedFiles, LogFiles, OneFile, in_folder, is_log
from loader.reader.locations.mycnf import log_of
from loader.transport.keys import KeyFiles
from loader.transport.server.address import ServerAddress

_SERVERS = {"mysql", "mariadb"}
_TLS_OPTIONS = ("tls", "tls_ca", "tls_cert", "tls_key", "server_public_key")
_REFERENCES = ("env:", "file:", "airflow:")
_HINT = (
    "write file:///folder, file:///folder/binlog.000054, file:///etc/mysql/my.cnf, s3://bucket/folder or"
    " mysql://user@host:3306/?password=env:NAME"
)


class UriAddress(ServerAddress):
    """A server by its URI. A password in the URI is kept in memory only and is never shown."""

    _plain: str = PrivateAttr("")

    def secret(self) -> str:
        """See ServerAddress."""
        return self._plain or super().secret()


def resolve(uri: str) -> LogFiles:
    """Return the log files of an address.

    Raises:
        UsageError: the address is not valid, or nothing exists there.
        SourceUnavailable: the folder cannot be read.
    """
    if not isinstance(uri, str) or not uri:
        raise UsageError(f"{uri!r} is not an address of a log", hint=_HINT)
    parts = _split(uri)
    if parts.scheme in _SERVERS:
        from loader.reader.locations.server import ServerFiles

        return ServerFiles(_address(parts))
    if parts.scheme == "s3":
        return _archived(parts)
    if parts.scheme not in {"", "file"} or (parts.scheme and parts.netloc not in {"", "localhost"}):
        raise UsageError(f"{parts.scheme}:// is not an address of a log", hint=_HINT)
    path, keys = _path_of(parts), _keys(parts)
    return OneFile(path, keys) if path.is_file() and _is_one(path) else log_at(path, keys)


def log_at(path: Path, keys: KeyFiles) -> LogFiles:
    """Return the log of a folder, an index file, or an option file.

    Raises:
        UsageError: the path does not exist, or is a single log file.
    """
    if path.is_dir():
        return in_folder(path, keys)
    if not path.exists():
        raise UsageError("there is no such file or folder", hint=_HINT, path=path)
    if _is_one(path):
        raise UsageError(
            "the path is a single log file, not a log",
            hint="name its folder, its index file, or the server's my.cnf",
            path=path,
        )
    return IndexedFiles(path, keys=keys) if path.suffix == ".index" else log_of(path, keys)


def _is_one(path: Path) -> bool:
    """Return whether a file is treated as a log file: its name is not that of an index file or option file."""
    return path.suffix not in {".index", ".cnf", ".ini"}


def server_of(uri: str) -> ServerAddress | None:
    """Return the server of an address; None for an address of files.

    Raises:
        UsageError: the address is not valid.
    """
    parts = _split(uri)
    return _address(parts) if parts.scheme in _SERVERS else None


def is_address_of(uri: str, server: ServerAddress, path: str) -> bool:
    """Return whether an address is that of this server, or of log files at this path. User and options are optional.

    Raises:
        UsageError: the address is not valid.
    """
    parts = _split(uri)
    if parts.scheme in _SERVERS:
        user = unquote(parts.username or server.user)
        return (parts.hostname, _port(parts), user) == (server.host.lower(), server.port, server.user)
    if parts.scheme == "s3":
        return f"s3://{parts.netloc}{unquote(parts.path)}".rstrip("/") == path.rstrip("/")
    return bool(path) and "://" not in path and Path(path).absolute() == _path_of(parts).absolute()


def _port(parts: SplitResult) -> int:
    try:
        return parts.port or 3306
    except ValueError as error:
        raise UsageError("the port of the address is not a number", hint=_HINT) from error


def _path_of(parts: SplitResult) -> Path:
    """Return the path of an address of files; a plain path may contain any character."""
    return Path(unquote(parts.path) if parts.scheme else parts.path)


def _split(uri: str) -> SplitResult:
    try:
        return urlsplit(uri) if "://" in uri else _plain_path(uri)
    except ValueError as error:
        raise UsageError("the address of the log is not valid", why=str(error), hint=_HINT) from error


def _archived(parts: SplitResult) -> ArchivedFiles:
    """Return a folder on S3, or one file if the address ends with the name of a log file."""
    folder, _, name = f"s3://{parts.netloc}{unquote(parts.path)}".rstrip("/").rpartition("/")
    if not is_log(name):
        folder, name = f"{folder}/{name}", ""
    return ArchivedFiles(folder, _keys(parts), name)


def _plain_path(text: str) -> SplitResult:
    """Split a plain path, which may contain any character, and key files after it."""
    path, mark, query = text.rpartition("?")
    if mark and query.partition("=")[0] in KeyFiles.model_fields:
        return SplitResult("", "", path, query, "")
    return SplitResult("", "", text, "", "")


def _keys(parts: SplitResult) -> KeyFiles:
    options = dict(parse_qsl(parts.query))
    if unknown := set(options) - set(KeyFiles.model_fields):
        raise UsageError(
            "the address of the log is not valid",
            why=f"unknown options: {', '.join(sorted(unknown))}",
            hint="after a path, write ?keyring=/path, ?keys=/path or nothing",
        )
    return KeyFiles.model_validate(options)


def _address(parts: SplitResult) -> ServerAddress:
    options = dict(parse_qsl(parts.query))
    unknown = set(options) - {"password", *_TLS_OPTIONS}
    port = _port(parts)
    if unknown or not parts.hostname or not parts.username:
        why = f"unknown options: {', '.join(sorted(unknown))}" if unknown else "it needs a user and a host"
        raise UsageError("the address of the server is not valid", why=why, hint=_HINT)
    password = unquote(parts.password or "") or options.get("password", "")
    reference = password.startswith(_REFERENCES)
    if "password" in options and not reference:
        raise UsageError("the password option of the address must be a reference", hint=_HINT)
    try:
        address = UriAddress(
            host=parts.hostname,
            port=port,
            user=unquote(parts.username),
            password=password if reference else "",
            **{name: options[name] for name in _TLS_OPTIONS if name in options},
        )
    except ValidationError as error:
        why = "; ".join(str(found["msg"]) for found in error.errors())
        raise UsageError("the address of the server is not valid", why=why, hint=_HINT) from error
    address._plain = "" if reference else password
    return address
