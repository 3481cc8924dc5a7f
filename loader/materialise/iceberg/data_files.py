"""Data files that were written outside Spark: their columns, their upload, and their entries in the table's metadata.

Format: Iceberg specification, "Parquet" and "Column Projection": readers find columns by the field ids in the file.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, cast

import pyarrow as pa
from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from loader.materialise.iceberg.table_metadata import TableMetadata, commit_properties

_LOG = logging.getLogger(__name__)
_FIELD_ID = b"PARQUET:field_id"
_KINDS = ("write.format.default", "write.parquet.compression-codec", "write.parquet.bloom-filter", "encryption.")
"""Names, or beginnings of names, of the properties that choose the kind of the files."""
_PLAIN = {"write.format.default": "parquet", "write.parquet.compression-codec": "zstd"}
_DEFAULTS = {"initial-default", "write-default"}
_AT_ONCE = 8
"""Files whose footers are read, or that are deleted, at the same time."""
_HADOOP_FILES = "org.apache.iceberg.hadoop.HadoopFileIO"
_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")
_TYPES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "string": pa.string(),
    "binary": pa.binary(),
}
"""By Iceberg type, the Arrow type of its values."""


def arrow_fields(metadata: TableMetadata) -> Mapping[str, pa.Field] | None:
    """Return the Arrow field of each column of the table by name, with its field id.

    Return None if only Spark can write the table: it is partitioned, has nested columns or columns with defaults, or
    its properties ask for files of another kind.
    """
    if metadata.is_partitioned or not _is_plain(metadata.properties):
        return None
    fields = {}
    for column in metadata.schema["fields"]:
        kind = _arrow_type(column["type"])
        if kind is None or _DEFAULTS & column.keys():
            return None
        id_ = {_FIELD_ID: str(column["id"]).encode()}
        fields[column["name"]] = pa.field(column["name"], kind, nullable=not column["required"], metadata=id_)
    return fields


def _is_plain(properties: Mapping[str, str]) -> bool:
    """Return whether a table wants Parquet files with Iceberg's default compression, and nothing special in them."""
    wanted = {name: value for name, value in properties.items() if name.startswith(_KINDS)}
    return all(_PLAIN.get(name) == value.lower() for name, value in wanted.items())


def _arrow_type(kind: object) -> Any:
    if not isinstance(kind, str):
        return None
    decimal = _DECIMAL.fullmatch(kind)
    return pa.decimal128(int(decimal[1]), int(decimal[2])) if decimal else _TYPES.get(kind)


class FileContent(NamedTuple):
    """What a Parquet file holds.

    Attributes:
        split_offsets: the offset of each row group, in bytes.
        unbounded: the names of columns whose smallest and largest value the file does not tell.
    """

    split_offsets: Sequence[int]
    unbounded: Sequence[str]


class WrittenFile(NamedTuple):
    """A Parquet file at its place in the table's location, with its size in bytes."""

    location: str
    size: int
    content: FileContent


