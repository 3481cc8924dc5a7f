"""Restoring staged files that are lost or changed, from another extraction of their interval."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from loader.errors import StagedDataError
from loader.extract.repair.reextract import compare_manifests, files_by_name
from loader.staging.documents import Manifest, StagedFile
from loader.staging.file_verification import find_fault
from loader.staging.layout import interval_folder
from loader.store.base import Store


def find_lost_files(store: Store, manifest: Manifest) -> list[StagedFile]:
    """Return the files that do not match the manifest."""
    return [file for file in manifest.files if find_fault(store, file)]


def restore_files(store: Store, manifest: Manifest, again: Manifest, lost: Sequence[StagedFile]) -> None:
    """Replace lost files with those of another extraction of the same interval, and remove that attempt's files.

    Raises:
        StagedDataError: the other extraction differs from the manifest. Nothing is restored.
    """
    found = compare_manifests(manifest, again)
    if found.differences:
        raise StagedDataError(
            "re-extraction produced different bytes, so no file is restored",
            why="; ".join(f"{one.name}: {one.what}" for one in found.differences[:5]),
            hint="run this command with the loader version that its manifest names (loader_version)",
            interval=manifest.start_seqno,
        )
    fresh = files_by_name(again)
    for name, file in files_by_name(manifest).items():
        if file in lost:
            store.delete(file.key)
            with store.reading(fresh[name].key) as source, store.writing(file.key) as sink:
                shutil.copyfileobj(source, sink)
    for attempt in {file.key.split("/")[3] for file in again.files}:
        store.remove(f"{interval_folder(again.source, again.generation, again.start_seqno)}/{attempt}/")
