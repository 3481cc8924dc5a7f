"""The configuration of the loader in a benchmark."""

from __future__ import annotations

from pathlib import Path

from infra.servers import Server
from tests.bench.session import jars


def write_config(
    folder: Path,
    server: Server,
    *,
    schema: str = "bench",
    tables: str = "*",
    master: str = "local[2]",
    shared: bool = False,
    files: bool = True,
) -> Path:
    """Write a configuration with staging and warehouse in a folder, and return its path.

    Args:
        folder: where to write.
        server: with the schema.
        schema: the only source, and its schema on the server.
        tables: pattern of the tables of the schema.
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
{source_table(schema, server, f"{schema}.{tables}")}
transport = "{"file" if files else "network"}"
log_files = "{server.log_dir}"
"""
    )
    return file


def source_table(name: str, server: Server, tables: str) -> str:
    """Return the table of a source, with a pattern of its tables."""
    return f"""
[sources.{name}]
host = "{server.host}"
port = {server.port}
user = "{server.user}"
tables.include = ["{tables}"]
"""
