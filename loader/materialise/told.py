"""Where an interval left rows of a table out, since nothing told their columns: nothing is applied over that place."""

from __future__ import annotations

from collections.abc import Sequence

from loader.errors import UnsupportedError
from loader.model.table import TableName
from loader.staging.documents import LeftOut, Manifest


def check_told(name: TableName, manifests: Sequence[Manifest], after: int, through: int) -> None:
    """Raise where rows of a table with `after` < seqno <= `through` are not staged.

    Raises:
        UnsupportedError: which ones, why, and how they come to be.
    """
    for manifest in manifests:
        for one in manifest.left_out:
            if one.name == name and after < one.seqno <= through:
                raise _missing(manifest, one)


def _missing(manifest: Manifest, left_out: LeftOut) -> UnsupportedError:
    name = left_out.name.argument
    return UnsupportedError(
        f"rows of the table are not staged from a place in the log on: {left_out.what}",
        why=left_out.why,
        hint=f"say how it was there: loader schema set {name} --at {left_out.at} --file FILE;"
        f" then stage them: loader extract --interval {manifest.start_seqno};"
        f" or read it anew: loader initial-load --table {name} --again",
        table=left_out.name,
        position=left_out.position,
        interval=manifest.start_seqno,
    )
