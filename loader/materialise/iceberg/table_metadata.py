"""The metadata of an Iceberg table: properties, branches, snapshots, and the applied position in the ancestry of main.

It is read through Iceberg's public Java API (`Table`, `Snapshot`) by pyspark's gateway. So all values are of one
version of the metadata, and no Spark job runs. SQL metadata tables offer neither.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from py4j.java_gateway import JavaObject, JVMView
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from loader.errors import DataError
from loader.materialise.quoting import identifier

APPLIED = "loader.applied"
POSITION = "loader.position"
SOURCE = "loader.source"
GENERATION = "loader.generation"
LOG = "loader.log"
RUN = "loader.run"
EXACT_AT = "loader.exact_at"
EXACT_AT_SEQNO = "loader.exact_at_seqno"
SCHEMA_ID = "loader.schema_id"
STATE = "loader.state"
UNDECODABLE = "loader.undecodable"
APPROVED_BY = "loader.approved_by"


def signature(
    *,
    seqno: int,
    position: str,
    source: str,
    generation: str,
    schema_id: str,
    log: str = "",
    state: str = "",
    hexed: bool = False,
) -> dict[str, str]:
    """Return the summary properties that record an applied position in a commit. They are read as `Applied`."""
    return {
        APPLIED: str(seqno),
        POSITION: position,
        SOURCE: source,
        GENERATION: generation,
        SCHEMA_ID: schema_id,
        **({LOG: log} if log else {}),
        **({STATE: state} if state else {}),
        **({UNDECODABLE: "hex"} if hexed else {}),
    }


@dataclass(frozen=True)
class Snapshot:
    """A commit: its id, the id of its parent (None for the first commit), and its summary."""

    id: int
    parent: int | None
    summary: Mapping[str, str]

    def count(self, name: str) -> int:
        """Return a number of the summary. Iceberg leaves out zeros."""
        return int(self.summary.get(name, "0"))


@dataclass(frozen=True)
class Applied:
    """An applied position: a commit of the loader in main with all records up to `seqno`.

    Attributes:
        seqno, position: the applied position.
        source, generation: the log of the position.
        snapshot: the id of the commit.
        schema_id: the id of the table's schema in the commit.
        state: see `loader.materialise.plan.timeline.Lifecycle`.
        loaded: the commit is an initial load.
        log: see Generation.log; empty in commits of versions that did not store it.
        hexed: the rows were staged with `undecodable = "hex"`; False in commits of versions that did not store it.
    """

    seqno: int
    position: str
    source: str
    generation: str
    snapshot: int
    schema_id: str
    state: str = ""
    loaded: bool = False
    log: str = ""
    hexed: bool = False

    @property
    def signature(self) -> dict[str, str]:
        """The summary properties of another commit with the same applied position."""
        return signature(
            seqno=self.seqno,
            position=self.position,
            source=self.source,
            generation=self.generation,
            log=self.log,
            schema_id=self.schema_id,
            state=self.state,
            hexed=self.hexed,
        )

    def approved(self, by: str) -> dict[str, str] | None:
        """Return the summary properties of a commit that a person approved; None if nobody was asked."""
        return {**self.signature, APPROVED_BY: by} if by else None


class TableMetadata:
    """One version of a table's metadata. It must be loaded again to see other commits.

    Args:
        table: Iceberg's `Table`.
        name: the table's name, for errors.
        java: pyspark's gateway. With Jackson, a whole map takes one Java call instead of four calls per entry.
    """

    def __init__(self, table: JavaObject, name: str, java: Any) -> None:
        self._table = table
        self._name = name
        self._java = java
        self._mapper = getattr(java, "com.fasterxml.jackson.databind.ObjectMapper")()

    def _fetched(self, entries: JavaObject) -> dict[str, str]:
        """Return a Java map of strings."""
        fetched: dict[str, str] = json.loads(self._mapper.writeValueAsString(entries))
        return fetched

    @cached_property
    def properties(self) -> dict[str, str]:
        """The table properties."""
        return self._fetched(self._table.properties())

    @property
    def write_order(self) -> tuple[str, ...]:
        """The columns of the table's write order; empty without one."""
        fields, schema = self._table.sortOrder().fields(), self._table.schema()
        return tuple(schema.findColumnName(field.sourceId()) for field in fields)

    @property
    def name(self) -> str:
        """The table's name, without quotes."""
        return self._name

    @property
    def table(self) -> JavaObject:
        """Iceberg's `Table`."""
        return self._table

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The schema as JSON: Iceberg specification, "Appendix C: JSON serialization", "Schemas"."""
        return self._as_json(self._table.schema())

    def _as_json(self, schema: JavaObject) -> dict[str, Any]:
        parser = getattr(self._java, "org.apache.iceberg.SchemaParser")
        found: dict[str, Any] = json.loads(parser.toJson(schema))
        return found

    @property
    def column_names(self) -> set[str]:
        """The names of the columns of the table."""
        return {field["name"] for field in self.schema["fields"]}

    @property
    def column_ids(self) -> dict[int, str]:
        """The names of the columns by their ids in the table."""
        return {field["id"]: field["name"] for field in self.schema["fields"]}

    def renamed_since(self, snapshot: int) -> dict[str, str]:
        """Return the columns that have another name than in a kept snapshot, by their name in it."""
        names = {field["id"]: field["name"] for field in self.schema["fields"]}
        then = self._fields_of(snapshot)
        return {one["name"]: names[one["id"]] for one in then if names.get(one["id"], one["name"]) != one["name"]}

    def dropped_since(self, snapshot: int) -> set[str]:
        """Return the names of the columns of a kept snapshot that the table no longer has."""
        ids = {field["id"] for field in self.schema["fields"]}
        return {one["name"] for one in self._fields_of(snapshot) if one["id"] not in ids}

    def _fields_of(self, snapshot: int) -> list[dict[str, Any]]:
        """Return the columns of a kept snapshot as JSON. They are the table's columns if it does not record them."""
        then = self._table.snapshot(snapshot).schemaId()
        if then is None or then == self._table.schema().schemaId():
            found: list[dict[str, Any]] = self.schema["fields"]
        else:
            found = self._as_json(self._table.schemas()[then])["fields"]
        return found

    @property
    def format_version(self) -> int:
        """The version of Iceberg's table format."""
        return int(self._table.operations().current().formatVersion())

    def make_columns_optional(self, change: JavaObject, added: Mapping[str, str]) -> None:
        """Make all columns optional in a transaction, and add optional columns.

        Args:
            change: the transaction.
            added: by name, the Iceberg type of each new column.
        """
        update = change.updateSchema()
        if self.schema.get("identifier-field-ids"):
            update.setIdentifierFields(getattr(self._java, "java.util.Collections").emptyList())
        for column in self.schema["fields"]:
            if column["required"]:
                update.makeColumnOptional(column["name"])
        types = getattr(self._java, "org.apache.iceberg.types.Types")
        for name, kind in added.items():
            update.addColumn(name, types.fromPrimitiveString(kind))
        update.commit()

    def set_write_order(self, change: JavaObject, columns: Sequence[str]) -> None:
        """Set the write order in a transaction; none without columns."""
        reference = getattr(self._java, "org.apache.iceberg.expressions.Expressions").ref
        first = getattr(self._java, "org.apache.iceberg.NullOrder").NULLS_FIRST
        order = change.replaceSortOrder()
        for name in columns:
            order.asc(reference(name), first)
        order.commit()

    @property
    def is_partitioned(self) -> bool:
        """Whether the table has a partition spec with fields."""
        return bool(self._table.spec().isPartitioned())

    @property
    def partition_fields(self) -> dict[str, str]:
        """The columns by which the table is partitioned now, by the name of the partition field."""
        fields, schema = self._table.spec().fields(), self._table.schema()
        return {field.name(): schema.findColumnName(field.sourceId()) for field in fields}

    @cached_property
    def branches(self) -> dict[str, int]:
        """The head of each branch, by name."""
        return {name: ref.snapshotId() for name, ref in self._refs().items() if ref.isBranch()}

    @cached_property
    def referenced_snapshots(self) -> set[int]:
        """The ids of the snapshots that a branch or a tag points to."""
        return {ref.snapshotId() for ref in self._refs().values()}

    def _refs(self) -> dict[str, JavaObject]:
        refs = self._table.refs()
        return {name: refs[name] for name in _elements(refs.keySet())}

    @cached_property
    def snapshots(self) -> dict[int, int]:
        """The creation time of each snapshot in milliseconds since 1970, by its id, oldest first."""
        return {one.snapshotId(): one.timestampMillis() for one in _elements(self._table.snapshots())}

    @property
    def head(self) -> int | None:
        """The head of main; None if nothing was ever committed to main."""
        return self.branches.get("main")

    def ancestry(self, snapshot: int | None) -> Iterator[Snapshot]:
        """Yield a snapshot and its ancestors, newest first, as far as they are kept."""
        while snapshot is not None:
            found = self._table.snapshot(snapshot)
            if found is None:
                return
            known = Snapshot(found.snapshotId(), found.parentId(), self._fetched(found.summary()))
            yield known
            snapshot = known.parent

    def commit_time(self, snapshot: int) -> datetime | None:
        """Return when a snapshot was committed, in UTC; None if it has expired."""
        found = self._table.snapshot(snapshot)
        return datetime.fromtimestamp(found.timestampMillis() / 1000, UTC) if found is not None else None

    def descends(self, snapshot: int | None, ancestor: int) -> bool:
        """Return whether `ancestor` is the snapshot or one of its kept ancestors."""
        return any(known.id == ancestor for known in self.ancestry(snapshot))

    @cached_property
    def applied(self) -> Applied | None:
        """The applied position. The newest ancestor of main that has one counts: compaction commits without one.

        Raises:
            DataError: the snapshot with the applied position has expired.
        """
        return self.applied_before(None)

    def applied_before(self, seqno: int | None) -> Applied | None:
        """Return the newest applied position before a seqno, or the newest one; None if there is none.

        Raises:
            DataError: the snapshot with that applied position has expired.
        """
        for applied in self.applied_positions():
            if seqno is None or applied.seqno < seqno:
                return applied
        oldest = deque(self.ancestry(self.head), maxlen=1)
        if self.head is not None and (not oldest or oldest[0].parent is not None):
            raise DataError(
                "the snapshot that holds the applied position has expired",
                hint="loader initial-load --table SCHEMA.TABLE --again; other tools must not expire its snapshots",
                table=self._name,
            )
        return None

    def applied_positions(self) -> Iterator[Applied]:
        """Yield the applied position of each commit of the loader in main, newest first, as far as they are kept."""
        for snapshot in self.ancestry(self.head):
            summary = snapshot.summary
            if APPLIED in summary:
                yield Applied(
                    seqno=int(summary[APPLIED]),
                    position=summary[POSITION],
                    source=summary[SOURCE],
                    generation=summary[GENERATION],
                    snapshot=snapshot.id,
                    schema_id=summary[SCHEMA_ID],
                    state=summary.get(STATE, ""),
                    loaded=EXACT_AT_SEQNO in summary,
                    log=summary.get(LOG, ""),
                    hexed=summary.get(UNDECODABLE) == "hex",
                )

    @property
    def ends_inside_merge(self) -> bool:
        """Whether a later commit of the loader's newest merge is missing in main: somebody rolled the table back."""
        for snapshot in self.ancestry(self.head):
            if APPLIED in snapshot.summary:
                return False
            if RUN in snapshot.summary:
                return True
        return False

    def totals(self) -> dict[str, int]:
        """Return the totals in the summary of main's head, such as `total-data-files`, and its number of manifests."""
        head = self._table.currentSnapshot()
        if head is None:
            return {}
        totals = {
            name: int(value) for name, value in self._fetched(head.summary()).items() if name.startswith("total-")
        }
        return totals | {"manifests": head.allManifests(self._table.io()).size()}

    def has_data_files(self, snapshot: int | None) -> bool:
        """Return whether a snapshot may have data files.

        Its manifests tell it. The totals of its summary may be wrong: PyIceberg before 0.9.1 counts only the files that
        an overwrite adds.
        """
        found = self._table.snapshot(snapshot) if snapshot is not None else None
        if found is None:
            return False
        manifests = _elements(found.dataManifests(self._table.io()))
        return any(one.hasAddedFiles() or one.hasExistingFiles() for one in manifests)

    def count_compactable(self, gateway: JVMView, options: Mapping[str, str]) -> int:
        """Return how many data files of main `rewrite_data_files` would rewrite with these options."""
        planner = gateway.org.apache.iceberg.actions.BinPackRewriteFilePlanner(self._table)
        planner.init(dict(options))
        return sum(group.inputFileNum() for group in _elements(planner.plan().groups()))

    def transaction(self) -> JavaObject:
        """Return an Iceberg transaction on the current metadata, see `metadata_of`."""
        return self._table.newTransaction()

    def metadata_of(self, transaction: JavaObject) -> TableMetadata:
        """Return the metadata on which a transaction was made. It may be newer than this one."""
        return TableMetadata(transaction.table(), self._name, self._java)

    @property
    def exact_at(self) -> int:
        """The seqno up to which the initial load may include changes made after its start position.

        It is 0 if the snapshot of the load has expired.
        """
        return self.loaded_until(self.head)

    def loaded_until(self, snapshot: int | None) -> int:
        """Return the seqno up to which the load of a snapshot may include later changes; see `exact_at`."""
        summaries = (known.summary for known in self.ancestry(snapshot))
        return int(next((summary[EXACT_AT_SEQNO] for summary in summaries if EXACT_AT_SEQNO in summary), 0))

    def append(self, branch: str) -> JavaObject:
        """Return an append to a branch."""
        return self._table.newAppend().toBranch(branch)


