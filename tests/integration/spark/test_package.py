"""The package for executors runs by itself, in an empty environment."""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from loader import __version__
from loader.cli.commands.setup.warm import compile_kernels
from loader.spark.package.archive import write_package

pytestmark = pytest.mark.integration

TASKS = """
import json
import loader
import loader.binlog.crypto.cipher_blocks, loader.extract.range_task, loader.initial_load.result_set.reader
import loader.native_collapse.key_index, loader.reader.stats, loader.transport.network
import boto3, hdfs, numpy, pandas, pyarrow, sqlite3, ssl
from loader.binlog.native.compiler import kernel_files
from loader.resources import sql

print(json.dumps({
    "modules": [loader.__file__, numpy.__file__, ssl.__file__],
    "version": loader.__version__,
    "kernels": sorted({str(file.parents[1]) for file in kernel_files().values()}),
    "grants": sql("source/grants"),
}))
"""


@pytest.mark.sweep
def test_it_runs_where_nothing_is_installed(tmp_path: Path) -> None:
    compile_kernels()
    write_package(tmp_path / "loader.tar.gz")
    home = tmp_path / "unpacked"
    shutil.unpack_archive(tmp_path / "loader.tar.gz", home)
    with tarfile.open(tmp_path / "loader.tar.gz") as archive:
        names = archive.getnames()
    assert len(names) == len(set(names))
    done = subprocess.run(
        [str(home / "bin" / "python"), "-c", TASKS],
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [Path(module).is_relative_to(home) for module in found["modules"]] == [True] * 3
    assert found["version"] == __version__
    assert [Path(folder).name for folder in found["kernels"]] == ["_kernels"]  # none was compiled
    assert "GRANT" in found["grants"]
    assert not (home / "cache").exists()
