"""The warehouse: a Spark session on the configured Iceberg catalog, and the tables that the loader makes there."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, cast

from pyspark.sql import SparkSession

from loader.errors import DataError, RetryableError, UnsupportedError, UsageError
from loader.materialise.iceberg.table_metadata import (
    GENERATION,
    SCHEMA_ID,
    SOURCE,
    Applied,
    TableMetadata,
    load_metadata,
)
from loader.materialise.plan.table_layout import Layout
from loader.materialise.quoting import (
    catalog_name,
    identifier,
    identifiers,
    literal,
    namespace_identifier,
    table_identifier,
)
from loader.materialise.rules import TableRule, rule_of
from loader.materialise.spec import CatalogSettings
from loader.model.table import TableName, TableSchema
from loader.resources import sql
from loader.secret import read_secret

_LOG = logging.getLogger(__name__)

UNLOGGED = "loader.unlogged"
SCHEMA = "loader.schema."

# What made merges cheapest on tables of 1 M to 50 M rows.
_LAYOUT = {
    "format-version": "2",
    "write.delete.mode": "merge-on-read",
    "write.target-file-size-bytes": "67108864",
    "write.parquet.row-group-size-bytes": "16777216",
    # A merge makes some five versions of the metadata file; the last 100 are kept.
    "write.metadata.delete-after-commit.enabled": "true",
}

_SAFE_FOR_HADOOP = {"", "file", "hdfs", "viewfs"}


class Warehouse:
    """The catalog seen by one Spark session of its own.

    Its own, because the snapshot properties of a commit are settings of the session: two tables merged at once in
    one session would sign each other's commits.

    `rules`: the first that matches a table decides what becomes of its rows.

    Raises:
        UsageError: a catalog that cannot decide between two committers, or a secret of it that is not there.
    """

    def __init__(self, spark: SparkSession, catalog: CatalogSettings, rules: Sequence[TableRule] = ()) -> None:
        _check_catalog(catalog)
        self.catalog = catalog
        self._rules = rules
        self.session = spark.newSession()
        for name in catalog.secrets:
            # Spark's event log hides the values of a session's settings only where the application has them too.
            cast("Any", spark.sparkContext)._conf.set(f"{_prefix(catalog)}.{name}", "")
        for name, value in _configuration(catalog).items():
            self.session.conf.set(name, value)
        # A catalog is made on first use from the settings of the session whose statement runs; the Java API that
        # reads the metadata runs in none.
        self.session.sql(f"USE {identifier(catalog.name)}")

    def name(self, table: TableName) -> str:
        """The table's whole name in SQL."""
        return table_identifier(self.catalog.name, table)

    def rule(self, table: TableName) -> TableRule:
        """What the configuration says becomes of the table's rows."""
        return rule_of(self._rules, table)

    def branch_name(self, table: TableName, branch: str) -> str:
        """The name in SQL by which a branch is written."""
        return f"{self.name(table)}.{identifier('branch_' + branch)}"

    def metadata(self, table: TableName) -> TableMetadata | None:
        """Return the table's metadata as it is now; None when there is no such table.

        Raises:
            RetryableError: the catalog did not see the table, though it is there.
        """
        found = load_metadata(self.session, self.name(table))
        if found is None and self.catalog.type == "hadoop" and self._has_files(table):
            found = load_metadata(self.session, self.name(table))  # it may have been made just now
            if found is None:
                raise RetryableError(
                    "the catalog did not see a table that is there",
                    why="its file system failed while the table was looked for",
                    hint="run again",
                    table=table,
                )
        return found

    def _has_files(self, table: TableName) -> bool:
        """Whether the metadata of a table is there, by the file system itself; its errors are those of the JVM.

        A hadoop catalog takes a file system that does not answer for one that has no such table
        (HadoopTableOperations.findVersion).
        """
        java: Any = self.session._jvm
        metadata = (
            f"{self.catalog.warehouse.rstrip('/')}/{catalog_name(table.schema)}/{catalog_name(table.table)}/metadata"
        )
        path = java.org.apache.hadoop.fs.Path(metadata)
        files = path.getFileSystem(cast("Any", self.session)._jsparkSession.sessionState().newHadoopConf())
        # Without one of a version it was never made whole.
        return bool(list(files.globStatus(java.org.apache.hadoop.fs.Path(path, "v*.metadata.json")) or ()))

    def create(self, schema: TableSchema, source: str, generation: str) -> None:
        """Make the table, empty and sorted by its key, unless it exists. Finishes what a killed run began.

        Raises:
            UnsupportedError: column names or types that the warehouse cannot hold, or a rule that does not fit.
        """
        layout = Layout(schema, self.rule(schema.name))
        layout.check()
        name = self.name(schema.name)
        namespace = namespace_identifier(self.catalog.name, schema.name)
        columns = [f"{identifier(column.name)} {column.type}" for column in layout.columns]
        properties = _LAYOUT | _owner_properties(schema, source, generation) | layout.rule.properties
        self._create_namespace(namespace)
        self.session.sql(
            sql("materialise/create_table").format(
                table=name,
                columns=",\n  ".join(columns),
                properties=",\n  ".join(f"{literal(k)} = {literal(v)}" for k, v in properties.items()),
            )
        )
        found = self.metadata(schema.name) if schema.key else None
        # One with commits has its order from them: see `loader.materialise.merge.schema_change`.
        begun = found is not None and found.head is None and found.properties.get(SCHEMA_ID) == schema.schema_id
        if found is not None and begun and not found.is_sorted and found.properties.get(SOURCE) == source:
            self.session.sql(f"ALTER TABLE {name} WRITE ORDERED BY {identifiers(schema.key)}")

    def note_unlogged(self, metadata: TableMetadata, table: TableName, columns: tuple[str, ...]) -> None:
        """Record which columns the log leaves out of updates though they change: see `recorded_unlogged`."""
        text = json.dumps(columns)
        if metadata.properties.get(UNLOGGED) != text:
            self.session.sql(f"ALTER TABLE {self.name(table)} SET TBLPROPERTIES ('{UNLOGGED}' = {literal(text)})")

    def _create_namespace(self, namespace: str) -> None:
        statement = f"CREATE NAMESPACE IF NOT EXISTS {namespace}"
        try:
            self.session.sql(statement)
        except Exception:
            # A JDBC catalog looks first and inserts then: of two at once, one fails, and finds it the second time.
            _LOG.info("creating %s once more", namespace, exc_info=True)
            self.session.sql(statement)


