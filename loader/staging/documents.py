"""The durable documents of staging: generation, plan, manifest, published record. Canonical JSON.

None is ever changed, but for a published record that a quarantined table is missing from: it is completed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from loader.model.identity import Identity
from loader.model.position import Interval, Position
from loader.model.table import TableName, TableSchema
from loader.staging.document import Document
from loader.staging.document_checks import check_files, check_schemas
from loader.staging.layout import interval_folder

_Count = Annotated[int, Field(ge=0, lt=2**63)]


class Mark(BaseModel):
    """By what a log file is known again at a position in it, though another one has its name.

    Attributes:
        log: digest of what of the file's first event stays the same.
        last: where the last transaction before the position begins, 0 when none is known in the file.
        event: digest of the event there.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    log: str
    last: int
    event: str


class Followed(BaseModel):
    """The generation that another one goes on from, and the seqno up to which it counts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    stop_seqno: int


class Generation(Document):
    """A run of log numbering on one server identity, and where its chain of plans begins.

    Attributes:
        shift: added to the lognum in seqnos, so that they rise over all generations.
        gtids: the GTID set of everything before the start; empty where the server logs no GTIDs.
        mark: of the start.
        follows: None for the first.
        schemas: the SHA-256 of the document of all tables at the start, see loader.staging.schemas; empty without one.
        accepted: transactions of the new server that an operator lets be passed over; part of `gtids`.
        known_until: the position up to which the log has transactions of `gtids`; empty where it has none.
        gap: why the log between the generation before and this one was not read, and all tables were to be loaded
            again; empty where nothing lies between.
    """

    LATER = ("schemas", "accepted", "known_until", "gap")

    source: str
    name: str
    identity: Identity
    start: str
    shift: int = 0
    gtids: str = ""
    mark: Mark
    follows: Followed | None = None
    schemas: str = ""
    accepted: str = ""
    known_until: str = ""
    gap: str = ""

    @property
    def start_position(self) -> Position:
        """First position of the chain."""
        return Position.parse(self.start)


class TableFilter(BaseModel):
    """Which tables are captured: shell patterns over `schema.table`, exclusions last."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    include: tuple[str, ...]
    exclude: tuple[str, ...] = ()


def _table(value: str) -> str:
    schema, point, table = value.partition(".")
    if not (schema and point and table):
        raise ValueError("write a table as schema.table")
    return value


class Skip(BaseModel):
    """Which transactions are skipped whole.

    Attributes:
        server_ids: those that come from these servers, by the server id of their events.
        marker_tables: those with a row event of one of these tables (`schema.table`, no patterns), wherever in them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    server_ids: tuple[Annotated[int, Field(ge=0, lt=2**32)], ...] = ()
    marker_tables: tuple[Annotated[str, AfterValidator(_table)], ...] = ()

    def markers(self) -> frozenset[TableName]:
        """The names of the marker tables."""
        return frozenset(map(TableName.parse, self.marker_tables))


class Shaping(BaseModel):
    """Options of a source that shape staged bytes. Each plan holds them, so that extracting it again gives equal bytes.

    Attributes:
        tables: the captured tables.
        skip: the skipped transactions.
        update_rows: which row images of an update are staged: only the one after it, or both.
        undecodable: what happens to bytes that are invalid in the character set of their column: the table stops with
            an error, or the bytes are staged as hex.
        part_bytes: bytes of log per part; each part becomes one file per table and schema.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tables: TableFilter
    skip: Skip = Skip()
    update_rows: Literal["after", "both"] = "after"
    undecodable: Literal["error", "hex"] = "error"
    part_bytes: int = 64 * 1024 * 1024

    @property
    def hex_fallback(self) -> bool:
        """Whether undecodable bytes are staged as hex."""
        return self.undecodable == "hex"

    @property
    def both_images(self) -> bool:
        """Whether both row images of an update are staged."""
        return self.update_rows == "both"

    def shaping(self) -> dict[str, Any]:
        """Return the options by name, as arguments of another value of this kind."""
        return {name: getattr(self, name) for name in Shaping.model_fields}


