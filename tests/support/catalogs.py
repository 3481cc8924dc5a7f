"""Servers of catalogs, started once in a session by the first test that asks, and the loader's settings for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import pymysql
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.table import StaticTable, Table

from infra.catalogs.hive import COLUMN_TYPES, run_hive
from infra.catalogs.rest import run_rest
from infra.postgres import PASSWORD, PostgresServer, execute, run_postgres
from infra.servers.start import start_server
from loader.materialise.spec import CatalogSettings
from tests.support.sweep import IN_SWEEP

QUICK = ["hadoop", "sqlite", "postgresql"]
"""Catalogs of `make test`, in suites whose subject is not the catalog."""
CATALOGS = [*QUICK, "hdfs", "mysql", "rest", "hive"] if IN_SWEEP else QUICK
SERVERS = ["postgresql", "mysql", "rest", "hive"]
"""Catalogs of a server that commits; those of `make test` start within seconds."""

_SQLITE = "busy_timeout=60000&journal_mode=WAL"
_MYSQL_DATABASE, _LOOSE = "iceberg", "loose"

# The driver's state of a broken connection, which Iceberg does not know as such.
_MYSQL_PROPERTIES = {"retryable_status_codes": "08S01"}


@dataclass(frozen=True)
class CatalogServer:
    """A running server of a kind of catalog.

    Attributes:
        kind: of the catalog.
        uri: its address for Iceberg.
        commit: bytes that only a request for a commit has, of all requests.
        kill: kills it, as a power cut would.
        start: starts it again, on its port with its data.
        database: the JDBC address of the metastore's database.
    """

    kind: str
    uri: str
    commit: bytes
    kill: Callable[[], None]
    start: Callable[[], None]
    database: str = ""

    @property
    def port(self) -> int:
        return urlsplit(self.uri.removeprefix("jdbc:")).port or 0

    def settings(self, folder: Path, port: int = 0) -> CatalogSettings:
        """An empty catalog whose warehouse is in a folder; by way of another port, if one is given."""
        uri = self.uri.replace(f":{self.port}", f":{port or self.port}")
        warehouse = f"file://{folder}/warehouse"
        if self.kind in {"rest", "hive"}:
            return CatalogSettings(name=f"lake_{folder.name}", type=self.kind, uri=uri, warehouse=warehouse)
        password = folder / "password"
        password.write_text(f"{PASSWORD}\n")
        database = urlsplit(uri.removeprefix("jdbc:")).path.strip("/")
        properties = {} if self.kind == "postgresql" else _MYSQL_PROPERTIES
        # The name of the catalog is in every row of its database, and so are the tables of other tests.
        return CatalogSettings(
            name=f"lake_{folder.name}",
            type="jdbc",
            uri=uri,
            warehouse=warehouse,
            properties={**properties, "jdbc.user": database, "jdbc.schema-version": "V1"},
            secrets={"jdbc.password": f"file:{password}"},
        )


def sqlite_settings(folder: Path) -> CatalogSettings:
    return CatalogSettings(
        name=f"lake_{folder.name}",
        type="jdbc",
        uri=f"jdbc:sqlite:{folder}/catalog.db?{_SQLITE}",
        warehouse=f"file://{folder}/warehouse",
        properties={"jdbc.schema-version": "V1"},
    )


def table_from_outside(server: CatalogServer | None, catalog: CatalogSettings, schema: str, table: str) -> Table:
    """The table as PyIceberg finds it, or as the catalog's database does where PyIceberg lacks a driver."""
    if catalog.type == "hadoop":
        hint = Path(catalog.warehouse.removeprefix("file://"), schema, table, "metadata", "version-hint.text")
        return StaticTable.from_metadata(str(hint.with_name(f"v{hint.read_text().strip()}.metadata.json")))
    if server is None:  # SQLite
        path = catalog.uri.removeprefix("jdbc:sqlite:").partition("?")[0]
        return load_catalog(catalog.name, type="sql", uri=f"sqlite:///{path}").load_table((schema, table))
    if server.kind == "rest":
        found = load_catalog("outside", type="rest", uri=server.uri, warehouse=catalog.warehouse)
        return found.load_table((schema, table))
    if server.kind == "mysql":
        uri = f"mysql+pymysql://iceberg:{PASSWORD}@127.0.0.1:{server.port}/{_MYSQL_DATABASE}"
        return load_catalog(catalog.name, type="sql", uri=uri).load_table((schema, table))
    return StaticTable.from_metadata(_location_in_postgres(server, catalog, schema, table))


