"""Decides which snapshots of a table must stay. The loader expires snapshots by their ids only.

Iceberg expires snapshots by age and number. That could remove the old snapshot with the applied position of a table
without changes, or snapshots in published records. Tags on all of these would need another commit per table and
interval. So the loader itself selects the snapshots that may expire.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from loader.materialise.iceberg.branch import can_become_main, is_own_branch, is_replay_branch
from loader.materialise.iceberg.table_metadata import EXACT_AT_SEQNO, Applied, TableMetadata
from loader.staging.chain import PlanChain
from loader.staging.interval_starts import ENDLESS
from loader.staging.inventory import list_interval
from loader.staging.published import Published
from loader.store.base import Store


def find_expirable(
    metadata: TableMetadata, applied: Applied, viewed: set[int], before: int, behind: int | None = None
) -> list[int]:
    """Return the snapshots before a time that nothing needs, oldest first.

    Snapshots of branches, tags and views are needed. So is main from its head back to the oldest of these, or to the
    newest commit of the loader: positions are read by going from a snapshot to its parent.

    A table that is behind may later take the rows that this table had before a rename. No view has them if this table
    was created and renamed in one interval. So main is also needed back to the newest commit at or before the position
    of the table behind. And it is needed back to an initial load up to whose end this table, or the table behind, is
    not merged: the load may include later changes.

    Args:
        metadata: of the table.
        applied: the table's applied position.
        viewed: the snapshots that views need.
        before: a time in milliseconds since 1970.
        behind: the smallest seqno up to which a table behind has every record; None if no table is behind.
    """
    kept = metadata.referenced_snapshots | viewed
    main = [snapshot.id for snapshot in metadata.ancestry(metadata.head)]
    needed = viewed | {applied.snapshot} | (_commits_since(metadata, behind) if behind is not None else set())
    needed |= _unfinished_loads(metadata, applied.seqno if behind is None else min(applied.seqno, behind))
    oldest = max(place for place, one in enumerate(main) if one in needed)
    kept.update(main[: oldest + 1])
    return [one for one, made in metadata.snapshots.items() if made < before and one not in kept]


def _commits_since(metadata: TableMetadata, seqno: int) -> set[int]:
    """Return the loader's commits in main after a seqno, and the newest one up to it."""
    positions = list(metadata.applied_positions())
    later = [place for place, one in enumerate(positions) if one.seqno > seqno]
    return {one.snapshot for one in positions[: max(later, default=-1) + 2]}


def _unfinished_loads(metadata: TableMetadata, seqno: int) -> set[int]:
    """Return the initial loads in main that may include changes after a seqno."""
    return {one.id for one in metadata.ancestry(metadata.head) if one.count(EXACT_AT_SEQNO) > seqno}


def find_viewed_snapshots(store: Store, source: str, generation: str, since: datetime) -> dict[str, set[int]]:
    """Return, by table, the snapshots of all views that were published since a time, and of the newest view before it.

    If tables were behind in one of these, older views are included, back to the newest view that is not after these
    tables, or that had every table. A rename may take the rows of another table from a snapshot of that time.
    """
    found: dict[str, set[int]] = {}
    for record in _iter_records(store, source, generation, since):
        for name, table in record.tables.items():
            found.setdefault(name, set()).add(table.snapshot)
    return found


def _iter_records(store: Store, source: str, generation: str, since: datetime) -> Iterator[Published]:
    chain = PlanChain(store, source)
    needed = ENDLESS  # the seqno from which a table behind may need snapshots of others
    found_older = False
    for one in reversed(chain.lineage(generation)):
        head = chain.newest_plan(one.name)
        for start in chain.descending_starts(one.name, head.stop_seqno) if head else ():
            info = list_interval(store, source, one.name, start).documents.get("published.json")
            record = chain.published(one.name, start) if info else None
            if info and record:
                yield record
                if not found_older:
                    needed = min(needed, *record.merged_behind, record.stop_seqno)
                found_older = found_older or info.modified < since
                if found_older and (not record.merged_behind or record.stop_seqno <= needed):
                    return


def find_dead_branches(metadata: TableMetadata, before: int) -> list[str]:
    """Return branches that cannot become main, and branches of merges whose newest own commit is older than a time.

    A branch without own commits stays: it may belong to an attempt that has just begun, and it holds no files.
    """
    main = metadata.head
    return [
        name
        for name, head in metadata.branches.items()
        if is_own_branch(name)
        and main not in {None, head}
        and (not can_become_main(metadata, name) or (_is_old(metadata, head, before) and not is_replay_branch(name)))
    ]


def _is_old(metadata: TableMetadata, head: int, before: int) -> bool:
    return metadata.snapshots[head] < before and not metadata.descends(metadata.head, head)
