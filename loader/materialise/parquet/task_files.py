"""Data files that Spark tasks write next to the staging area, with its client. Only their names go to the driver."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pyarrow as pa

from loader.materialise.iceberg.data_files import DataFiles, WrittenFile
from loader.materialise.parquet.row_writer import write_rows
from loader.native_collapse.last_records import NotSupportedNatively
from loader.store.base import BLOCK_BYTES
from loader.store.registry import open_store
from loader.store.sibling import sibling_folder


class FilePlace(NamedTuple):
    """Where a task writes a data file.

    Attributes:
        location: of the file, given by the table. Each attempt of a task adds to the name, so it overwrites no file.
        folder: the address of its folder, for `open_store`.
    """

    location: str
    folder: str


def choose_places(files: DataFiles, root: str, count: int) -> list[FilePlace]:
    """Return places for new data files of a table.

    Args:
        files: of the table.
        root: address of the staging area.
        count: of the places.

    Raises:
        NotSupportedNatively: the client of the staging area cannot write the table's files.
    """
    return [_choose_place(files, root, number) for number in range(count)]


def _choose_place(files: DataFiles, root: str, number: int) -> FilePlace:
    location = files.location(number)
    folder = sibling_folder(root, location) if files.uses_hadoop else None
    if folder is None:
        raise NotSupportedNatively("the warehouse is not next to the staging area")
    return FilePlace(location, folder)


def write_file(batches: Iterable[pa.Table], fields: pa.Schema, place: FilePlace) -> WrittenFile:
    """Write rows into a file at a place, in a task: see `write_rows`.

    Raises:
        LoaderError: the store does not answer.
    """
    location = f"{place.location.removesuffix('.parquet')}-{uuid.uuid4().hex[:8]}.parquet"
    name = location.rpartition("/")[2]
    with TemporaryDirectory(prefix="loader-rows-") as scratch:
        path = Path(scratch, name)
        content = write_rows(batches, fields, path)
        with path.open("rb") as source, open_store(place.folder).writing(name) as target:
            shutil.copyfileobj(source, target, BLOCK_BYTES)
        return WrittenFile(location, path.stat().st_size, content)
