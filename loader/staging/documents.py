"""The durable documents of staging: generation, plan and manifest. All are canonical JSON, and they never change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
)

from loader.model.identity import Identity
from loader.model.position import Interval, Position
from loader.model.table import TableName, TableSchema
from loader.staging.document import Document
from loader.staging.document_checks import check_files, check_schemas
from loader.staging.entries import Balance, Entry, SkippedRows, UnloggedChanges
from loader.staging.layout import interval_folder

_Count = Annotated[int, Field(ge=0, lt=2**63)]


class Mark(BaseModel):
    """Identifies a log file and a position in it, even if another file later gets the same name.

    Attributes:
        log: digest of the constant part of the file's first event.
        last: where the last transaction before the position begins; 0 if none is known in the file.
        event: digest of the event at `last`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    log: str
    last: int
    event: str


class Followed(BaseModel):
    """The older generation that a generation continues, and the seqno up to which the older one is valid."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    stop_seqno: int


class TableFilter(BaseModel):
    """The captured tables: shell patterns over `schema.table`. Exclusions override inclusions."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    include: tuple[str, ...]
    exclude: tuple[str, ...] = ()


class Generation(Document):
    """A run of log numbering on one server identity, with the start of its chain of plans.

    Attributes:
        shift: added to the lognum in seqnos, so that seqnos rise over all generations.
        gtids: the GTID set of everything before the start; empty if the server logs no GTIDs.
        mark: of the start.
        follows: the generation that this one continues; None for the first generation.
        schemas: the SHA-256 of the document of all tables at the start, see loader.staging.schemas; empty without one.
        accepted: transactions of the new server that an operator allowed to be skipped; they are part of `gtids`.
        known_until: the position up to which the log contains transactions of `gtids`; empty if it contains none.
        gap: why the log between the older generation and this one was not read, so that all tables must be loaded
            again; empty if nothing lies between.
        tables: after a gap, the captured tables at the start; None in generations of older versions.
    """

    LATER = ("schemas", "accepted", "known_until", "gap", "tables")

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
    tables: TableFilter | None = None

    @property
    def start_position(self) -> Position:
        """The first position of the chain."""
        return Position.parse(self.start)

    @property
    def log(self) -> str:
        """The server, the base name of its log, and the shift. Seqnos can only be compared if these are the same.

        The name of a generation does not tell: an older backup of the staging root goes on with the same names.
        """
        server = self.identity.uuid or self.identity.server_id
        return f"{self.start_position.basename} of {self.identity.kind} {server}, shift {self.shift}"


def _table(value: str) -> str:
    schema, point, table = value.partition(".")
    if not (schema and point and table):
        raise ValueError("write a table as schema.table")
    return value


class Skip(BaseModel):
    """The transactions that are skipped as a whole.

    Attributes:
        server_ids: skips transactions whose events have one of these server ids.
        marker_tables: skips transactions that contain a row event of one of these tables (`schema.table`, no patterns).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    server_ids: tuple[Annotated[int, Field(ge=0, lt=2**32)], ...] = ()
    marker_tables: tuple[Annotated[str, AfterValidator(_table)], ...] = ()

    def markers(self) -> frozenset[TableName]:
        """Return the names of the marker tables."""
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
    """A prepared XA transaction without an outcome: its identifier, and its bytes in a log file.

    `skipped`: the plan of the interval in which it was prepared skipped it. It stays skipped, whatever its outcome.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    xid: str
    file: str
    start: int
    end: int
    skipped: bool = False