class HeldGroup(BaseModel):
    """A prepared XA transaction without an outcome yet: its identifier, and its bytes in a log file.

    `skipped`: by the plan in whose interval it was prepared. It stays so, whatever its outcome.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    xid: str
    file: str
    start: int
    end: int
    skipped: bool = False


class Plan(Document, Shaping):
    """The decision of an interval's stop, and all that shapes the bytes of its files.

    Attributes:
        untold: `TableSchema.as_dict()` of captured tables of which the log does not tell all; see read_untold. They are
            read before the end of the log is. So a table that is altered meanwhile has a barrier in the interval, or in
            one of several that are planned at once: rows before it get the types of `loader.extract.interval_schemas`.
            A merge takes only rows of exactly the schema that the table has.
        schemas: the SHA-256 of the document of captured tables that nothing before the interval tells of, read like
            those of `untold`; empty without one. They count where no statement of the interval is about them.
        schemas_at: the end of the log then, up to which these are known to be so.
        side_effects: names of tables that change others when they are changed; see loader.source.side_effects.
        read_before: the GTID set of transactions that are skipped, as they were read from the server of the generation
            before; empty where the interval has none.
        folds: the server stores names of tables in lower case, however a statement has them (lower_case_table_names).
        side_effects_at: the end of the log after they were read; empty where the user may not see all of them. It is
            the stop of the last one of several intervals that are planned at once: of earlier ones, later statements
            could have dropped a trigger.
    """

    LATER = ("schemas", "schemas_at", "side_effects", "side_effects_at", "read_before", "folds")

    source: str
    generation: str
    identity: Identity
    start: str
    stop: str
    shift: int
    untold: tuple[dict[str, Any], ...] = ()
    schemas: str = ""
    schemas_at: str = ""
    side_effects: tuple[str, ...] = ()
    side_effects_at: str = ""
    read_before: str = ""
    folds: bool = False

    def check(self, key: str) -> None:
        """See Document: what the log does not tell of tables can be so."""
        self.known()

    def known(self) -> dict[TableName, TableSchema]:
        """The tables of `untold` by name."""
        schemas = map(TableSchema.from_dict, self.untold)
        return {schema.name: schema for schema in schemas}

    @property
    def interval(self) -> Interval:
        """The planned range of the log."""
        return Interval(Position.parse(self.start), Position.parse(self.stop))

    @property
    def start_seqno(self) -> int:
        """The interval's name."""
        return self.interval.start.seqno(self.shift)

    @property
    def stop_seqno(self) -> int:
        """The seqno that a table has applied once this interval is in it."""
        return self.interval.stop.seqno(self.shift)


class StagedFile(BaseModel):
    """One CSV part. `key` is relative to the staging root; `bytes` and `sha256` are of the file as stored."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    schema_name: str
    table: str
    schema_id: str
    inserts: _Count
    updates: _Count
    deletes: _Count
    bytes: _Count
    sha256: str
    min_seqno: _Count
    max_seqno: _Count

    @property
    def name(self) -> TableName:
        """The table whose records the file holds."""
        return TableName(self.schema_name, self.table)

    @property
    def rows(self) -> int:
        """Records in the file."""
        return self.inserts + self.updates + self.deletes


class Balance(BaseModel):
    """Every event and row of the interval, accounted for: read = staged + held + skipped under a reason.

    `row_events_held` are those of XA transactions that were prepared in the interval; `row_events_released` were held
    in it or before, and are staged since their XA COMMIT is in it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    events: int
    bytes: int
    transactions: int
    event_types: dict[str, int]
    row_events_staged: int
    row_events_held: int = 0
    row_events_released: int = 0
    skipped: dict[str, int]