class WarehousePool:
    """Warehouses for work side by side, each used by one thread at a time and then by the next.

    A session has a catalog of its own, and one of a database keeps its connections as long as the process lives.

    Raises:
        UsageError: see Warehouse.
    """

    def __init__(self, spark: SparkSession, catalog: CatalogSettings, rules: Sequence[TableRule] = ()) -> None:
        self._make = partial(Warehouse, spark, catalog, rules)
        self._idle: SimpleQueue[Warehouse] = SimpleQueue()
        self._idle.put(self._make())

    @contextmanager
    def borrow(self) -> Iterator[Warehouse]:
        """One that nobody else uses meanwhile."""
        try:
            warehouse = self._idle.get_nowait()
        except Empty:
            warehouse = self._make()
        try:
            yield warehouse
        finally:
            self._idle.put(warehouse)


def recorded_schema(metadata: TableMetadata, table: TableName, schema_id: str = "") -> TableSchema:
    """The schema that the table has, or the one that it had by that id.

    Raises:
        DataError: the table was not made by the loader.
    """
    known = schema_id or (metadata.applied.schema_id if metadata.applied else metadata.properties.get(SCHEMA_ID, ""))
    text = metadata.properties.get(SCHEMA + known)
    if text is None:
        raise DataError(
            "the warehouse's table was not made by the loader", hint=_foreign_table_hint(table), table=table
        )
    schema = TableSchema.from_dict(json.loads(text))
    if schema.schema_id != known:
        raise DataError(
            "a property of the warehouse's table is not what the loader wrote",
            why=f"the schema under {SCHEMA}{known} has the id {schema.schema_id}",
            hint=f"roll the table's metadata back to a version before the change, or {table.load_again}",
            table=table,
        )
    return schema


