"""From an address to the log files behind it.

`file:///path/binlog.000054`, `file:///folder` (with or without an index file), `file:///folder/binlog.index`,
`file:///etc/mysql/my.cnf`, a plain path of any of these, `s3://bucket/folder` or `s3://bucket/folder/binlog.000054`
with the credentials of the machine, or `mysql://user[:password]@host[:port]/`. Behind all but the last,
`?keyring=/path` or `?keys=/path` names the key file of a log that MySQL or MariaDB encrypted.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from pydantic import PrivateAttr

from loader.errors import UsageError
from loader.reader.files import ArchivedFiles, IndexedFiles, LogFiles, OneFile, in_folder, is_log
from loader.reader.mycnf import log_of
from loader.transport.address import ServerAddress
from loader.transport.keys import KeyFiles

_REFERENCES = ("env:", "file:", "airflow:")
_HINT = (
    "write file:///folder, file:///folder/binlog.000054, file:///etc/mysql/my.cnf, s3://bucket/folder or"
    " mysql://user@host:3306/?password=env:NAME"
)


class UriAddress(ServerAddress):
    """A server by its URI; a password that stands in it is kept in memory only and is never shown."""

    _plain: str = PrivateAttr("")

    def secret(self) -> str:
        """See ServerAddress."""
        return self._plain or super().secret()


def resolve(uri: str) -> LogFiles:
    """The log files of an address.

    Raises:
        UsageError: an address of a kind that is not known, or with nothing behind it.
        SourceUnavailable: its folder cannot be read.
    """
    parts = _split(uri)
    if parts.scheme in {"mysql", "mariadb"}:
        from loader.reader.server import ServerFiles

        return ServerFiles(_address(parts))
    if parts.scheme == "s3":
        return _archived(parts)
    if parts.scheme not in {"", "file"} or (parts.scheme and parts.netloc not in {"", "localhost"}):
        raise UsageError(f"{parts.scheme}:// is not an address of a log", hint=_HINT)
    path = Path(unquote(parts.path) if parts.scheme else parts.path)
    keys = _keys(parts)
    if path.is_dir():
        return in_folder(path, keys)
    if not path.exists():
        raise UsageError("there is no such file or folder", hint=_HINT, path=path)
    if path.suffix == ".index":
        return IndexedFiles(path, keys=keys)
    return log_of(path, keys) if path.suffix in {".cnf", ".ini"} else OneFile(path, keys)


def _split(uri: str) -> SplitResult:
    try:
        return urlsplit(uri) if "://" in uri else _plain_path(uri)
    except ValueError as error:
        raise UsageError("the address cannot be read", why=str(error), hint=_HINT) from error


def _archived(parts: SplitResult) -> ArchivedFiles:
    """A folder on S3, or a file in it where the address ends with the name of one."""
    folder, _, name = f"s3://{parts.netloc}{unquote(parts.path)}".rstrip("/").rpartition("/")
    if not is_log(name):
        folder, name = f"{folder}/{name}", ""
    return ArchivedFiles(folder, _keys(parts), name)


def _plain_path(text: str) -> SplitResult:
    """A path with or without key files behind it; a path itself may hold any character."""
    path, mark, query = text.rpartition("?")
    if mark and query.partition("=")[0] in KeyFiles.model_fields:
        return SplitResult("", "", path, query, "")
    return SplitResult("", "", text, "", "")


def _keys(parts: SplitResult) -> KeyFiles:
    options = dict(parse_qsl(parts.query))
    if unknown := set(options) - set(KeyFiles.model_fields):
        raise UsageError(
            "the address of the log cannot be read",
            why=f"unknown: {', '.join(sorted(unknown))}",
            hint="behind a path stands ?keyring=/path or ?keys=/path, or nothing",
        )
    return KeyFiles.model_validate(options)


def _address(parts: SplitResult) -> ServerAddress:
    options = dict(parse_qsl(parts.query))
    unknown = set(options) - {"password", "tls_ca"}
    try:
        port = parts.port or 3306
    except ValueError as error:
        raise UsageError("the port of the address is not a number", hint=_HINT) from error
    if unknown or not parts.hostname or not parts.username:
        why = f"unknown: {', '.join(sorted(unknown))}" if unknown else "it must name user and host"
        raise UsageError("the server's address cannot be read", why=why, hint=_HINT)
    password = unquote(parts.password or "") or options.get("password", "")
    reference = password.startswith(_REFERENCES)
    if "password" in options and not reference:
        raise UsageError("a password behind ?password= must be a reference", hint=_HINT)
    address = UriAddress(
        host=parts.hostname,
        port=port,
        user=unquote(parts.username),
        password=password if reference else "",
        tls_ca=options.get("tls_ca", ""),
    )
    address._plain = "" if reference else password
    return address
