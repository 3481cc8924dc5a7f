"""Stops a merge before rows that an interval could not stage. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from loader.errors import UnsupportedError
from loader.model.table import TableName
from loader.staging.documents import IncompleteTable, Manifest


def check_rows_staged(name: TableName, manifests: Sequence[Manifest], after_seqno: int, last_seqno: int) -> None:
    """Verify that all rows of a table with `after_seqno` < seqno <= `last_seqno` are staged.

    Raises:
        UnsupportedError: the table is incomplete: an interval lacks rows of it.
    """
    for manifest in manifests:
        if entry := manifest.find_incomplete(name, after_seqno, last_seqno):
            raise _missing_rows_error(manifest, entry)


def _missing_rows_error(manifest: Manifest, left_out: IncompleteTable) -> UnsupportedError:
    name = left_out.name.argument
    again = left_out.name.load_again
    return UnsupportedError(
        f"rows of the table could not be staged: {left_out.what}",
        why=left_out.why,
        hint=f"{left_out.hint}; then load the table again: {again}{_skip(manifest, left_out)}"
        if left_out.hint
        else f"give the table's schema at that position: loader schema set {name} --at {left_out.at} --file FILE;"
        f" then stage the rows: loader extract --interval {manifest.start_seqno};"
        f" or load the table again: {again}",
        table=left_out.name,
        position=left_out.position,
        interval=manifest.start_seqno,
    )


def _skip(manifest: Manifest, left_out: IncompleteTable) -> str:
    if not left_out.skippable:
        return ""
    return (
        f"; or skip its rows of this transaction, which the table then lacks: {left_out.skip_command};"
        f" then stage the other rows: loader extract --interval {manifest.start}"
    )