def _location_in_postgres(server: CatalogServer, catalog: CatalogSettings, schema: str, table: str) -> str:
    if server.kind == "hive":
        query = f"""
            SELECT p."PARAM_VALUE" FROM "DBS" d JOIN "TBLS" t USING ("DB_ID") JOIN "TABLE_PARAMS" p USING ("TBL_ID")
            WHERE d."NAME" = {_text(schema)} AND t."TBL_NAME" = {_text(table)} AND p."PARAM_KEY" = 'metadata_location'
        """
        ((location,),) = execute(server.database, query)
        return location
    query = f"""
        SELECT metadata_location FROM iceberg_tables WHERE catalog_name = {_text(catalog.name)}
        AND table_namespace = {_text(schema)} AND table_name = {_text(table)}
    """
    ((location,),) = execute(server.uri, query)
    return location


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A server for the whole session; each lake has a catalog of its own name in it."""
    with run_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def postgres(postgres_server: PostgresServer) -> str:
    """The JDBC address of the server."""
    return postgres_server.uri


@pytest.fixture(scope="session")
def postgresql_catalog(postgres_server: PostgresServer) -> CatalogServer:
    stop, start = postgres_server.stop, postgres_server.start
    return CatalogServer("postgresql", postgres_server.uri, b".metadata.json", stop, start)


@pytest.fixture(scope="session")
def mysql_catalog() -> Iterator[CatalogServer]:
    """A JDBC catalog on MySQL, in a database that compares names byte by byte."""
    with ExitStack() as cleanup:
        folder = cleanup.enter_context(TemporaryDirectory(prefix="loader-catalog-"))
        server = start_server("mysql", Path(folder), {})
        cleanup.callback(server.kill)
        with pymysql.connect(host=server.host, port=server.port, user="root") as connection:
            cursor = connection.cursor()
            for database, collation in ((_MYSQL_DATABASE, "utf8mb4_0900_bin"), (_LOOSE, "utf8mb4_0900_ai_ci")):
                cursor.execute(f"CREATE DATABASE {database} CHARACTER SET utf8mb4 COLLATE {collation}")
                # A user who sees the tables of another catalog gets none: Iceberg looks for them in all databases.
                cursor.execute(f"CREATE USER {database} IDENTIFIED BY %s", (PASSWORD,))
                cursor.execute(f"GRANT ALL ON {database}.* TO {database}")
        # Without TLS, so that a test can see which request is a commit.
        uri = (
            f"jdbc:mysql://{server.host}:{server.port}/{_MYSQL_DATABASE}?sslMode=DISABLED&allowPublicKeyRetrieval=true"
        )
        yield CatalogServer("mysql", uri, b".metadata.json", server.kill, server.start)


@pytest.fixture(scope="session")
def loose_mysql_catalog(mysql_catalog: CatalogServer) -> CatalogServer:
    """The same in a database with the default collation, which does not distinguish cases and accents."""
    return replace(mysql_catalog, uri=mysql_catalog.uri.replace(f"/{_MYSQL_DATABASE}?", f"/{_LOOSE}?"))


@pytest.fixture(scope="session")
def rest_catalog() -> Iterator[CatalogServer]:
    with TemporaryDirectory(prefix="loader-rest-") as folder, run_rest(Path(folder)) as server:
        yield CatalogServer("rest", server.uri, b'"requirements"', server.kill, server.start)


@pytest.fixture(scope="session")
def hive_catalog(postgres_server: PostgresServer) -> Iterator[CatalogServer]:
    with TemporaryDirectory(prefix="loader-hive-") as folder, run_hive(Path(folder), postgres_server.uri) as server:
        yield CatalogServer("hive", server.uri, b".metadata.json", server.kill, server.start, server.database)


@pytest.fixture(scope="session")
def strict_hive_catalog(postgres_server: PostgresServer) -> Iterator[CatalogServer]:
    """A metastore with the default of the setting that the loader needs otherwise."""
    settings = {COLUMN_TYPES: "true"}
    with (
        TemporaryDirectory(prefix="loader-hive-") as folder,
        run_hive(Path(folder), postgres_server.uri, "strict", settings) as server,
    ):
        yield CatalogServer("hive", server.uri, b".metadata.json", server.kill, server.start, server.database)
