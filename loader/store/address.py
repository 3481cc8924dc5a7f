"""The address of a staging root, which carries its options to every process: `s3://bucket/prefix?region=eu-west-1`."""

from __future__ import annotations

from typing import Literal, Self, TypeVar
from urllib.parse import parse_qsl, urlencode

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator, model_validator

from loader.errors import UsageError

SIGNED = "#signed="
"""Stands in an address before the reference to the key that signs the documents of the store."""


def signed_address(address: str, reference: str) -> str:
    """An address with the reference to a signing key, if there is one."""
    return f"{address}{SIGNED}{reference}" if reference else address


def without_user(value: str) -> str:
    """Return the addresses. Raises ValueError if one has user information, which would be seen where it is logged."""
    if "@" in value:
        raise ValueError("an address of a server has no user: credentials come from the environment")
    return value


class StoreOptions(BaseModel):
    """Options of a kind of store; none of them is a secret."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def address(self, root: str) -> str:
        """The root with these options."""
        query = urlencode(self.model_dump(exclude_defaults=True))
        return f"{root}?{query}" if query else root


class LocalOptions(StoreOptions):
    """Options of a local folder.

    Attributes:
        shared: files and folders get the modes that the umask of the process leaves, for a cluster whose executors run
            as another user; else they are for the user of the process alone.
    """

    shared: bool = False


class S3Options(StoreOptions):
    """Options of S3. Credentials come from where every client of AWS finds them.

    Attributes:
        endpoint: the address of a server that is not Amazon's.
        path_style: the bucket in the path of addresses instead of the host's name.
        sse: encryption by the server with keys of S3 (SSE-S3) or of KMS (SSE-KMS); empty for the bucket's default.
        kms_key: which key of KMS, instead of the account's.
        requester_pays: the bucket's requests are paid by who makes them.
    """

    endpoint: str = ""
    region: str = ""
    path_style: bool = False
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
        webhdfs: the address of the name node's WebHDFS, several with `;` between; else port 9870 of the root's host.
        user: who the loader says it is; else $HADOOP_USER_NAME, else the user of the process.
    """

    webhdfs: str = ""
    user: str = ""

    @field_validator("webhdfs")
    @classmethod
    def _webhdfs_without_user(cls, value: str) -> str:
        return without_user(value)


_Options = TypeVar("_Options", bound=StoreOptions)


def split_address(address: str, kind: type[_Options]) -> tuple[str, _Options]:
    """A root and its options.

    Raises:
        UsageError: an option that there is not, or one that is wrong.
    """
    root, _, query = address.partition("?")
    try:
        return root.rstrip("/"), kind.model_validate(dict(parse_qsl(query, strict_parsing=bool(query))))
    except (ValidationError, ValueError) as error:
        raise UsageError("the options of the staging root are wrong", why=str(error), key=address) from error
