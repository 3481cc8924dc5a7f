"""The warehouse: a Spark session on the configured Iceberg catalog, and the loader's tables in it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
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

# These settings made merges cheapest on tables of 1 M to 50 M rows.
_LAYOUT = {
    "format-version": "2",
    "write.delete.mode": "merge-on-read",
    "write.target-file-size-bytes": "67108864",
    "write.parquet.row-group-size-bytes": "16777216",
    # A merge writes some five versions of the metadata file; the last 100 are kept.
    "write.metadata.delete-after-commit.enabled": "true",
}

_WAP = ("spark.wap.id", "spark.wap.branch")
"""Settings of an application by which Iceberg writes to another branch than the statement says, or to none."""

_SAFE_FOR_HADOOP = {"", "file", "hdfs", "viewfs"}


class Warehouse:
    """The catalog in a separate Spark session.

    The summary properties of a commit are settings of the session. So two tables merged in one session would sign each
    other's commits.

    Args:
        spark: any session of the application.
        catalog: the catalog.
        rules: table rules. The first rule that matches a table counts.

    Raises:
        UsageError: the catalog does not support concurrent commits, or one of its secrets is missing.
    """

    def __init__(self, spark: SparkSession, catalog: CatalogSettings, rules: Sequence[TableRule] = ()) -> None:
        _check_catalog(catalog)
        self.catalog = catalog
        self._rules = rules
        self._namespaces: set[str] = set()  # those that this object has created or found
        self.session = spark.newSession()
        for name in catalog.secrets:
            # Spark's event log hides values of session settings only if the application has settings of the same names.
            cast("Any", spark.sparkContext)._conf.set(f"{_prefix(catalog)}.{name}", "")
        for name, value in _configuration(catalog).items():
            self.session.conf.set(name, value)
        for name in _WAP:
            self.session.conf.unset(name)
        # Spark creates a catalog on first use, from the settings of the session of the statement. The Java API that
        # reads metadata has no session.
        self.session.sql(f"USE {identifier(catalog.name)}")

    def name(self, table: TableName) -> str:
        """Return the table's full name in SQL."""
        return table_identifier(self.catalog.name, self.catalog.type, table)

    def rule(self, table: TableName) -> TableRule:
        """Return the configured rule of a table."""
        return rule_of(self._rules, table)

    def branch_name(self, table: TableName, branch: str) -> str:
        """Return the name of a branch in SQL, to write to."""
        return f"{self.name(table)}.{identifier('branch_' + branch)}"

    def rollback_statement(self, table: TableName, snapshot: int) -> str:
        """Return the statement that rolls the table back to a snapshot."""
        procedure = f"{identifier(self.catalog.name)}.system.rollback_to_snapshot"
        return f"CALL {procedure}({literal(self.name(table))}, {snapshot})"

    def metadata(self, table: TableName) -> TableMetadata | None:
        """Return the table's current metadata; None if there is no such table.

        Raises:
            RetryableError: the catalog did not find the table, although it exists.
        """
        found = load_metadata(self.session, self.name(table))
        if found is None and self.catalog.type == "hadoop" and self._has_files(table):
            found = load_metadata(self.session, self.name(table))  # it may have been created in between
            if found is None:
                raise RetryableError(
                    "the catalog did not find a table that exists",
                    why="its file system failed during the look-up",
                    hint="run again",
                    table=table,
                )
        return found

    def _has_files(self, table: TableName) -> bool:
        """Return whether the file system has metadata files of a table. Errors are raised as the JVM's.

        A hadoop catalog treats a file system that does not answer like a missing table
        (HadoopTableOperations.findVersion).
        """
        hadoop_path = getattr(cast("Any", self.session._jvm), "org.apache.hadoop.fs.Path")
        names = [catalog_name(name, self.catalog.type) for name in (table.schema, table.table)]
        path = hadoop_path("/".join([self.catalog.warehouse.rstrip("/"), *names, "metadata"]))
        files = path.getFileSystem(cast("Any", self.session)._jsparkSession.sessionState().newHadoopConf())
        # A table without metadata of a version was never created completely.
        return bool(list(files.globStatus(hadoop_path(path, "v*.metadata.json")) or ()))

    def create(
        self, schema: TableSchema, source: str, generation: str, unlogged: tuple[str, ...] | None = None
    ) -> None:
        """Create the table, empty and sorted by its key, unless it exists. Complete a table of a killed run.

        Args:
            schema: of the table.
            source: the owner of the table.
            generation: of the source's log.
            unlogged: see `recorded_unlogged`.

        Raises:
            UnsupportedError: the warehouse cannot hold a column name or a type, or the rule does not fit the table.
        """
        layout = Layout(schema, self.rule(schema.name))
        layout.check()
        name = self.name(schema.name)
        namespace = namespace_identifier(self.catalog.name, self.catalog.type, schema.name)
        columns = [f"{identifier(column.name)} {column.type}" for column in layout.columns]
        properties = table_properties(layout, source, generation, unlogged)
        self._create_namespace(namespace)
        self.session.sql(
            sql("materialise/create_table").format(
                table=name,
                columns=",\n  ".join(columns),
                properties=",\n  ".join(f"{literal(k)} = {literal(v)}" for k, v in properties.items()),
            )
        )
        if schema.key and self._lacks_order(schema, source):
            self.session.sql(f"ALTER TABLE {name} WRITE ORDERED BY {identifiers(layout.key)}")

    def _lacks_order(self, schema: TableSchema, source: str) -> bool:
        """Return whether the table was created for this schema and has no write order yet.

        A table with commits has the order that they set: see `loader.materialise.merge.schema_change`.
        """
        metadata = self.metadata(schema.name)
        if metadata is None or metadata.head is not None or metadata.write_order:
            return False
        recorded = metadata.properties.get(SOURCE), metadata.properties.get(SCHEMA_ID)
        return recorded == (source, schema.schema_id)

    def layout(self, metadata: TableMetadata, table: TableName) -> Layout:
        """Return the layout of the table now.

        Raises:
            DataError: the table was not made by the loader, or see `check_file_format`.
            UsageError: a column has the name that an earlier version of the loader gave it.
        """
        layout = Layout(recorded_schema(metadata, table), self.rule(table))
        check_file_format(metadata, layout)
        names = {column.name: layout.name(column.name) for column in layout.schema.columns}
        mapped = {column: name for column, name in names.items() if column != name}
        present = metadata.column_names if mapped else set()
        for column, name in mapped.items():
            if column in present and name not in present:
                raise UsageError(
                    "a column of the warehouse's table has the name that an earlier version of the loader gave it",
                    why=f"column {column} of the source is {name} in the warehouse now: see the page Upgrade",
                    hint=f"in Spark SQL: ALTER TABLE {self.name(table)} RENAME COLUMN {identifier(column)} "
                    f"TO {identifier(name)}",
                    table=table,
                    column=column,
                )
        return layout

    def check_column_names(self, metadata: TableMetadata, layout: Layout) -> None:
        """Check that the columns have the names that they had at the applied position, so that rows can be changed.

        Raises:
            DataError: they do not.
        """
        names, table = {column.name for column in layout.columns}, layout.schema.name
        since = metadata.renamed_since(metadata.applied.snapshot) if metadata.applied else {}
        if renamed := {old: new for old, new in since.items() if old in names}:
            raise DataError(
                "columns of the warehouse's table have other names than at its applied position",
                why=f"{', '.join(f'{old} is now {new}' for old, new in renamed.items())}: the table was rolled back to"
                " a snapshot from before they were renamed, or another tool renamed them",
                hint=layout.replacement,
                table=table,
            )

    def note_unlogged(self, metadata: TableMetadata, table: TableName, columns: tuple[str, ...]) -> None:
        """Record the columns that change although the log leaves them out of updates: see `recorded_unlogged`."""
        text = json.dumps(columns)
        if metadata.properties.get(UNLOGGED) != text:
            self.session.sql(f"ALTER TABLE {self.name(table)} SET TBLPROPERTIES ('{UNLOGGED}' = {literal(text)})")

    def _create_namespace(self, namespace: str) -> None:
        if namespace in self._namespaces:
            return
        statement = f"CREATE NAMESPACE IF NOT EXISTS {namespace}"
        try:
            self.session.sql(statement)
        except Exception:
            # A JDBC catalog looks up the namespace, then inserts it. If two runs do so at once, one fails and retries.
            _LOG.info("creating %s again", namespace, exc_info=True)
            self.session.sql(statement)
        self._namespaces.add(namespace)


