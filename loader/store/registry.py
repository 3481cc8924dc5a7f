"""From the address of a staging root to its store."""

from __future__ import annotations

from loader.errors import UsageError
from loader.secret import read_secret
from loader.store.address import SIGNED
from loader.store.base import Store
from loader.store.local import LocalStore


def open_store(root: str) -> Store:
    """The store at `root`: `file:///folder`, `s3://bucket/prefix` or `hdfs://host:port/folder`, with its options.

    The address may end with a reference to the key that signs its documents: see `signed_address`.

    Raises:
        UsageError: an address of another kind, wrong options, a client that is not installed, or a key that is not
            there.
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
    # Not at the top: what a folder has no use for need not be loaded with each command.
    if scheme == "s3":
        from loader.store.remote import RemoteStore
        from loader.store.s3 import S3Remote

        return RemoteStore(S3Remote(root))
    if scheme == "hdfs":
        from loader.store.hdfs import HdfsRemote
        from loader.store.remote import RemoteStore

        return RemoteStore(HdfsRemote(root))
    raise UsageError(
        f"staging on {scheme}:// is not covered by this version",
        hint="use file:///folder, s3://bucket/prefix or hdfs://host:port/folder",
        key=root,
    )
