"""Everything that speaks to Iceberg: catalog, tables, branches, commits."""