class DataFiles:
    """New data files of a table, which no snapshot has yet.

    Attributes:
        columns: the names by ids of the table's columns.
        table: the table's id and location.

    Args:
        session: the session of the table's catalog.
        metadata: of the table.
    """

    def __init__(self, session: SparkSession, metadata: TableMetadata) -> None:
        self._gateway: Any = cast("Any", session.sparkContext)._gateway
        self._table = metadata.table
        self.columns = metadata.column_ids
        self.table = str(self._table.uuid()), str(self._table.location())
        self._name = uuid.uuid4().hex
        self.entries: list[JavaObject] = []

    @property
    def uses_hadoop(self) -> bool:
        """Whether the table's files are read and written by Hadoop's file systems, with the rights of this process."""
        return str(self._table.io().getClass().getName()) == _HADOOP_FILES

    def location(self, number: int) -> str:
        """Return the place of a new file, by its number among the new files."""
        return str(self._table.locationProvider().newDataLocation(f"{self._name}-{number:05d}.parquet"))

    def upload(self, file: Path, number: int, content: FileContent) -> None:
        """Copy a local Parquet file to the table's location through the table's file system.

        Args:
            file: the local file.
            number: of the file among the new files.
            content: what the file holds.
        """
        location = self.location(number)
        stream = self._table.io().newOutputFile(location).create()
        try:
            self._class("java.nio.file.Files").copy(self._class("java.io.File")(str(file)).toPath(), stream)
        finally:
            stream.close()
        local = self._class("org.apache.iceberg.Files").localInput(str(file))
        self._add(WrittenFile(location, file.stat().st_size, content), local)

    def add(self, written: Iterable[WrittenFile]) -> None:
        """Add files that other processes wrote. Their footers are read through the table's file system."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for _ in pool.map(lambda file: self._add(file, self._table.io().newInputFile(file.location)), written):
                pass

    def _add(self, file: WrittenFile, source: JavaObject) -> None:
        rule = self._class("org.apache.iceberg.MetricsConfig").forTable(self._table)
        metrics = self._class("org.apache.iceberg.parquet.ParquetUtil").fileMetrics(source, rule)
        # Iceberg takes the bounds of the other row groups for those of the file (ParquetMetrics.bounds).
        for field_id, name in self.columns.items():
            if name in file.content.unbounded:
                metrics.lowerBounds().remove(field_id)
                metrics.upperBounds().remove(field_id)
        builder = self._class("org.apache.iceberg.DataFiles").builder(self._table.spec())
        builder = builder.withPath(file.location).withFormat("parquet")
        builder = builder.withFileSizeInBytes(file.size).withMetrics(metrics)
        self.entries.append(builder.withSplitOffsets(self._longs(file.content.split_offsets)).build())

    def _longs(self, numbers: Sequence[int]) -> JavaObject:
        """Return a Java list of `Long`. In a list of its own, py4j would make each small number an `Integer`."""
        array = self._gateway.new_array(self._gateway.jvm.long, len(numbers))
        for place, number in enumerate(numbers):
            array[place] = number
        return self._class("org.apache.iceberg.util.ArrayUtil").toLongList(array)

    def _class(self, name: str) -> Any:
        """Return a Java class. One look-up of the whole name is faster than one of each package."""
        return getattr(self._gateway.jvm, name)

    @property
    def rows(self) -> int:
        """The number of rows in the files."""
        return sum(entry.recordCount() for entry in self.entries)

    def add_to(self, transaction: JavaObject, properties: Mapping[str, str], *, replace: bool) -> None:
        """Add a commit of the files to a transaction.

        Args:
            transaction: of Iceberg.
            properties: of the commit's summary.
            replace: the files replace all rows of the table.
        """
        if replace:
            everything = self._class("org.apache.iceberg.expressions.Expressions").alwaysTrue()
            change = transaction.newOverwrite().overwriteByRowFilter(everything)
        else:
            change = transaction.newAppend()
        for entry in self.entries:
            change = change.addFile(entry) if replace else change.appendFile(entry)
        commit_properties(change, properties)

    def append_to(self, metadata: TableMetadata, branch: str, properties: Mapping[str, str]) -> None:
        """Commit the files to a branch of the table, with `properties` in the summary."""
        change = metadata.append(branch)
        for entry in self.entries:
            change = change.appendFile(entry)
        commit_properties(change, properties)

    def delete(self) -> None:
        """Delete the files. No snapshot may reference them. An error of the file system is only logged."""
        self.delete_files([entry.location() for entry in self.entries])
        self.entries.clear()

    def delete_files(self, locations: Iterable[str]) -> None:
        """Delete files of the table that were not added, as `delete` does."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for _ in pool.map(self._delete_file, locations):
                pass

    def _delete_file(self, location: str) -> None:
        try:
            self._table.io().deleteFile(location)
        except Exception as error:  # maintenance removes the file
            _LOG.warning("%s was not deleted: %s", location, error)
