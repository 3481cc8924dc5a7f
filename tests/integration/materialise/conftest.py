"""The Spark that these tests share with the contract of catalogs."""

from tests.support.spark import jars, lake, new_lake, postgres, settings, spark

__all__ = ["jars", "lake", "new_lake", "postgres", "settings", "spark"]
