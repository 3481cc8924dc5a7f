"""Staged records that kernels read in Spark tasks, as frames with the columns of `casts.row_columns`.

Kernels read records of one schema, with all columns, whose values fit their columns. Spark SQL reads all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Protocol, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from loader.materialise.plan.frame_columns import key_places, places
from loader.materialise.plan.merge_plan import Work
from loader.native_collapse.last_records import NotSupportedNatively
from loader.native_collapse.task_records import read_records, why_not_native
from loader.schema.evolution import ColumnOrigin
from loader.spark.executor_python import errors_of_tasks
from loader.spark.task_frames import task_frame
from loader.staging.documents import StagedFile
from loader.store.base import Store
from loader.types.warehouse import spark_type


class _HasBytes(Protocol):
    @property
    def bytes(self) -> int: ...


_Sized = TypeVar("_Sized", bound=_HasBytes)
MOST_FILE_BYTES = 256 * 1024 * 1024
"""Size of a file whose last records kernels find. It is read whole and takes some four times its size in memory."""


def is_of_own_columns(work: Work) -> bool:
    """Return whether the records are of one schema, which is the table's, and all of them up to the target count."""
    if len(work.file_groups) != 1:
        return False
    group = work.file_groups[0]
    own = {column.name: ColumnOrigin(column.name) for column in work.schema.columns}
    whole = [dict(counted.origins) == own and counted.last_seqno >= work.target for counted in group.ranges]
    return whole == [True] and (group.schema.columns, group.schema.key) == (work.schema.columns, work.schema.key)


def has_last_records(work: Work) -> bool:
    """Return whether kernels can find the last record of each key, as far as the plan tells."""
    if not work.schema.key or work.rule.mode == "history" or not is_of_own_columns(work):
        return False
    return max(file.bytes for file in work.files) <= MOST_FILE_BYTES


def record_types(work: Work) -> dict[str, str]:
    """Return the columns of `native_collapse.arrow_columns.read_columns` with their types in Spark."""
    named = zip(places(work.schema), work.schema.columns, strict=True)
    meta = {"_op": "string", "_seqno": "bigint", "_row_offset": "bigint", "_committed_at": "timestamp"}
    return meta | {place: spark_type(column, work.name) for place, column in named}


def ddl(types: Mapping[str, str]) -> str:
    """Return columns and their types as Spark reads them."""
    return ", ".join(f"{name} {type_}" for name, type_ in types.items())


def add_text_columns(records: DataFrame, work: Work) -> DataFrame:
    """Return the frame with the columns for the texts of misfits. All are NULL, since kernels read no misfits."""
    return records.withColumns({f"text_{place}": sf.lit(None).cast("string") for place in work.layout.text_columns})


def records_in_tasks(session: SparkSession, store: Store, work: Work, groups: Sequence[list[StagedFile]]) -> DataFrame:
    """Return all records, in one partition for each group of files. Each action reads them again.

    An action fails if a file differs from its manifest, or inside `unsupported_in_tasks` if kernels cannot read it.
    """
    read = partial(read_records, store.root, work.file_groups[0].schema, key_places(work.schema))
    records = task_frame(session, store.root, read, groups, ddl(record_types(work)))
    return add_text_columns(records.withColumn("_new", sf.lit(True)), work)


def group_files(files: Sequence[StagedFile], slots: int, fewest: int, most: int) -> Iterator[list[StagedFile]]:
    """Yield consecutive files of about equal total size: a group for each slot, if it has `fewest` to `most` bytes."""
    total = sum(file.bytes for file in files)
    return group_by_size(files, max(fewest, min(most, -(-total // slots))))


def group_by_size(pieces: Iterable[_Sized], limit: int) -> Iterator[list[_Sized]]:
    """Yield consecutive pieces of up to `limit` bytes together, or single larger ones."""
    group, size = list[_Sized](), 0
    for piece in pieces:
        if group and size + piece.bytes > limit:
            yield group
            group, size = [], 0
        group.append(piece)
        size += piece.bytes
    if group:
        yield group


@contextmanager
def unsupported_in_tasks() -> Iterator[None]:
    """Raise NotSupportedNatively if a task could not read its records, so that Spark SQL reads them.

    Raises:
        NotSupportedNatively: a task did.
        LoaderError: of a task, such as a StagedDataError.
        UsageError: an executor has another Python or loader than the driver.
    """
    with errors_of_tasks():
        try:
            yield
        except Exception as error:
            if why := why_not_native(error):
                raise NotSupportedNatively(why) from error
            raise
