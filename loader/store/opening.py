"""From the address of a staging root to its store."""

from __future__ import annotations

from loader.errors import UsageError
from loader.store.base import Store
from loader.store.local import LocalStore


def open_store(root: str) -> Store:
    """The store at `root`.

    Raises:
        UsageError: an address of a kind that this version does not write to.
    """
    scheme = root.partition("://")[0]
    if scheme == "file":
        return LocalStore(root)
    raise UsageError(
        f"staging on {scheme}:// is not covered by this version",
        hint="use a folder, file:///path, that every Spark executor reaches",
        key=root,
    )
