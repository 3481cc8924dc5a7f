"""Files of a warehouse on a local disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.spark import NewLake

pytestmark = pytest.mark.integration


def waited_for(process: int) -> int:
    """Return the page faults of all ended children of a process, so that each child counts."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[8])


@pytest.mark.parametrize("kind", ["hadoop", "sqlite"])
def test_a_commit_starts_no_other_program(kind: str, new_lake: NewLake, spark: SparkSession) -> None:
    lake = new_lake(kind)
    java = spark._jvm.ProcessHandle.current().pid()
    faults = []
    for table in ("a", "b", "c"):
        before = waited_for(java)
        lake.sql(f"CREATE TABLE {lake.catalog.name}.shop.{table} (id INT) USING iceberg")
        lake.sql(f"INSERT INTO {lake.catalog.name}.shop.{table} VALUES (1), (2)")
        faults.append(waited_for(java) - before)
    assert min(faults) == 0  # a Python worker of an earlier test may end during one of them


def test_files_and_folders_have_the_usual_permissions(spark: SparkSession, tmp_path: Path) -> None:
    hadoop = spark._jvm.org.apache.hadoop.fs
    conf = spark._jsc.hadoopConfiguration()
    files = hadoop.FileSystem.get(spark._jvm.java.net.URI(tmp_path.as_uri()), conf)
    assert files.getClass().getName() == "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"
    files.mkdirs(hadoop.Path(f"{tmp_path}/folder"))
    files.create(hadoop.Path(f"{tmp_path}/folder/file")).close()
    assert oct((tmp_path / "folder").stat().st_mode) == "0o40755"
    assert oct((tmp_path / "folder" / "file").stat().st_mode) == "0o100644"
    assert (tmp_path / "folder" / ".file.crc").exists()
