"""The configuration of the loader in a benchmark."""

from __future__ import annotations

from pathlib import Path

from infra.servers import Server
from tests.bench.session import jars


def write_config(
    folder: Path,
    server: Server,
    *,
    tables: str = "*",
    master: str = "local[2]",
    shared: bool = False,
    files: bool = True,
) -> Path:
    """Write a configuration with staging and warehouse in a folder, and return its path.

    Args:
        folder: where to write.
        server: with the schema `bench`.
        tables: pattern of the tables of `bench`.
        master: of Spark.
        shared: processes of other machines read and write the staging folder.
        files: the log is read from the server's files, not by the network.
    """
    file = folder / "loader.toml"
    file.write_text(
        f"""
[staging]
root = "file://{folder}/staging"
local = {{ shared = {str(shared).lower()} }}
[warehouse]
path = "{folder}/warehouse"
[spark]
master = "{master}"
jars = "{jars()}"
[sources.bench]
host = "{server.host}"
port = {server.port}
user = "{server.user}"
tables.include = ["bench.{tables}"]
transport = "{"file" if files else "network"}"
log_files = "{server.log_dir}"
"""
    )
    return file