class _Entry(BaseModel):
    """A part of a document; `LATER` as in Document."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    LATER: ClassVar[tuple[str, ...]] = ()

    @model_serializer(mode="wrap")
    def _serialized(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        found: dict[str, Any] = whole(self)
        return {name: value for name, value in found.items() if value or name not in self.LATER}


class Barrier(_Entry):
    """A statement that changed captured tables as a whole, in its order among the records (empty `tables`: unknown).

    It can also be one that changed rows which the log does not have, or a ROLLBACK of rows that it does have.

    `database`, `sql_mode`, `mariadb` and `folds` say how it was read: see `schema.statement_reader.table_changes`.
    """

    LATER = ("folds",)

    seqno: int
    position: str
    statement: str
    database: str
    sql_mode: int
    mariadb: bool
    tables: tuple[str, ...]
    folds: bool = False


class IncompleteTable(_Entry):
    """A captured table of which rows of the interval are not staged: they cannot be read there.

    Attributes:
        seqno, position: of the transaction and the place of the first such row.
        at: from where on its columns are not known, and are to be said.
        what, why: as an error says it, with the statement that does not tell the columns.
        hint: what to do before the table is loaded again; empty where it helps to say its columns.
    """

    LATER = ("hint",)

    table: str
    seqno: int
    position: str
    at: str
    what: str
    why: str
    hint: str = ""

    @property
    def name(self) -> TableName:
        """The table."""
        return TableName.parse(self.table)


class Manifest(Document):
    """The commit point of an extraction or of an initial load: the list of its files.

    `held`: XA transactions without an outcome at the stop: should one commit in the next interval, its rows are read
    from where it was prepared. `gtids`: the set of everything before the stop. `mark`: of the stop. `committed_at`: the
    newest time of commit of a transaction in the interval, as staged lines have it; empty when there is none. An
    initial load has `start == stop == ` its position P0, `exact_at` the log position after its last read, and
    `unlogged`, columns that the log leaves out of updates though they change (None: it is not known of which).
    `schemas_after`: the SHA-256 of the document of all tables at the stop; empty without one. `nameless`: the log has
    captured tables without names of columns. `given`: keys of the schemas that a person gave for it. `left_out`: of
    these tables rows are missing, which stops them there, in the order of their names.
    """

    LATER = ("schemas_after", "nameless", "given", "left_out")

    source: str
    generation: str
    identity: Identity
    start: str
    stop: str
    start_seqno: int
    stop_seqno: int
    files: tuple[StagedFile, ...]
    schemas: dict[str, dict[str, Any]]
    barriers: tuple[Barrier, ...] = ()
    held: tuple[HeldGroup, ...] = ()
    balance: Balance | None = None
    gtids: str = ""
    mark: Mark | None = None
    committed_at: str = ""
    exact_at: str = ""
    exact_at_seqno: int = 0
    unlogged: tuple[str, ...] | None = None
    schemas_after: str = ""
    nameless: bool = False
    given: tuple[str, ...] = ()
    left_out: tuple[IncompleteTable, ...] = ()
    loader_version: str

    def check(self, key: str) -> None:
        """See Document: schemas are of their ids, and files lie in the folder of the interval or load."""
        folder, _, name = key.rpartition("/")
        if name != "manifest.json":  # of a table that was staged later, whose files lie beside those of the others
            folder = interval_folder(self.source, self.generation, self.start_seqno)
        check_files(self.files, check_schemas(self.schemas, key), folder, key)

    def schema_of(self, schema_id: str) -> TableSchema:
        """The table schema that files of this id were staged with."""
        return TableSchema.from_dict(self.schemas[schema_id])

    def completed(self, filled: Mapping[TableName, Manifest]) -> Manifest:
        """This manifest with all of the tables that it left out and that were staged later."""
        files = [file for file in self.files if file.name not in filled]
        return self.model_copy(
            update={
                "files": (*files, *(file for one in filled.values() for file in one.files)),
                "schemas": self.schemas | {key: value for one in filled.values() for key, value in one.schemas.items()},
                "left_out": tuple(one for one in self.left_out if one.name not in filled),
            }
        )

    def of_table(self, name: TableName) -> tuple[StagedFile, ...]:
        """Files of one table, in log order."""
        return tuple(file for file in self.files if file.name == name)


class Loaded(Document):
    """A note that an initial load is in a warehouse: it was seen there, or committed.

    Attributes:
        warehouse: see `CatalogSettings.place`.
    """

    source: str
    table: str
    position: str
    warehouse: str


class PublishedTable(BaseModel):
    """A table as it stood when an interval was published."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    snapshot: int
    applied: int


class Purged(Document):
    """A note that the files of an interval were removed, or are being; `archive`: the prefix they were copied to."""

    source: str
    generation: str
    start_seqno: int
    archive: str = ""


class Published(Document):
    """A consistent view: the snapshot of each table once every table had the interval ending at `stop_seqno`.

    Attributes:
        behind: tables that are quarantined and so not part of it, with the seqno up to which each has the log (0: that
            is not known).
        made: tables that a statement in the log made, with the seqno right before it, and those that one took away,
            with 0; None in records of versions that did not note it.
        committed_at: the newest time of commit of a transaction up to `stop`, as staged lines have it; empty where
            there is none, and in records of versions that did not note it.
    """

    source: str
    generation: str
    stop: str
    stop_seqno: int
    tables: dict[str, PublishedTable]
    behind: dict[str, int] = Field(default_factory=dict)
    made: dict[str, int] | None = None
    committed_at: str = ""

    def canonical(self) -> bytes:
        """See Document; `made` is left out where it is not known, and not where it is empty."""
        unknown = {"made"} if self.made is None else set()
        data = self.model_dump(mode="json", exclude=unknown | (set() if self.committed_at else {"committed_at"}))
        return json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()

    def completed(self, later: Published) -> Published:
        """This record with those of its tables behind that a later record of the same interval has."""
        caught_up = {name: table for name, table in later.tables.items() if name in self.behind}
        behind = {name: seqno for name, seqno in self.behind.items() if name not in caught_up}
        return self.model_copy(update={"tables": self.tables | caught_up, "behind": behind})

    def lacking(self, manifest: Manifest) -> set[str]:
        """The tables behind that still need an interval: files of it, or rows that were left out of them."""
        needs = [(str(file.name), file.max_seqno) for file in manifest.files if file.rows]
        needs += [(one.table, one.seqno) for one in manifest.left_out]
        return {name for name, seqno in needs if seqno > self.behind.get(name, seqno)}
