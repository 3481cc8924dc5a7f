"""What an Iceberg table says of itself: properties, branches, and the applied position in the ancestry of main.

Read through Iceberg's public Java API (`Table`, `Snapshot`), which pyspark's gateway reaches: one load is one version
of the metadata, so all that is read from it belongs together, and no Spark job runs. Metadata tables in SQL give
neither.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from py4j.java_gateway import JavaObject, JVMView
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from loader.errors import DataError

APPLIED = "loader.applied"
POSITION = "loader.position"
SOURCE = "loader.source"
GENERATION = "loader.generation"
RUN = "loader.run"
EXACT_AT = "loader.exact_at"
EXACT_AT_SEQNO = "loader.exact_at_seqno"
SCHEMA_ID = "loader.schema_id"
STATE = "loader.state"


def signature(
    *, seqno: int, position: str, source: str, generation: str, schema_id: str, state: str = ""
) -> dict[str, str]:
    """What the summary of a commit says of where the table stands; `Applied` is what is read from it."""
    return {
        APPLIED: str(seqno),
        POSITION: position,
        SOURCE: source,
        GENERATION: generation,
        SCHEMA_ID: schema_id,
        **({STATE: state} if state else {}),
    }


@dataclass(frozen=True)
class Snapshot:
    """A commit: its id, its parent's (None: the first), and its summary."""

    id: int
    parent: int | None
    summary: Mapping[str, str]

    def count(self, name: str) -> int:
        """A number of the summary; 0 where Iceberg leaves it out."""
        return int(self.summary.get(name, "0"))


@dataclass(frozen=True)
class Applied:
    """A commit of the loader in main: all records up to `seqno` are in the table, whose schema had that id then.

    `state`: see `loader.materialise.plan.timeline.State`. `loaded`: the commit is of an initial load.
    """

    seqno: int
    position: str
    source: str
    generation: str
    snapshot: int
    schema_id: str
    state: str = ""
    loaded: bool = False

    @property
    def signature(self) -> dict[str, str]:
        """Of another commit that leaves the table where it stands."""
        return signature(
            seqno=self.seqno,
            position=self.position,
            source=self.source,
            generation=self.generation,
            schema_id=self.schema_id,
            state=self.state,
        )


