"""Clients of S3, and the translation of their errors.

Credentials come from the machine: the environment (AWS_ACCESS_KEY_ID, ...), the files in ~/.aws, or the role of the
instance. So do the region, and the address of a server other than Amazon's, if they are not configured.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from loader.errors import LoaderError, RetryableError, UsageError

_TIMEOUT_SECONDS = 60
_ATTEMPTS = 5
_MISSING = {"404", "NoSuchKey", "NotFound"}
_DENIED = {"401", "403", "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch"}
_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"}
_NOT_DONE = {"501", "NotImplemented"}
_NO_BUCKET = "NoSuchBucket"
_CHANGED = {"412", "PreconditionFailed"}


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


def open_client(*, endpoint: str = "", region: str = "", path_style: bool = False, attempts: int = _ATTEMPTS) -> Any:
    """Return a client that several threads can use.

    Args:
        endpoint: address of the server, instead of the one of the machine's settings.
        region: region, instead of the one of the machine's settings.
        path_style: put the bucket into the path of addresses instead of the host name.
        attempts: tries of one request, including the first.

    Raises:
        UsageError: boto3 is not installed, or the AWS settings of the machine are invalid.
    """
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    except ImportError as error:
        raise UsageError("S3 needs boto3", why=str(error), hint="pip install 'binlog-loader[s3]'") from error
    # A new session: the default session of boto3 is not thread-safe, and keeps old credentials.
    config = Config(
        connect_timeout=_TIMEOUT_SECONDS,
        read_timeout=_TIMEOUT_SECONDS,
        retries={"mode": "standard", "total_max_attempts": attempts},
        s3={"addressing_style": "path"} if path_style else None,
    )
    try:
        return boto3.session.Session().client(
            "s3", config=config, endpoint_url=endpoint or None, region_name=region or None
        )
    except (BotoCoreError, ValueError) as error:
        raise UsageError(
            "the settings for S3 are invalid", why=str(error), hint="check ~/.aws and the AWS_* variables"
        ) from error


@contextmanager
def s3_errors(address: S3Address) -> Iterator[None]:
    """Translate errors of the client into errors of the loader.

    Raises:
        S3ObjectMissing: the object does not exist.
        S3ObjectChanged: the object changed since it was first read.
        S3Unavailable: the store does not answer, or answers with an error.
        UsageError: the bucket does not exist, access is denied, or the server does not support the request.
    """
    from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

    try:
        yield
    except ClientError as error:
        raise _translated(error, address) from error
    except NoCredentialsError as error:
        raise _denied(str(error), address) from error
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


def _unavailable(why: str, address: S3Address) -> S3Unavailable:
    return S3Unavailable("S3 does not answer", why=why, hint="run again; check the network", object=address)
