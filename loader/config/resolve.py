"""From the configuration to the settings of a source, which the use cases take."""

from __future__ import annotations

import glob
from collections.abc import Callable

from loader.config import values
from loader.config.sections import Spark, Staging, Warehouse
from loader.config.source import Source
from loader.errors import UsageError
from loader.extract.spec import TransportSettings
from loader.materialise.spec import CatalogSettings
from loader.settings import Retention, SourceSettings
from loader.spark.settings import SparkSettings
from loader.staging.documents import TableFilter
from loader.store.address import signed_address
from loader.store.spark_settings import hadoop_user, spark_conf, trusted_authorities
from loader.transport.keys import KeyFiles
from loader.transport.server.address import ServerAddress

FindServer = Callable[[str], ServerAddress]


def outside_airflow(reference: str) -> ServerAddress:
    """Refuse to find a server: only tasks and pages of Airflow read its connections.

    Raises:
        UsageError: always.
    """
    raise UsageError(
        "the server of the source is known to Airflow only",
        why=f'server = "{reference}" names an Airflow connection, which a command outside Airflow cannot read',
        hint="use the DAGs and the status pages of Airflow; or set host, user and password of the source instead of"
        " server",
        key="server",
    )


def server_of(source: Source, find_server: FindServer) -> ServerAddress:
    """Return the address of the server of a source.

    Raises:
        UsageError: the server is in an Airflow connection, and cannot be found.
    """
    if source.server:
        return find_server(source.server).model_copy(update={"read_timeout_seconds": source.read_timeout_seconds})
    return ServerAddress(
        host=source.host,
        port=source.port,
        user=source.user,
        password=source.password,
        tls=source.tls,
        tls_ca=source.tls_ca,
        tls_cert=source.tls_cert,
        tls_key=source.tls_key,
        server_public_key=source.server_public_key,
        read_timeout_seconds=source.read_timeout_seconds,
    )


def _replica(source: Source, server: ServerAddress) -> ServerAddress | None:
    """Return the address of the server that initial loads read, if it is not the source."""
    if not source.read_from:
        return None
    host, port = values.split_port(source.read_from)
    return server.model_copy(update={"host": host, "port": port or server.port})


def _captured(source: Source) -> TableFilter:
    """Return the filter of captured tables without marker tables, whose transactions are skipped."""
    markers = map(glob.escape, source.skip.marker_tables)
    return TableFilter(include=source.tables.include, exclude=(*source.tables.exclude, *markers))


def source_settings(
    name: str, source: Source, sections: tuple[Staging, Warehouse, Spark], find_server: FindServer
) -> SourceSettings:
    """Return the settings of a source from its section and those that all sources share.

    Raises:
        UsageError: the server cannot be found.
    """
    staging, catalog, spark = sections
    server = server_of(source, find_server)
    return SourceSettings(
        name=name,
        server=server,
        transport=TransportSettings(
            kind=source.transport,
            server=server,
            path=source.log_files,
            keys=KeyFiles(keyring=source.keyring, keys=source.keys),
            archive=source.log_archive,
        ),
        tables=_captured(source),
        rules=source.rules,
        skip=source.skip,
        update_rows=source.update_rows,
        undecodable=source.undecodable,
        part_bytes=source.part_bytes,
        chunk_rows=source.chunk_rows,
        read_from=_replica(source, server),
        initial_load=source.initial_load,
        interval=source.interval,
        run_minutes=source.run_minutes,
        min_runway_hours=source.min_runway_hours,
        maintain=source.maintain,
        auto_load=source.auto_load,
        auto_load_bytes=source.auto_load_bytes,
        staging_root=signed_address(staging.address, staging.signing_key),
        retention=Retention(keep=staging.keep, archive=staging.archive),
        catalog=CatalogSettings(
            name=catalog.name,
            type=catalog.type,
            warehouse=catalog.path,
            uri=catalog.uri,
            properties=catalog.properties,
            secrets=catalog.secrets,
        ),
        spark=SparkSettings(
            master=spark.master,
            jars=spark.jars,
            package=spark.package,
            python=spark.python,
            conf=spark_conf(staging.address) | spark.conf,
            hadoop_user=hadoop_user(staging.address),
            tls_ca=trusted_authorities(staging.address),
            results=signed_address(staging.address, staging.signing_key),
        ),
    )
