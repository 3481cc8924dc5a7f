"""A staged initial load of one table, and its rows as the work of a merge."""

from __future__ import annotations

from dataclasses import dataclass

from loader.errors import StagedDataError
from loader.materialise.plan.merge_plan import FileGroup, RecordRange, Work, log_origin
from loader.materialise.rules import DEFAULT
from loader.model.table import TableSchema
from loader.schema.evolution import ColumnOrigin
from loader.staging.documents import Manifest


@dataclass(frozen=True)
class StagedLoad:
    """A staged initial load of one table.

    Attributes:
        key: of the manifest in the store.
        manifest: the manifest.
        work: see `load_work`.
    """

    key: str
    manifest: Manifest
    work: Work

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(file.rows for file in self.manifest.files)

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(file.bytes for file in self.manifest.files)


def load_work(manifest: Manifest) -> Work:
    """Return the records of a load manifest as the work of a merge, with the default rule.

    Raises:
        StagedDataError: the manifest is not that of an initial load of one table.
    """
    schemas = [TableSchema.from_dict(data) for data in manifest.schemas.values()]
    inserts_only = all(file.inserts == file.rows for file in manifest.files)
    if len(schemas) != 1 or manifest.start != manifest.stop or not inserts_only:
        raise StagedDataError("the manifest is not that of an initial load of one table", position=manifest.start)
    schema, files = schemas[0], tuple(file for file in manifest.files if file.rows)
    as_they_are = {column.name: ColumnOrigin(column.name) for column in schema.columns}
    group = FileGroup(schema, files, (RecordRange(0, manifest.start_seqno, as_they_are),))
    return Work(
        name=schema.name,
        schema=schema,
        applied=0,
        target=manifest.start_seqno,
        position=manifest.start,
        file_groups=(group,) if files else (),
        aliases={},
        logs=(log_origin(manifest),),
        rule=DEFAULT,
    )
