"""Documents of table definitions at a position of the log, for logs whose table maps have no column names.

<source>/schemas/<SHA-256>.json                                      all tables at a position; the name is its digest
<source>/schemas/given/<generation>/<seqno, 20 digits>/<schema>/<table>.json    a table as an operator described it
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

from loader.errors import StagedDataError, UsageError
from loader.model.table import TableName, TableSchema
from loader.schema.alteration import Key
from loader.schema.history import KnownTable, SchemaHistory
from loader.staging.document import Document
from loader.staging.layout import encode, schemas_folder
from loader.store.base import ObjectNotFound, Store


class TableDocument(BaseModel):
    """The definition of a table at a position; see KnownTable.

    Attributes:
        table: its name, as `schema.table`.
        definition: as TableSchema.as_dict(); None if the columns are unknown, and `why` says why.
        primary: the key is a primary key, not a unique key.
        others: the table may have unique keys besides its primary key.
        sure: the key is known.
        charset: character set of columns that declare none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    definition: dict[str, Any] | None
    primary: bool = False
    others: bool = True
    sure: bool = True
    charset: str = ""
    why: str = ""

    @classmethod
    def of(cls, name: TableName, known: KnownTable) -> Self:
        """Return the document of a known table."""
        return cls(
            table=str(name),
            definition=known.schema.as_dict() if known.schema else None,
            primary=known.key.primary,
            others=known.key.others,
            sure=known.key.sure,
            charset=known.charset,
            why=known.why,
        )

    @property
    def name(self) -> TableName:
        """The name of the table."""
        return TableName.parse(self.table)

    def known(self) -> KnownTable:
        """Return the known table; the inverse of `of`."""
        schema = TableSchema.from_dict(self.definition) if self.definition else None
        key = Key(schema.key if schema else (), sure=self.sure, primary=self.primary, others=self.others)
        return KnownTable(schema, key, self.charset, self.why)


class Schemas(Document):
    """All tables at a position of the log.

    Attributes:
        tables: in the order of their names.
        charsets: the default character set of each database.
        folds: the server compares table names without case.
    """

    tables: tuple[TableDocument, ...] = ()
    charsets: dict[str, str] = Field(default_factory=dict)
    folds: bool = False

    @classmethod
    def of(cls, tables: Mapping[TableName, KnownTable], charsets: Mapping[str, str], *, folds: bool) -> Self:
        """Return the document of these tables."""
        found = tuple(TableDocument.of(name, tables[name]) for name in sorted(tables))
        return cls(tables=found, charsets=dict(charsets), folds=folds)

    @property
    def digest(self) -> str:
        """The SHA-256 of the document, which is its name."""
        return hashlib.sha256(self.canonical()).hexdigest()

    def history(self, seqno: int, at: str) -> SchemaHistory:
        """Return a history that begins with these tables at the position `at`, whose seqno is `seqno`."""
        history = SchemaHistory(dict(self.charsets), self.folds)
        for table in self.tables:
            history.set_table(seqno, at, table.name, table.known())
        return history


class GivenSchema(Document):
    """A table as an operator described it, from the position `at` on, whose seqno is `seqno`."""

    source: str
    generation: str
    at: str
    seqno: int
    table: TableDocument


class SchemaStore:
    """The schema documents of a source. Each is written once."""

    def __init__(self, store: Store, source: str) -> None:
        self._store = store
        self._source = source
        self._root = schemas_folder(source)

    def put(self, schemas: Schemas) -> str:
        """Store a document and return its digest."""
        self._store.create(self._key(schemas.digest), schemas.canonical())
        return schemas.digest

    def get(self, digest: str) -> Schemas:
        """Return the document with that digest; an empty digest means that no table is known.

        Raises:
            StagedDataError: the document is lost or changed.
        """
        if not digest:
            return Schemas()
        key = self._key(digest)
        try:
            data = self._store.get(key)
        except ObjectNotFound:
            data = b""
        if hashlib.sha256(data).hexdigest() != digest:
            raise StagedDataError(
                "the document of table definitions is lost or changed", hint="restore the object from a backup", key=key
            )
        return Schemas.read(data, key)

    def give(self, given: GivenSchema) -> str:
        """Store a table that an operator described, and return its key.

        Raises:
            UsageError: another definition was given for the same position.
        """
        name, key = given.table.name, self.keep(given)
        if self._store.get(key) != given.canonical():
            raise UsageError(
                "another definition was given for the table at this position",
                hint="if it is wrong, remove the object and run the command again; no interval used it yet",
                table=name,
                position=given.at,
                key=key,
            )
        return key

    def keep(self, given: GivenSchema) -> str:
        """Store the definition of a table unless one was given for the same position; return the key."""
        name = given.table.name
        place = f"{self._given(given.generation)}{given.seqno:020d}"
        key = f"{place}/{encode(name.schema)}/{encode(name.table)}.json"
        self._store.create(key, given.canonical())
        return key

    def given_keys(self, generation: str, start: int, stop: int) -> tuple[str, ...]:
        """Return the keys of definitions given for positions with `start <= seqno < stop`, in order."""
        root = self._given(generation)
        keys = (info.key for info in self._store.list(root))
        return tuple(key for key in keys if start <= int(key.removeprefix(root).split("/")[0]) < stop)

    def given(self, key: str) -> GivenSchema:
        """Return the definition under a key."""
        return GivenSchema.read(self._store.get(key), key)

    def _given(self, generation: str) -> str:
        return f"{self._root}/given/{encode(generation)}/"

    def _key(self, digest: str) -> str:
        return f"{self._root}/{digest}.json"
