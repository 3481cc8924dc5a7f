"""Clients of S3, and the translation of their errors.

Credentials come from the machine: the environment (AWS_ACCESS_KEY_ID, ...), the files in ~/.aws, or the role of the
instance. So do the region, the address of a server other than Amazon's, and the authorities that are trusted
(AWS_CA_BUNDLE), if they are not configured.
"""

from __future__ import annotations

import platform
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from loader.errors import LoaderError, RetryableError, UsageError

_TIMEOUT_SECONDS = 60
_ATTEMPTS = 5
_MISSING = {"404", "NoSuchKey", "NotFound"}
_DENIED = {"401", "403", "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch"}
_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"}
_NOT_DONE = {"501", "NotImplemented"}
_NO_BUCKET = "NoSuchBucket"
_CHANGED = {"412", "PreconditionFailed"}
_UNTRUSTED = ("CERTIFICATE_VERIFY_FAILED", " doesn't match ", "no appropriate subjectAltName")
_IN_OPENSSL = re.compile(r"^\[SSL: \w+\] | \(_ssl\.c:\d+\)$")
_AUTHORITY = "staging.s3.tls_ca (or AWS_CA_BUNDLE) to the PEM file of the authority that signed its certificate"


class S3ObjectMissing(LoaderError):
    """The object does not exist."""


class S3ObjectChanged(LoaderError):
    """The object changed since it was first read."""


class S3Unavailable(RetryableError):
    """The store does not answer, or answers with an error."""


@dataclass(frozen=True)
class S3Address:
    """An address `s3://bucket/key`. The key has no slash at either end."""

    bucket: str
    key: str

    @classmethod
    def parse(cls, text: str) -> S3Address:
        """Parse an address.

        Raises:
            UsageError: the text is not an S3 address.
        """
        scheme, mark, rest = text.partition("://")
        bucket, _, key = rest.partition("/")
        if scheme != "s3" or not mark or not bucket:
            raise UsageError(f"{text!r} is not an address on S3", hint="write s3://bucket/folder")
        return cls(bucket, key.strip("/"))

    def __truediv__(self, name: str) -> S3Address:
        return S3Address(self.bucket, f"{self.key}/{name}".lstrip("/"))

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"


def open_client(
    *, endpoint: str = "", region: str = "", path_style: bool = False, tls_ca: str = "", attempts: int = _ATTEMPTS
) -> Any:
    """Return a client that several threads can use.

    Args:
        endpoint: address of the server, instead of the one of the machine's settings.
        region: region, instead of the one of the machine's settings.
        path_style: put the bucket into the path of addresses instead of the host name.
        tls_ca: PEM file of the only trusted authorities, instead of those of the machine's settings.
        attempts: tries of one request, including the first.

    Raises:
        UsageError: boto3 is not installed, the AWS settings of the machine are invalid, or the file of authorities
            cannot be read.
    """
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    except ImportError as error:
        raise UsageError("S3 needs boto3", why=str(error), hint="pip install 'binlog-loader[s3]'") from error
    _check_authorities(tls_ca or authorities_of_machine())
    # A new session: the default session of boto3 is not thread-safe, and keeps old credentials.
    config = Config(
        connect_timeout=_TIMEOUT_SECONDS,
        read_timeout=_TIMEOUT_SECONDS,
        retries={"mode": "standard", "total_max_attempts": attempts},
        s3={"addressing_style": "path"} if path_style else None,
    )
    try:
        return boto3.session.Session().client(
            "s3",
            config=config,
            endpoint_url=endpoint or None,
            region_name=region or None,
            verify=tls_ca or None,
        )
    except (BotoCoreError, ValueError) as error:
        raise UsageError(
            "the settings for S3 are invalid", why=str(error), hint="check ~/.aws and the AWS_* variables"
        ) from error


def authorities_of_machine() -> str:
    """Return the path of the authorities in the AWS settings of this machine: `AWS_CA_BUNDLE`, `ca_bundle`."""
    import botocore.session

    return str(botocore.session.Session().get_config_variable("ca_bundle") or "")


def _check_authorities(path: str) -> None:
    if not path or Path(path).is_dir():  # the AWS settings may name a folder
        return
    try:
        ssl.create_default_context(cafile=path)
    except OSError as error:
        raise UsageError(
            "the TLS authorities of S3 cannot be read",
            why=f"{error}, on {platform.node()}",
            hint=f"set {_AUTHORITY}, on each machine",
            file=path,
        ) from error


@contextmanager
def s3_errors(address: S3Address) -> Iterator[None]:
    """Translate errors of the client into errors of the loader.

    Raises:
        S3ObjectMissing: the object does not exist.
        S3ObjectChanged: the object changed since it was first read.
        S3Unavailable: the store does not answer, or answers with an error.
        UsageError: the bucket does not exist, access is denied, the certificate of the server is not trusted, or the
            server does not support the request.
    """
    from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, SSLError

    try:
        yield
    except ClientError as error:
        raise _translated(error, address) from error
    except NoCredentialsError as error:
        raise _denied(str(error), address) from error
    except SSLError as error:
        raise _unencrypted(error, address) from error
    except BotoCoreError as error:
        raise _unavailable(str(error), address) from error


def _translated(error: Any, address: S3Address) -> LoaderError:
    code = str(error.response.get("Error", {}).get("Code", ""))
    if code in _MISSING:
        return S3ObjectMissing("there is no such object", why=str(error), object=address)
    if code in _CHANGED:
        return S3ObjectChanged(
            "an object changed while it was read", hint="run again when it is completely written", object=address
        )
    if code == _NO_BUCKET:
        hint = "check the name of the bucket: aws s3 ls"
        return UsageError("there is no such bucket", why=str(error), hint=hint, object=address)
    if code in _NOT_DONE:
        hint = "use an S3 server with conditional writes (If-None-Match), HDFS or a local folder"
        return UsageError(
            "this S3 server does not support what the loader needs", why=str(error), hint=hint, object=address
        )
    if code in _EXPIRED:
        hint = "renew the credentials of this machine, then run again"
        return S3Unavailable("the credentials for S3 have expired", why=str(error), hint=hint, object=address)
    return _denied(str(error), address) if code in _DENIED else _unavailable(str(error), address)


def _denied(why: str, address: S3Address) -> UsageError:
    hint = (
        "check the credentials of this machine (AWS_ACCESS_KEY_ID, ~/.aws, role of the instance) and their permissions"
    )
    return UsageError("S3 denies access to the loader", why=why, hint=hint, object=address)


def _unencrypted(error: Any, address: S3Address) -> LoaderError:
    why, host = str(error.kwargs.get("error", error)), urlsplit(str(error.kwargs.get("endpoint_url", ""))).netloc
    if not any(words in why for words in _UNTRUSTED):
        return _unavailable(str(error), address)  # the connection broke during the handshake
    return UsageError(
        "the certificate of the S3 server is not trusted",
        why=f"{_IN_OPENSSL.sub('', why)}, on {platform.node()}",
        hint=f"set {_AUTHORITY}, on each machine; replace a certificate that has expired or names another host",
        host=host,
        object=address,
    )


def _unavailable(why: str, address: S3Address) -> S3Unavailable:
    return S3Unavailable("S3 does not answer", why=why, hint="run again; check the network", object=address)
