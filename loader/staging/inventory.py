"""What a store holds of a generation's intervals, by one listing: for checks and purges, never for reading."""

from __future__ import annotations

from dataclasses import dataclass, field

from loader.staging.chain import PlanChain
from loader.staging.documents import Published
from loader.staging.layout import chain_folder
from loader.store.base import ObjectInfo, Store


@dataclass(frozen=True)
class Stored:
    """The objects in the folder of one interval.

    Attributes:
        documents: by name (`plan.json`).
        attempts: those in the folder of each attempt, by its name.
    """

    documents: dict[str, ObjectInfo] = field(default_factory=dict)
    attempts: dict[str, list[ObjectInfo]] = field(default_factory=dict)


def inventory(store: Store, source: str, generation: str) -> dict[int, Stored]:
    """The intervals of a generation by their start seqno, in order."""
    root = f"{chain_folder(source, generation)}/"
    found: dict[int, Stored] = {}
    for info in store.list(root):
        interval, _, rest = info.key.removeprefix(root).partition("/")
        if not interval.isdigit():
            continue  # initial loads and notes of runs
        stored = found.setdefault(int(interval), Stored())
        attempt, inside, _ = rest.partition("/")
        if inside:
            stored.attempts.setdefault(attempt, []).append(info)
        else:
            stored.documents[attempt] = info
    return found


def newest_published(chain: PlanChain, stored: dict[str, dict[int, Stored]]) -> Published | None:
    """The published record of the latest of these intervals that has one."""
    every = ((name, start) for name in reversed(stored) for start in reversed(stored[name]))
    newest = next((one for one in every if "published.json" in stored[one[0]][one[1]].documents), None)
    return chain.published(*newest) if newest else None


def attempt_of(key: str) -> str:
    """Name of the attempt that staged a file of an interval."""
    return key.split("/")[3]
