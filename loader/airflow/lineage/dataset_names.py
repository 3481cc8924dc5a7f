"""Names of datasets by the conventions of OpenLineage (https://openlineage.io/docs/spec/naming). Pure.

A warehouse table has the name of its folder, as Spark and other engines name it. Its name in the catalog is a symlink.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

from loader.materialise.quoting import catalog_name
from loader.materialise.spec import CatalogSettings
from loader.model.table import TableName
from loader.transport.server.address import ServerAddress

_FOLDERS = {"hadoop", "jdbc"}
"""Catalogs that put each table into the folder warehouse/schema/table. Others choose the folder themselves."""
_S3 = {"s3", "s3a", "s3n"}


class DatasetName(NamedTuple):
    """The name of a dataset, which is unique in a namespace."""

    namespace: str
    name: str


def source_dataset(server: ServerAddress, table: TableName) -> DatasetName:
    """Return the name of a table of a MySQL or MariaDB server."""
    return DatasetName(f"mysql://{server.host}:{server.port}", f"{table.schema}.{table.table}")


def warehouse_dataset(catalog: CatalogSettings, table: TableName) -> DatasetName:
    """Return the name of a warehouse table: by its folder, or by its catalog if only the catalog knows the folder."""
    if catalog.type not in _FOLDERS:
        return catalog_dataset(catalog, table)
    parts = urlsplit(catalog.warehouse)
    path = "/".join((parts.path.rstrip("/"), *_names(catalog, table)))
    if parts.scheme in {"", "file"}:
        return DatasetName("file", path)
    if parts.scheme == "hdfs":
        return DatasetName(f"hdfs://{parts.netloc}", path)
    scheme = "s3" if parts.scheme in _S3 else parts.scheme
    return DatasetName(f"{scheme}://{parts.netloc}", path.strip("/"))


def catalog_dataset(catalog: CatalogSettings, table: TableName) -> DatasetName:
    """Return the name of a warehouse table in its catalog."""
    namespace = catalog.uri or (catalog.warehouse if "://" in catalog.warehouse else f"iceberg://{catalog.name}")
    return DatasetName(namespace, ".".join(_names(catalog, table)))


def _names(catalog: CatalogSettings, table: TableName) -> tuple[str, str]:
    return catalog_name(table.schema, catalog.type), catalog_name(table.table, catalog.type)
