"""The planning of merges is pure: it can be imported where there is no Spark, no driver and no store."""

from __future__ import annotations

import subprocess
import sys

_IMPORT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"pyspark", "py4j", "pymysql", "boto3", "hdfs", "numba"}:
            raise ImportError(name)

sys.meta_path.insert(0, Missing())
import pkgutil
from importlib import import_module

import loader.materialise.plan as package

for module in pkgutil.iter_modules(package.__path__):
    import_module(f"{package.__name__}.{module.name}")
"""


def test_plans_are_made_without_spark_or_a_driver() -> None:
    subprocess.run([sys.executable, "-c", _IMPORT], check=True)
