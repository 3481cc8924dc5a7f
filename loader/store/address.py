"""Addresses of staging roots. They carry the options to every process: `s3://bucket/prefix?region=eu-west-1`."""

from __future__ import annotations

from typing import Literal, Self, TypeVar
from urllib.parse import parse_qsl, urlencode

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator, model_validator

from loader.errors import UsageError

ROOTS = {"file": "file:///folder", "s3": "s3://bucket/prefix", "hdfs": "hdfs://host:port/folder"}
"""An address of each kind of store, by its scheme."""

SIGNED = "#signed="
"""Separates an address from the reference to the key that signs the documents of the store."""


def signed_address(address: str, reference: str) -> str:
    """Return an address with the reference to a signing key, if there is one."""
    return f"{address}{SIGNED}{reference}" if reference else address


def without_user(value: str) -> str:
    """Return the addresses.

    Raises:
        ValueError: an address has user information, which logs would show.
    """
    if "@" in value:
        raise ValueError("an address of a server must not have a user: credentials come from the environment")
    return value


class StoreOptions(BaseModel):
    """Options of a kind of store. Options are never secrets."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def address(self, root: str) -> str:
        """Return the root with these options."""
        query = urlencode(self.model_dump(exclude_defaults=True))
        return f"{root}?{query}" if query else root


class LocalOptions(StoreOptions):
    """Options of a local folder.

    Attributes:
        shared: files and folders get the modes of the umask, for a cluster whose executors run as another user.
            Otherwise only the user of the process can access them.
    """

    shared: bool = False


class S3Options(StoreOptions):
    """Options of S3. Credentials are found as by every AWS client.

    Attributes:
        endpoint: address of a server other than Amazon's.
        path_style: put the bucket into the path of addresses instead of the host name.
        tls_ca: PEM file of the authority that signed the certificate of the server, on each machine; empty for the
            authorities of the machine's AWS settings, else public ones.
        sse: server-side encryption with keys of S3 (SSE-S3) or KMS (SSE-KMS); empty for the default of the bucket.
        kms_key: the KMS key, instead of the key of the account.
        requester_pays: the requester pays for requests to the bucket.
    """

    endpoint: str = ""
    region: str = ""
    path_style: bool = False
    tls_ca: str = ""
    sse: Literal["", "s3", "kms"] = ""
    kms_key: str = ""
    requester_pays: bool = False

    @field_validator("endpoint")
    @classmethod
    def _endpoint_without_user(cls, value: str) -> str:
        return without_user(value)

    @model_validator(mode="after")
    def _key_of_kms(self) -> Self:
        if self.kms_key and self.sse != "kms":
            raise ValueError('kms_key needs sse = "kms"')
        return self


class HdfsOptions(StoreOptions):
    """Options of HDFS.

    Attributes:
        webhdfs: addresses of WebHDFS on name nodes, separated by `;`. Default: port 9870 of the root's host.
        user: user name that the loader sends, unless the server asks for Kerberos. Default: $HADOOP_USER_NAME, else
            the user of the process.
    """

    webhdfs: str = ""
    user: str = ""

    @field_validator("webhdfs")
    @classmethod
    def _webhdfs_without_user(cls, value: str) -> str:
        return without_user(value)


_Options = TypeVar("_Options", bound=StoreOptions)


def split_address(address: str, kind: type[_Options]) -> tuple[str, _Options]:
    """Return a root and its options.

    Raises:
        UsageError: an option is unknown or invalid.
    """
    root, _, query = address.partition("?")
    try:
        return root.rstrip("/"), kind.model_validate(dict(parse_qsl(query, strict_parsing=bool(query))))
    except (ValidationError, ValueError) as error:
        raise UsageError("the options of the staging root are wrong", why=str(error), key=address) from error