class Plan(Document, Shaping):
    """The decision where an interval stops, with everything that shapes the bytes of its files.

    Attributes:
        ambiguous: `TableSchema.as_dict()` of captured tables whose column types the log does not tell completely; see
            read_ambiguous_tables. They are read before the end of the log is. So a table that is altered meanwhile has
            a barrier in this interval, or in another interval of the same backlog. Rows before that barrier get the
            types of `loader.extract.interval_schemas`. A merge accepts only rows of exactly the schema that the table
            has.
        schemas: the SHA-256 of the document of captured tables that are unknown at the interval's start, read at the
            same time as `ambiguous`; empty without one. A definition counts if no statement of the interval concerns
            its table, and only in the last interval of a backlog.
        schemas_at: the end of the log at that time. It equals the stop of the last interval of a backlog only. For
            earlier intervals, a later statement could have altered a table.
        side_effects: names of tables: a statement with one of them may change others; see SideEffects.named.
        side_effects_of_writes: the same for statements that write to one of them; see SideEffects.written.
        read_before: the GTID set of transactions that are skipped because they were read from the server of the older
            generation; empty if the interval contains none.
        folds: the server stores table names in lower case, however a statement writes them (lower_case_table_names).
        unlogged_cascades: the server does not log the rows that foreign keys change; see loader.source.foreign_keys.
        cascading: names of captured tables whose rows foreign keys change, if the server logged that until the previous
            plan and no longer does. Some of their changes in the interval may not be in the log.
        unlogged: captured tables that the server may change without a log entry, read before the end of the log is.
        unlogged_before: the same of the previous plan. A statement of the interval may have changed it since.
        unlogged_at: the end of the log after `unlogged` was read. It equals the stop of the last interval of a backlog
            only.
        side_effects_at: the end of the log after `side_effects` were read; empty if the user may not see all of them.
            It equals the stop of the last interval of a backlog only. For earlier intervals, a later statement could
            have dropped a trigger.
        skips: what operators had skipped when the interval was planned. An extraction adds what they skipped since. Its
            manifest names all of it.
    """

    LATER = (
        *("schemas", "schemas_at", "side_effects", "side_effects_at", "read_before"),
        *("folds", "unlogged_cascades", "cascading", "skips", "side_effects_of_writes"),
        *("unlogged", "unlogged_before", "unlogged_at"),
    )

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    source: str
    generation: str
    identity: Identity
    start: str
    stop: str
    shift: int
    ambiguous: tuple[dict[str, Any], ...] = Field(default=(), alias="untold")  # the name in stored plans
    schemas: str = ""
    schemas_at: str = ""
    side_effects: tuple[str, ...] = ()
    side_effects_of_writes: tuple[str, ...] = ()
    side_effects_at: str = ""
    read_before: str = ""
    folds: bool = False
    unlogged_cascades: bool = False
    cascading: tuple[str, ...] = ()
    unlogged: UnloggedChanges = UnloggedChanges()
    unlogged_before: UnloggedChanges = UnloggedChanges()
    unlogged_at: str = ""
    skips: tuple[SkippedRows, ...] = ()

    def check(self, key: str) -> None:
        """Check that the definitions in `ambiguous` are valid: see Document."""
        self.known()

    def known(self) -> dict[TableName, TableSchema]:
        """Return the tables of `ambiguous` by name."""
        schemas = map(TableSchema.from_dict, self.ambiguous)
        return {schema.name: schema for schema in schemas}

    @property
    def interval(self) -> Interval:
        """The planned range of the log."""
        return Interval(Position.parse(self.start), Position.parse(self.stop))

    @property
    def start_seqno(self) -> int:
        """The seqno of the start, which names the interval."""
        return self.interval.start.seqno(self.shift)

    @property
    def stop_seqno(self) -> int:
        """The seqno of the stop: the applied position of a table that has this interval."""
        return self.interval.stop.seqno(self.shift)


class StagedFile(BaseModel):
    """One CSV part. `key` is relative to the staging root; `bytes` and `sha256` describe the file as it is stored."""

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
        """The table whose staged records the file holds."""
        return TableName(self.schema_name, self.table)

    @property
    def rows(self) -> int:
        """The number of staged records in the file."""
        return self.inserts + self.updates + self.deletes


class Barrier(Entry):
    """A statement that concerns captured tables as a whole, in its order among the staged records.

    It can also be a statement that changed rows without row events in the log, or a ROLLBACK of rows that are in the
    log. Empty `tables` mean that the affected tables are unknown. `database`, `sql_mode`, `mariadb`, `folds`
    and `unlogged_cascades` define how the statement is read: see `schema.statement_reader.table_changes`.
    """

    LATER = ("folds", "unlogged_cascades")

    seqno: int
    position: str
    statement: str
    database: str
    sql_mode: int
    mariadb: bool
    tables: tuple[str, ...]
    folds: bool = False
    unlogged_cascades: bool = False


