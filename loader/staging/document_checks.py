"""What a document in the store must be before it is used: whoever writes to the store could have written it.

A manifest names files only in its own interval's folder, by the key that the loader gives them. So no other object is
read, archived or deleted by it, and no character of a pattern reaches Spark.
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
    """Return the table of each schema by its id, and refuse schemas that are not of their ids.

    Raises:
        StagedDataError: also what TableSchema.from_dict refuses.
    """
    names = {}
    for schema_id, data in schemas.items():
        schema = TableSchema.from_dict(data)
        if schema.schema_id != schema_id:
            raise _refused(f"the schema under the id {schema_id} has the id {schema.schema_id}", key)
        names[schema_id] = schema.name
    return names


def check_files(files: Iterable[StagedFile], schemas: Mapping[str, TableName], folder: str, key: str) -> None:
    """Refuse files that are not in the folder, by their names.

    Args:
        files: to check.
        schemas: the table of each schema by its id, as far as the document has them.
        folder: of the interval or the load.
        key: of the document.

    Raises:
        StagedDataError: one that is elsewhere, of another table than its folder or its schema says, or named twice.
    """
    seen: set[str] = set()
    for file in files:
        prefix, _, rest = file.key.partition(f"{folder}/")
        attempt, slash, rest = rest.partition("/")
        place, _, part = rest.rpartition("/")
        own = f"{encode(file.schema_name)}/{encode(file.table)}/{file.schema_id}"
        if prefix or not slash or place != own or not _SEGMENT.fullmatch(attempt) or not _PART.fullmatch(part):
            raise _refused(f"{file.key!r} is not the key of a file of {file.name} in {folder}", key)
        if schemas.get(file.schema_id, file.name) != file.name:
            raise _refused(f"{file.key} has the schema of {schemas[file.schema_id]}", key)
        if file.key in seen:
            raise _refused(f"{file.key} is named twice", key)
        seen.add(file.key)


def _refused(why: str, key: str) -> StagedDataError:
    return StagedDataError(
        "a document of staging is not one that the loader wrote",
        why=why,
        hint="restore the object from a version that the loader wrote, and see who else can write to the store",
        key=key,
    )
