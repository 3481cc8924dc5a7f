"""Stores by the scheme of their address."""

from __future__ import annotations

from loader.errors import UsageError
from loader.secret import read_secret
from loader.store.address import ROOTS, SIGNED
from loader.store.base import Store
from loader.store.local import LocalStore


def open_store(root: str) -> Store:
    """Return the store at `root`: `file:///folder`, `s3://bucket/prefix` or `hdfs://host:port/folder`, with options.

    The address may end with a reference to the key that signs its documents: see `signed_address`.

    Raises:
        UsageError: the kind of address is unknown, an option is invalid, a client is not installed, or the key is
            missing.
    """
    plain, signed, reference = root.rpartition(SIGNED)
    if not signed:
        return _opened(root)
    from loader.store.signed_store import SignedStore

    return SignedStore(_opened(plain), read_secret(reference).encode(), root)


def _opened(root: str) -> Store:
    scheme = root.partition("://")[0]
    if scheme == "file":
        return LocalStore(root)
    # Imported here, so that commands on a local store do not load these clients.
    if scheme == "s3":
        from loader.store.remote import RemoteStore
        from loader.store.s3 import S3Remote

        return RemoteStore(S3Remote(root))
    if scheme == "hdfs":
        from loader.store.hdfs import HdfsRemote
        from loader.store.remote import RemoteStore

        return RemoteStore(HdfsRemote(root))
    raise UsageError(
        f"staging on {scheme}:// is not supported",
        hint=f"use one of {', '.join(ROOTS.values())}",
        key=root,
    )
