"""Which snapshots of a table must stay. Explicit ids are expired, and nothing else.

Iceberg expires by age and number. Neither knows that one old snapshot carries the applied position of a table that was
quiet since, nor that published records name snapshots; tags on all of these would be a commit more per table and
interval. So the loader looks at every snapshot itself, and names those that may go.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from loader.materialise.iceberg.branch import PREFIX, can_become_main, is_replay_branch
from loader.materialise.iceberg.table_metadata import Applied, TableMetadata
from loader.staging.chain import PlanChain
from loader.staging.documents import Published
from loader.staging.inventory import list_interval
from loader.store.base import Store


def find_expirable(metadata: TableMetadata, applied: Applied, viewed: set[int], before: int) -> list[int]:
    """The snapshots made before a time (milliseconds since 1970) that nothing needs, oldest first.

    Needed are those that a branch or tag points to, those in `viewed`, and main from its head back to the oldest of
    them, or to the newest commit of the loader: positions are read by going from one snapshot to the next.
    """
    kept = metadata.referenced_snapshots | viewed
    main = [snapshot.id for snapshot in metadata.ancestry(metadata.head)]
    oldest = max(place for place, one in enumerate(main) if one == applied.snapshot or one in viewed)
    kept.update(main[: oldest + 1])
    return [one for one, made in metadata.snapshots.items() if made < before and one not in kept]


def find_viewed_snapshots(store: Store, source: str, generation: str, since: datetime) -> dict[str, set[int]]:
    """The snapshots, by table, of all views published since then, and of the one that was the newest at that time.

    While a table is quarantined also of those since it had everything: it may take the rows of another table as that
    was then, when it got its name.
    """
    found: dict[str, set[int]] = {}
    for record in _iter_records(store, source, generation, since):
        for name, table in record.tables.items():
            found.setdefault(name, set()).add(table.snapshot)
    return found


def _iter_records(store: Store, source: str, generation: str, since: datetime) -> Iterator[Published]:
    chain = PlanChain(store, source)
    for one in reversed(chain.lineage(generation)):
        head = chain.newest_plan(one.name)
        for start in chain.descending_starts(one.name, head.stop_seqno) if head else ():
            info = list_interval(store, source, one.name, start).documents.get("published.json")
            record = chain.published(one.name, start) if info else None
            if info and record:
                yield record
                if info.modified < since and not record.behind:
                    return


def find_dead_branches(metadata: TableMetadata, before: int) -> list[str]:
    """Branches that cannot become main any more, and those of merges whose own newest commit is older than that.

    One that stands where main does or did may be of an attempt that has just begun; it holds no files of its own.
    """
    main = metadata.head
    return [
        name
        for name, head in metadata.branches.items()
        if name.startswith(PREFIX)
        and main not in {None, head}
        and (not can_become_main(metadata, name) or (_is_old(metadata, head, before) and not is_replay_branch(name)))
    ]


def _is_old(metadata: TableMetadata, head: int, before: int) -> bool:
    return metadata.snapshots[head] < before and not metadata.descends(metadata.head, head)