class WarehousePool:
    """Warehouses for concurrent work. Each warehouse is used by one thread at a time.

    A session has its own catalog, and a JDBC catalog keeps its connections as long as the process lives. So warehouses
    are reused.

    Raises:
        UsageError: see Warehouse.
    """

    def __init__(self, spark: SparkSession, catalog: CatalogSettings, rules: Sequence[TableRule] = ()) -> None:
        self._make = partial(Warehouse, spark, catalog, rules)
        self._idle: SimpleQueue[Warehouse] = SimpleQueue()
        self._idle.put(self._make())

    @contextmanager
    def borrow(self) -> Iterator[Warehouse]:
        """Give a warehouse that no other thread uses."""
        try:
            warehouse = self._idle.get_nowait()
        except Empty:
            warehouse = self._make()
        try:
            yield warehouse
        finally:
            self._idle.put(warehouse)


def recorded_schema(metadata: TableMetadata, table: TableName, schema_id: str = "") -> TableSchema:
    """Return the schema of the table, or an earlier schema by its id.

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
            "a property of the warehouse's table was changed after the loader wrote it",
            why=f"the schema under {SCHEMA}{known} has the id {schema.schema_id}",
            hint=f"roll the table's metadata back to a version before the change, or {table.load_again}",
            table=table,
        )
    return schema


def schema_property(schema: TableSchema) -> tuple[str, str]:
    """Return the table property that records a schema for `recorded_schema`: its name and value."""
    return SCHEMA + schema.schema_id, json.dumps(schema.as_dict(), sort_keys=True)


def recorded_unlogged(metadata: TableMetadata, schema: TableSchema) -> tuple[str, ...] | None:
    """Return the columns that change although the log leaves them out of updates; None if unknown for this schema."""
    text = metadata.properties.get(UNLOGGED)
    names = None if text is None else tuple(json.loads(text))
    known = {column.name for column in schema.columns}
    return names if names is not None and known.issuperset(names) else None


def check_file_format(metadata: TableMetadata, layout: Layout) -> None:
    """Check that the table's file format keeps the values of its columns.

    Iceberg writes the DATETIME 1969-12-31 23:59:59.5 to ORC files as 1970-01-01 00:00:00.5 (seen with 1.12.0).

    Raises:
        UnsupportedError: it does not.
    """
    table = layout.schema.name
    times = [column.name for column in layout.schema.columns if column.type == "datetime" and column.size]
    if times and metadata.properties.get("write.format.default", "").lower() == "orc":
        raise UnsupportedError(
            "the table's files are ORC, which changes times with fractions",
            why="of the last second before 1970, Iceberg writes times that are a second later",
            hint=f"in Spark SQL: ALTER TABLE {metadata.name} SET TBLPROPERTIES ('write.format.default' = 'parquet');"
            f" then: {layout.replacement}",
            table=table,
            column=times[0],
        )


def check_owner(metadata: TableMetadata, table: TableName, source: str, logs: Mapping[str, str]) -> Applied | None:
    """Return the applied position of a table, or None, after a check of its source and generation.

    Args:
        metadata: of the table.
        table: the table.
        source: the source that the table must belong to.
        logs: by name, `Generation.log` of the generations that its applied position may belong to. The last one is the
            current generation.

    Raises:
        DataError: the table belongs to another source, generation or log, or is another table of the source. Positions
            of other generations are not comparable.
    """
    owner = metadata.properties.get(SOURCE)
    if owner != source:
        what = f"of source {owner!r}" if owner else "not made by the loader"
        raise DataError(f"the warehouse's table is {what}", hint=_foreign_table_hint(table), table=table, source=source)
    if (held := recorded_schema(metadata, table).name) != table:
        raise DataError(
            f"the warehouse's table holds {held}",
            why=f"the catalog does not distinguish the names {held} and {table}",
            hint="exclude one of the two tables; a database of a JDBC catalog can be created with a collation that"
            " distinguishes all names, such as utf8mb4_0900_bin of MySQL",
            table=table,
        )
    applied = metadata.applied
    generation = applied.generation if applied else metadata.properties.get(GENERATION)
    if generation is None or generation not in logs:
        raise UnsupportedError(
            f"the table's applied position is in generation {generation!r} of the log",
            hint=f"drop it in the warehouse, then: {table.load_again}",
            table=table,
            generation=list(logs)[-1],
        )
    if applied and applied.log not in ("", logs[generation]):
        raise DataError(
            "the table's applied position is not in the log of this source",
            why=f"it is {applied.position} in the log {applied.log}, and generation {generation} of the staging root is"
            f" the log {logs[generation]}: an older backup of the root was restored, or it is another root",
            hint="if staging.root was changed or restored, set it back; otherwise drop the table in the warehouse,"
            f" then: {table.load_again}",
            table=table,
        )
    return applied


def _foreign_table_hint(table: TableName) -> str:
    return f"drop or rename {table} in the warehouse, or use another catalog or warehouse for this source"


def table_properties(
    layout: Layout, source: str, generation: str, unlogged: tuple[str, ...] | None = None
) -> dict[str, str]:
    """Return the properties of a new table; see `Warehouse.create`."""
    name, text = schema_property(layout.schema)
    owner = {SOURCE: source, GENERATION: generation, name: text, SCHEMA_ID: layout.schema.schema_id}
    return _LAYOUT | owner | layout.rule.properties | ({} if unlogged is None else {UNLOGGED: json.dumps(unlogged)})


def _check_catalog(catalog: CatalogSettings) -> None:
    scheme = catalog.warehouse.partition("://")[0] if "://" in catalog.warehouse else ""
    if catalog.type == "hadoop" and scheme not in _SAFE_FOR_HADOOP:
        raise UsageError(
            f"a hadoop catalog on {scheme}:// loses commits",
            why="a hadoop catalog needs a rename that fails if the name exists; object stores have no such rename",
            hint='set type = "jdbc", "rest", "glue" or "hive" in [warehouse]',
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
        # Another process may commit at any time. So every statement must read the current metadata.
        f"{prefix}.cache-enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        # A `${...}` in a key or a name must stay text.
        "spark.sql.variable.substitute": "false",
        "spark.sql.ansi.enabled": "true",
        # Other values of the application would change what the statements mean.
        "spark.sql.ansi.doubleQuotedIdentifiers": "false",
        "spark.sql.caseSensitive": "false",
        "spark.sql.files.ignoreCorruptFiles": "false",
        "spark.sql.files.ignoreMissingFiles": "false",
        "spark.sql.parser.escapedStringLiterals": "false",
        "spark.sql.sources.partitionOverwriteMode": "static",
        "spark.sql.storeAssignmentPolicy": "ANSI",
        "spark.sql.timestampType": "TIMESTAMP_LTZ",
    }
