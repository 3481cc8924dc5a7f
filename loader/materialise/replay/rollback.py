"""Replays a table without a key, or a history, on a branch that begins at one of its snapshots.

The branch merges the staged records after the snapshot, and then has the rows that the table should have. If main has
other rows, the branch replaces main, or stays for inspection.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Literal

from loader.materialise.collapse.last_versions import collapse
from loader.materialise.collapse.partial_images import partial_replay_error
from loader.materialise.collapse.table_changes import Changes
from loader.materialise.iceberg.branch import (
    Branch,
    drop_branch,
    drop_superseded,
    find_finished_branch,
    replay_branch_name,
)
from loader.materialise.iceberg.table_metadata import Applied, TableMetadata
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.merge.merge_stages import run_stages
from loader.materialise.plan.interval_chain import Chain
from loader.materialise.plan.merge_plan import Merge, Work
from loader.materialise.replay.multiset_diff import MultisetDiff, diff_multisets
from loader.materialise.replay.roll_forward import plan_forward
from loader.materialise.spec import TableReplay
from loader.model.table import TableName


def roll_table(
    warehouse: Warehouse,
    chain: Chain,
    table: TableName,
    metadata: TableMetadata,
    applied: Applied,
    from_seqno: int,
    *,
    publish: bool,
    approved_by: str,
) -> TableReplay:
    """Compare all rows of a table with its snapshot at a seqno plus the records after it.

    Args:
        warehouse: the catalog.
        chain: the intervals of the source.
        table: the table.
        metadata: of the table.
        applied: its applied position.
        from_seqno: the start of the replay.
        publish: publish the correct rows if they differ. Otherwise a branch keeps them until the table changes.
        approved_by: who approved that; empty if nobody was asked.

    Raises:
        UnsupportedError: there is no such snapshot, or the log does not hold all that changed the table since then.
        BranchLostError: the table changed during the replay; nothing was published.
    """
    root, merge = plan_forward(warehouse, chain, table, metadata, applied, from_seqno)
    name = replay_branch_name(from_seqno)
    # An earlier replay may have built the branch for the same applied position.
    shown = find_finished_branch(warehouse, table, metadata.head, name, applied, root.snapshot)
    with shown or Branch(warehouse, table, metadata.head, name, start=root.snapshot) as branch:
        steps = len(shown.commits()) if shown else _roll_forward(warehouse, chain, merge, branch, applied)
        found = _diff_with_main(warehouse, table, metadata, branch)
        if found.rows and publish:
            branch.publish(steps, signature=applied.approved(approved_by))
    if not found.rows:
        drop_branch(warehouse, table, branch.name)
    elif publish:
        drop_superseded(warehouse, table)
    status: Literal["same", "differs", "published"] = "same"
    if found.rows:
        status = "published" if publish else "differs"
    return TableReplay(
        table=str(table),
        status=status,
        position=applied.position,
        inserts=found.inserts,
        deletes=found.deletes,
        files=found.files,
        samples=found.samples,
        branch=branch.name if status == "differs" else "",
    )


def _roll_forward(warehouse: Warehouse, chain: Chain, merge: Merge, branch: Branch, applied: Applied) -> int:
    """Merge the records into the branch and sign the last commit. Return the number of commits."""
    with ExitStack() as kept:
        changes: dict[int, Changes] = {}
        for place, stage in enumerate(merge.stages):
            if isinstance(stage, Work):
                changes[place] = collapse(warehouse.session, chain.store, stage)
                kept.callback(changes[place].release)
        return run_stages(warehouse, branch, merge, changes, _refuse_partial, applied.signature)


def _refuse_partial(work: Work, _changes: Changes, _relation: str) -> Changes:
    raise partial_replay_error(work.name)


def _diff_with_main(warehouse: Warehouse, table: TableName, metadata: TableMetadata, branch: Branch) -> MultisetDiff:
    """Compare the branch with main. The loader's own columns count only in a history.

    In other modes, a merge deletes any one of identical rows.
    """
    layout = warehouse.layout(metadata, table)
    columns = layout.columns if layout.rule.mode == "history" else layout.image
    # The head of main is fixed, so later commits are no differences.
    there = warehouse.session.read.option("versionAsOf", str(metadata.head)).table(warehouse.name(table))
    return diff_multisets(there, warehouse.session.table(branch.target), columns)
