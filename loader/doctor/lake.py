"""Staging and warehouse: the store by the loader's own client, then store and catalog by Spark."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from loader.doctor.finding import Finding, error, findings_of, ok
from loader.doctor.spec import DoctorSpec
from loader.materialise.spec import CatalogSettings
from loader.store.base import Store
from loader.submit import SparkSettings

_JOB = Path(__file__).resolve().parent / "job.py"
_FOLDER = ".doctor"
_TEXT = "the doctor was here"

RunJob = Callable[[Path, BaseModel, SparkSettings], dict[str, Any]]


def store_works(store: Store) -> Finding:
    """Whether objects can be created, once, read, listed and deleted."""
    key = _new_key()
    cure = "use a store that keeps to conditional creates: without them two runs would overwrite each other's plans"
    try:
        if not store.create(key, _TEXT.encode()):
            return error("store", "an object that nobody made is said to exist", cure)
        if store.create(key, b"another"):
            return error("store", "an object was created twice", cure)
        if store.get(key) != _TEXT.encode() or key not in {info.key for info in store.list(f"{_FOLDER}/")}:
            return error("store", "an object is not there as it was written", cure)
    finally:
        store.delete(key)
    return ok("store", f"{store.root.partition('?')[0]}: creates once, reads, lists, deletes")


def by_spark(store: Store, catalog: CatalogSettings, spark: SparkSettings, run: RunJob) -> list[Finding]:
    """What Spark finds: its own version, the staging root, the catalog."""
    key = _new_key()
    try:
        store.create(key, _TEXT.encode())
        return findings_of(run(_JOB, DoctorSpec(catalog=catalog, uri=store.uri(key), text=_TEXT), spark))
    finally:
        store.delete(key)


def _new_key() -> str:
    return f"{_FOLDER}/{uuid.uuid4().hex}"
