"""Parquet files of a table that the loader writes itself, without Spark's writer."""
