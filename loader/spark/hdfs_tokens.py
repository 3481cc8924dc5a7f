"""Tokens of HDFS that the driver gets for the tasks of its application."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from loader.store.address import SIGNED
from loader.store.delegation import token_reference

_ROOTS = ("root", "staging_root")


def hdfs_tokens(document: Mapping[str, Any]) -> dict[str, str]:
    """Return a token for each HDFS with Kerberos on which a document has a store, by its reference.

    An application gets one token. The name node accepts it for a day, unless its configuration has another time.

    Args:
        document: nested mappings and values. Its keys `root` and `staging_root` have the addresses of stores.

    Raises:
        UsageError: the driver has no ticket, or HDFS refuses it.
        StoreUnavailable: HDFS or the KDC does not answer.
    """
    found: dict[str, str] = {}
    for root in _stores_on_hdfs(document):
        found |= _tokens_of(root)
    return found


def _stores_on_hdfs(document: Mapping[str, Any]) -> Iterator[str]:
    for key, value in document.items():
        if isinstance(value, Mapping):
            yield from _stores_on_hdfs(value)
        elif key in _ROOTS and str(value).startswith("hdfs://"):
            yield str(value).partition(SIGNED)[0]


@cache
def _tokens_of(root: str) -> dict[str, str]:
    # Imported here, so that jobs on other stores do not load the client.
    from loader.store.hdfs import HdfsRemote
    from loader.store.remote import repeated

    remote = HdfsRemote(root)
    token = repeated(remote.delegation_token)
    return {token_reference(remote.web): token} if token else {}