def schema_property(schema: TableSchema) -> tuple[str, str]:
    """The table property by which `recorded_schema` finds a schema again."""
    return SCHEMA + schema.schema_id, json.dumps(schema.as_dict(), sort_keys=True)


def recorded_unlogged(metadata: TableMetadata, schema: TableSchema) -> tuple[str, ...] | None:
    """Columns that the log leaves out of updates though they change; None when that is not known of this schema."""
    text = metadata.properties.get(UNLOGGED)
    names = None if text is None else tuple(json.loads(text))
    known = {column.name for column in schema.columns}
    return names if names is not None and known.issuperset(names) else None


def check_owner(metadata: TableMetadata, table: TableName, source: str, generations: Sequence[str]) -> Applied | None:
    """The applied position of a table that is known to be of this source and one of these generations of its log.

    None when nothing is applied. The last of the generations is the one that is worked on.

    Raises:
        DataError: the table is somebody else's, or of another generation, whose positions mean something else.
    """
    owner = metadata.properties.get(SOURCE)
    if owner != source:
        what = f"of source {owner!r}" if owner else "not made by the loader"
        raise DataError(f"the warehouse's table is {what}", hint=_foreign_table_hint(table), table=table, source=source)
    applied = metadata.applied
    stands = applied.generation if applied else metadata.properties.get(GENERATION)
    if stands not in generations:
        raise UnsupportedError(
            f"the table stands in generation {stands!r} of the log",
            hint=f"drop it in the warehouse, then: {table.load_again}",
            table=table,
            generation=generations[-1],
        )
    return applied


def _foreign_table_hint(table: TableName) -> str:
    return f"drop or rename {table} in the warehouse, or use another catalog or warehouse for this source"


def _owner_properties(schema: TableSchema, source: str, generation: str) -> dict[str, str]:
    name, text = schema_property(schema)
    return {SOURCE: source, GENERATION: generation, name: text, SCHEMA_ID: schema.schema_id}


def _check_catalog(catalog: CatalogSettings) -> None:
    scheme = catalog.warehouse.partition("://")[0] if "://" in catalog.warehouse else ""
    if catalog.type == "hadoop" and scheme not in _SAFE_FOR_HADOOP:
        raise UsageError(
            f"a hadoop catalog on {scheme}:// loses commits",
            why="it commits by a rename that fails when the name exists, which an object store does not have",
            hint="use a jdbc, rest, glue or hive catalog",
            warehouse=catalog.warehouse,
        )


def _prefix(catalog: CatalogSettings) -> str:
    return f"spark.sql.catalog.{catalog.name}"


def _configuration(catalog: CatalogSettings) -> dict[str, str]:
    prefix = _prefix(catalog)
    conf = {prefix: "org.apache.iceberg.spark.SparkCatalog"}
    conf |= {f"{prefix}.{name}": value for name, value in catalog.properties.items()}
    conf |= {f"{prefix}.{name}": read_secret(reference) for name, reference in catalog.secrets.items()}
    conf |= {f"{prefix}.type": catalog.type, f"{prefix}.warehouse": catalog.warehouse}
    conf |= {f"{prefix}.uri": catalog.uri} if catalog.uri else {}
    return conf | {
        # Another process may commit at any time: every statement must see the table as it is.
        f"{prefix}.cache-enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        # `${...}` in a key or a name is text.
        "spark.sql.variable.substitute": "false",
        "spark.sql.ansi.enabled": "true",
    }
