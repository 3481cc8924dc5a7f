"""Listings of the objects of intervals, for checks and purges. Readers of intervals never use them."""

from __future__ import annotations

from dataclasses import dataclass, field

from loader.staging.layout import chain_folder, interval_folder
from loader.store.base import ObjectInfo, Store


@dataclass(frozen=True)
class StoredInterval:
    """The objects in the folder of one interval.

    Attributes:
        documents: by file name (`plan.json`).
        attempts: objects of each attempt, by the name of the attempt.
    """

    documents: dict[str, ObjectInfo] = field(default_factory=dict)
    attempts: dict[str, list[ObjectInfo]] = field(default_factory=dict)

    def add(self, name: str, info: ObjectInfo) -> None:
        """Add an object by its name relative to the folder."""
        attempt, inside, _ = name.partition("/")
        if inside:
            self.attempts.setdefault(attempt, []).append(info)
        else:
            self.documents[attempt] = info


def list_intervals(store: Store, source: str, generation: str) -> dict[int, StoredInterval]:
    """Return the intervals of a generation by start seqno, ascending."""
    root = f"{chain_folder(source, generation)}/"
    found: dict[int, StoredInterval] = {}
    for info in store.list(root):
        interval, _, rest = info.key.removeprefix(root).partition("/")
        if interval.isdigit():  # other folders hold initial loads and notes
            found.setdefault(int(interval), StoredInterval()).add(rest, info)
    return found


def list_interval(store: Store, source: str, generation: str, start_seqno: int) -> StoredInterval:
    """Return the objects of one interval."""
    root = f"{interval_folder(source, generation, start_seqno)}/"
    found = StoredInterval()
    for info in store.list(root):
        found.add(info.key.removeprefix(root), info)
    return found


def attempt_name(key: str) -> str:
    """Return the name of the attempt that staged a file of an interval."""
    return key.split("/")[3]
