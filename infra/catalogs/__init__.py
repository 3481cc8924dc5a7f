"""Servers of Iceberg catalogs on this machine, for the tests: a Hive Metastore and a REST catalog."""