class TableMetadata:
    """One version of a table's metadata; load it again to see what others did.

    `mapper`: Jackson's, since to fetch a map whole takes one call of Java and not four for each of its entries.
    """

    def __init__(self, table: JavaObject, name: str, mapper: JavaObject) -> None:
        self._table = table
        self._name = name
        self._mapper = mapper

    def _fetched(self, entries: JavaObject) -> dict[str, str]:
        """A map of texts of Java's."""
        found: dict[str, str] = json.loads(self._mapper.writeValueAsString(entries))
        return found

    @cached_property
    def properties(self) -> dict[str, str]:
        """The table properties."""
        return self._fetched(self._table.properties())

    @property
    def is_sorted(self) -> bool:
        """Whether the table has a write order."""
        return bool(self._table.sortOrder().isSorted())

    @cached_property
    def branches(self) -> dict[str, int]:
        """Head of every branch, by name."""
        refs = self._table.refs()
        return {name: ref.snapshotId() for name, ref in dict(refs).items() if ref.isBranch()}

    @cached_property
    def referenced_snapshots(self) -> set[int]:
        """The snapshots that a branch or a tag points to."""
        return {ref.snapshotId() for ref in dict(self._table.refs()).values()}

    @cached_property
    def snapshots(self) -> dict[int, int]:
        """When each snapshot was made that the table has, by its id, in milliseconds since 1970; oldest first."""
        return {one.snapshotId(): one.timestampMillis() for one in self._table.snapshots()}

    @property
    def head(self) -> int | None:
        """The snapshot that main points to; None when nothing was ever committed to it."""
        return self.branches.get("main")

    def ancestry(self, snapshot: int | None) -> Iterator[Snapshot]:
        """The snapshot and its ancestors, newest first, as far as they are kept."""
        while snapshot is not None:
            found = self._table.snapshot(snapshot)
            if found is None:
                return
            known = Snapshot(found.snapshotId(), found.parentId(), self._fetched(found.summary()))
            yield known
            snapshot = known.parent

    def descends(self, snapshot: int | None, ancestor: int) -> bool:
        """Whether `ancestor` is the snapshot or one of its kept ancestors."""
        return any(known.id == ancestor for known in self.ancestry(snapshot))

    @cached_property
    def applied(self) -> Applied | None:
        """From the newest ancestor of main that carries it: compaction and others commit in between.

        Raises:
            DataError: the ancestry was cut by an expiry before such a snapshot.
        """
        return self.applied_before(None)

    def applied_before(self, seqno: int | None) -> Applied | None:
        """Where the table stood before that seqno, or stands; None if nothing was ever applied then.

        Raises:
            DataError: the ancestry was cut by an expiry before such a snapshot.
        """
        for stood in self.applied_positions():
            if seqno is None or stood.seqno < seqno:
                return stood
        oldest = deque(self.ancestry(self.head), maxlen=1)
        if self.head is not None and (not oldest or oldest[0].parent is not None):
            raise DataError(
                "the snapshot that holds the applied position has expired",
                hint="load the table again; expire snapshots with the loader's maintenance, which keeps that one",
                table=self._name,
            )
        return None

    def applied_positions(self) -> Iterator[Applied]:
        """Where the table stood after each commit of the loader in main, newest first, as far as they are kept."""
        for found in self.ancestry(self.head):
            of = found.summary
            if APPLIED in of:
                yield Applied(
                    int(of[APPLIED]),
                    of[POSITION],
                    of[SOURCE],
                    of[GENERATION],
                    found.id,
                    of[SCHEMA_ID],
                    of.get(STATE, ""),
                    loaded=EXACT_AT_SEQNO in of,
                )

    def totals(self) -> dict[str, int]:
        """What main's head consists of: `total-data-files` and other totals of its summary, and its `manifests`."""
        head = self._table.currentSnapshot()
        if head is None:
            return {}
        totals = {
            name: int(value) for name, value in self._fetched(head.summary()).items() if name.startswith("total-")
        }
        return totals | {"manifests": head.allManifests(self._table.io()).size()}

    def count_compactable(self, gateway: JVMView, options: Mapping[str, str]) -> int:
        """How many data files of main `rewrite_data_files` would rewrite by these options: by its own planner."""
        planner = gateway.org.apache.iceberg.actions.BinPackRewriteFilePlanner(self._table)
        planner.init(dict(options))
        groups = planner.plan().groups().iterator()
        found = 0
        while groups.hasNext():
            found += groups.next().inputFileNum()
        return found

    def transaction(self) -> JavaObject:
        """A transaction of Iceberg on the metadata as it is now, see `seen_by`: its commit fails if there is newer."""
        return self._table.newTransaction()

    def metadata_of(self, transaction: JavaObject) -> TableMetadata:
        """The metadata that a transaction was made on, which may be newer than this."""
        return TableMetadata(transaction.table(), self._name, self._mapper)

    @property
    def exact_at(self) -> int:
        """The seqno up to which the initial load may have seen more than its position; 0 when that is not kept."""
        loads = (found.summary[EXACT_AT_SEQNO] for found in self.ancestry(self.head) if EXACT_AT_SEQNO in found.summary)
        return int(next(loads, 0))

    def append(self, branch: str) -> JavaObject:
        """An append to a branch."""
        return self._table.newAppend().toBranch(branch)


def commit_properties(append: JavaObject, properties: Mapping[str, str]) -> None:
    """Commit an append without files: the rows are as they are, with `properties` in the summary."""
    for name, value in properties.items():
        append.set(name, value)
    append.commit()


def load_metadata(session: SparkSession, name: str) -> TableMetadata | None:
    """The metadata as it is now of the table with this whole, quoted name; None when there is no such table."""
    java: Any = session._jvm
    try:
        table = java.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(session._jsparkSession, name)
    except AnalysisException as error:
        if error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND":
            return None
        raise
    return TableMetadata(table, name.replace("`", ""), java.com.fasterxml.jackson.databind.ObjectMapper())
