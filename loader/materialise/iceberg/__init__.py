"""All access to Iceberg: catalog, table metadata, branches and commits."""
