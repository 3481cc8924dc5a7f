"""Checks of documents before they are used, since anybody with access to the store could have written them.

A manifest may name only files in the folder of its own interval, under keys that the loader would give them. So a
manifest can neither read, archive nor delete another object, and no glob character reaches Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from loader.errors import StagedDataError
from loader.model.table import TableName, TableSchema
from loader.staging.layout import encode

if TYPE_CHECKING:
    from loader.staging.documents import StagedFile

_SEGMENT = re.compile(r"[A-Za-z0-9_-]+")
_PART = re.compile(r"part-[A-Za-z0-9_-]+\.csv")


def check_schemas(schemas: Mapping[str, Any], key: str) -> dict[str, TableName]:
    """Return the table of each schema id, and refuse schemas whose content has another id.

    Raises:
        StagedDataError: an id does not match, or TableSchema.from_dict refuses a schema.
    """
    names = {}
    for schema_id, data in schemas.items():
        schema = TableSchema.from_dict(data)
        if schema.schema_id != schema_id:
            raise _refused(f"the schema under the id {schema_id} has the id {schema.schema_id}", key)
        names[schema_id] = schema.name
    return names


def check_files(files: Iterable[StagedFile], schemas: Mapping[str, TableName], folder: str, key: str) -> None:
    """Refuse files whose keys the loader would not have written for this folder.

    Args:
        files: to check.
        schemas: the table of each schema id that the document holds.
        folder: of the interval or the load.
        key: of the document.

    Raises:
        StagedDataError: a file is in another folder, belongs to another table than its folder or schema says, or is
            named twice.
    """
    seen: set[str] = set()
    for file in files:
        prefix, _, rest = file.key.partition(f"{folder}/")
        attempt, slash, rest = rest.partition("/")
        place, _, part = rest.rpartition("/")
        own = f"{encode(file.schema_name)}/{encode(file.table)}/{file.schema_id}"
        if prefix or not slash or place != own or not _SEGMENT.fullmatch(attempt) or not _PART.fullmatch(part):
            raise _refused(f"{file.key!r} is not a file of table {file.name} in {folder}", key)
        if schemas.get(file.schema_id, file.name) != file.name:
            raise _refused(f"{file.key} has the schema of table {schemas[file.schema_id]}", key)
        if file.key in seen:
            raise _refused(f"{file.key} is named twice", key)
        seen.add(file.key)


def _refused(why: str, key: str) -> StagedDataError:
    return StagedDataError(
        "the loader did not write this staging document",
        why=why,
        hint="restore the object from a backup, and check who else can write to the store",
        key=key,
    )