def commit_properties(change: JavaObject, properties: Mapping[str, str]) -> None:
    """Commit an append or an overwrite, with `properties` in the summary."""
    for name, value in properties.items():
        change.set(name, value)
    change.commit()


def iceberg_types(session: SparkSession, types: Mapping[str, str]) -> dict[str, JavaObject]:
    """Return the Iceberg types of columns.

    Args:
        session: of Spark.
        types: by name, the Spark type of each column.
    """
    java: Any = session._jvm
    columns = ", ".join(f"{identifier(name)} {kind}" for name, kind in types.items())
    struct = getattr(java, "org.apache.spark.sql.types.StructType").fromDDL(columns)
    schema = getattr(java, "org.apache.iceberg.spark.SparkSchemaUtil").convert(struct)
    return {field.name(): field.type() for field in _elements(schema.columns())}


def load_metadata(session: SparkSession, name: str) -> TableMetadata | None:
    """Return the current metadata of the table with this full quoted name; None if there is no such table."""
    java: Any = session._jvm
    try:
        # By its full name a class takes one look-up. By attributes it takes one for each package, in all jars.
        spark_util = getattr(java, "org.apache.iceberg.spark.Spark3Util")
        table = spark_util.loadIcebergTable(session._jsparkSession, name)
    except AnalysisException as error:
        if error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND":
            return None
        raise
    return TableMetadata(table, name.replace("`", ""), java)


def _elements(elements: JavaObject) -> Iterator[Any]:
    """Yield the elements of a Java `Iterable` or `Stream`.

    py4j's iteration ends with an exception of Java, for which pyspark looks up thirty classes and packages
    (pyspark.errors.exceptions.captured).
    """
    iterator = elements.iterator()
    while iterator.hasNext():
        yield iterator.next()
