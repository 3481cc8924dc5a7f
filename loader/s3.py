"""The one place where a client of S3 is opened, and where its errors become the loader's.

Credentials are those of the machine: the environment (AWS_ACCESS_KEY_ID, ...), the files below ~/.aws, or the role of
the instance. So are the region and the address of a server other than Amazon's where they are not given.
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
    """There is no such object."""


class S3ObjectChanged(LoaderError):
    """The object is another one than when it was first read."""


class S3Unavailable(RetryableError):
    """The store does not answer, or not as it should."""


@dataclass(frozen=True)
class S3Address:
    """`s3://bucket/key`; the key has no slash at either end."""

    bucket: str
    key: str

    @classmethod
    def parse(cls, text: str) -> S3Address:
        """Read an address.

        Raises:
            UsageError: it is none.
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
    """A client; it may be used by several threads.

    Args:
        endpoint: the address of the server, instead of the machine's.
        region: likewise.
        path_style: the bucket in the path of addresses instead of the host's name.
        attempts: tries of one request, the first one included.

    Raises:
        UsageError: boto3 is not installed, or the machine's settings of it are wrong.
    """
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    except ImportError as error:
        raise UsageError("S3 needs boto3", why=str(error), hint="pip install 'binlog-loader[s3]'") from error
    # A session of its own: the one that boto3 shares is not for several threads, and keeps old credentials.
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
        raise UsageError("the settings for S3 are wrong", why=str(error), hint="see ~/.aws and AWS_*") from error


@contextmanager
def s3_errors(address: S3Address) -> Iterator[None]:
    """Turn the client's errors into the loader's.

    Raises:
        S3ObjectMissing, S3ObjectChanged, S3Unavailable: what they say.
        UsageError: no such bucket, no leave to use it, or a server that does not do what was asked.
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
            "an object changed while it was read", hint="run again once it is written", object=address
        )
    if code == _NO_BUCKET:
        return UsageError("there is no such bucket", why=str(error), hint="check the address", object=address)
    if code in _NOT_DONE:
        return UsageError("this S3 server does not do what the loader needs", why=str(error), object=address)
    if code in _EXPIRED:
        hint = "renew the credentials of this machine, then run again"
        return S3Unavailable("the credentials for S3 have expired", why=str(error), hint=hint, object=address)
    return _denied(str(error), address) if code in _DENIED else _unavailable(str(error), address)


def _denied(why: str, address: S3Address) -> UsageError:
    hint = "check the credentials of this machine (AWS_ACCESS_KEY_ID, ~/.aws, the instance's role) and their rights"
    return UsageError("S3 does not let the loader in", why=why, hint=hint, object=address)


def _unavailable(why: str, address: S3Address) -> S3Unavailable:
    return S3Unavailable("S3 does not answer", why=why, hint="run again; check the network", object=address)
