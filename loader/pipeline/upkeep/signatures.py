"""Signing documents that were staged before the source had a signing key."""

from __future__ import annotations

from loader.errors import UsageError
from loader.settings import SourceSettings
from loader.staging.layout import encode
from loader.store.registry import open_store
from loader.store.signed_store import DOCUMENT, SignedStore


def sign_staged(settings: SourceSettings) -> int:
    """Sign every unsigned document of a source, and return their number.

    Raises:
        UsageError: no key is configured.
        StagedDataError: a document is signed with another key.
    """
    store = open_store(settings.staging_root)
    if not isinstance(store, SignedStore):
        raise UsageError(
            "no signing key is configured",
            hint='set signing_key = "env:NAME" or "file:/path" in [staging]',
            source=settings.name,
        )
    documents = [one.key for one in store.list(f"{encode(settings.name)}/") if one.key.endswith(DOCUMENT)]
    return sum(store.sign(key) for key in documents)