class IncompleteTable(Entry):
    """A captured table some of whose rows in the interval are not staged, because they cannot be read.

    Attributes:
        seqno, position: transaction and place of the first missing row.
        last_seqno: transaction of the last missing row. Rows between the two may be staged. 0 in manifests of older
            versions, which do not have it: then any row up to the stop of the interval may be missing.
        at: the position from which the columns are unknown and must be described.
        what, why: in the words of an error, including the statement that left the columns unknown.
        hint: what to do before the table is loaded again; empty if describing its columns helps.
        skippable: the row itself cannot be staged, so it helps to skip it.
    """

    LATER = ("hint", "skippable", "last_seqno")

    table: str
    seqno: int
    last_seqno: int = 0
    position: str
    at: str
    what: str
    why: str
    hint: str = ""
    skippable: bool = False

    @property
    def name(self) -> TableName:
        """The name of the table."""
        return TableName.parse(self.table)

    @property
    def skip_command(self) -> str:
        """The command that skips the rows of the table in the transaction of the first missing row."""
        return f"loader skip {self.position} --table {self.name.argument} --reason TEXT"


class Manifest(Document):
    """The commit point of an extraction or of an initial load: the list of its files.

    Attributes:
        held: XA transactions without an outcome at the stop. If one commits in a later interval, its rows are read from
            where it was prepared.
        gtids: the GTID set of everything before the stop.
        mark: of the stop.
        committed_at: the newest commit time in the interval, as staged lines write it; empty if there is none.
        exact_at: of an initial load, the log position after its last read. An initial load has `start == stop`, its
            position P0.
        unlogged: of an initial load, columns that the log omits from updates although they change; None if unknown.
        schemas_after: the SHA-256 of the document of all tables at the stop; empty without one.
        nameless: the log has captured tables without column names.
        given: keys of the definitions that an operator gave for the interval.
        left_out: the incomplete tables, by name. A merge stops each of them before its first missing row.
        adopted: of an initial load without files: another tool loaded the table.
        chunked: of an initial load: it was read in chunks, so it may include changes up to `exact_at`.
        skips: keys of the records of what operators skipped in the interval; see loader.staging.notes.skips.
        undecodable: of an initial load: `hex` if its plan has it, see Shaping. The plan of an interval tells it.
    """

    LATER = ("schemas_after", "nameless", "given", "left_out", "adopted", "chunked", "skips", "undecodable")

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
    adopted: bool = False
    chunked: bool = False
    skips: tuple[str, ...] = ()
    undecodable: Literal["", "hex"] = ""
    loader_version: str

    def check(self, key: str) -> None:
        """Check that schemas match their ids and files lie in the folder of the interval or load: see Document."""
        folder, _, name = key.rpartition("/")
        if name != "manifest.json":  # a backfill, whose files lie in the interval's folder
            folder = interval_folder(self.source, self.generation, self.start_seqno)
        check_files(self.files, check_schemas(self.schemas, key), folder, key)

    def schema_of(self, schema_id: str) -> TableSchema:
        """Return the table schema that files with this schema id were staged with."""
        return TableSchema.from_dict(self.schemas[schema_id])

    def missing_until(self, entry: IncompleteTable) -> int:
        """Return the seqno of the last row of an incomplete table that may be missing."""
        return entry.last_seqno or self.stop_seqno

    def find_incomplete(self, name: TableName, after_seqno: int, last_seqno: int) -> IncompleteTable | None:
        """Return the entry of a table that may lack rows with `after_seqno` < seqno <= `last_seqno`."""
        for entry in self.left_out:
            if entry.name == name and entry.seqno <= last_seqno and after_seqno < self.missing_until(entry):
                return entry
        return None

    def with_backfills(self, filled: Mapping[TableName, Manifest]) -> Manifest:
        """Return this manifest with the backfills of tables that it had left out."""
        files = [file for file in self.files if file.name not in filled]
        return self.model_copy(
            update={
                "files": (*files, *(file for one in filled.values() for file in one.files)),
                "schemas": self.schemas | {key: value for one in filled.values() for key, value in one.schemas.items()},
                "left_out": tuple(one for one in self.left_out if one.name not in filled),
                "skips": tuple(sorted({*self.skips, *(key for one in filled.values() for key in one.skips)})),
            }
        )

    def files_of(self, name: TableName) -> tuple[StagedFile, ...]:
        """Return the files of one table, in log order."""
        return tuple(file for file in self.files if file.name == name)
