r"""How the texts of a table's rows were staged, for texts in keys. Pure.

With `undecodable = "hex"`, invalid bytes are staged as a text such as `\x61a1`. In keys, ordinary text of this form is
then refused, so each key has one text. With `"error"`, ordinary text of this form is a key. So rows that were staged
with both settings may have different keys with one text, if a key has this form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loader.model.charsets import ALWAYS_VALID_CHARSETS
from loader.model.table import TableName, TableSchema
from loader.staging.documents import Manifest
from loader.types.catalogue import type_of
from loader.types.column_type import Encoding

StagesHex = Callable[[int], bool]
"""Returns whether invalid bytes were staged as hex in the interval with this start seqno."""


@dataclass(frozen=True)
class KeyTexts:
    """How the records of a merge were staged.

    Attributes:
        hexed: invalid bytes were staged as hex.
        changed: the rows of the table were staged in the other way.
    """

    hexed: bool = False
    changed: bool = False


def read_key_texts(
    table: TableName, manifests: Sequence[Manifest], applied: int, stages_hex: StagesHex, before: bool | None
) -> KeyTexts:
    """Return how the first records of a table after the seqno `applied` were staged.

    `before`: whether invalid bytes are hex in the rows of the table; None if it has no rows.
    """
    found = next((stages_hex(one.start_seqno) for one in manifests if _has_records(one, table, applied)), None)
    if found is None:
        return KeyTexts(hexed=bool(before))
    return KeyTexts(found, changed=before is not None and found != before)


def last_staged_alike(
    table: TableName, manifests: Sequence[Manifest], applied: int, target: int, stages_hex: StagesHex
) -> int:
    """Return the seqno up to which all records of a table after `applied` were staged in the same way.

    It is the target, or the stop of an interval before the target.
    """
    first, stop = None, applied
    for manifest in manifests:
        if _has_records(manifest, table, applied):
            hexed = stages_hex(manifest.start_seqno)
            first = hexed if first is None else first
            if hexed != first:
                return min(stop, target)
        stop = manifest.stop_seqno
    return target


def ambiguous_key_columns(schema: TableSchema) -> tuple[str, ...]:
    """Return the columns of the key whose texts depend on the setting."""
    columns = map(schema.column, schema.key)
    texts = (column for column in columns if type_of(column).encoding is Encoding.TEXT)
    return tuple(column.name for column in texts if column.charset not in ALWAYS_VALID_CHARSETS)


def _has_records(manifest: Manifest, table: TableName, applied: int) -> bool:
    return any(file.rows and file.max_seqno > applied for file in manifest.files_of(table))
