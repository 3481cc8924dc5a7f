"""The options a server is started with."""

from __future__ import annotations

from collections.abc import Mapping

from .programs import Kind

# A value of None is an option without a value, such as `skip_log_bin`.
Options = Mapping[str, str | None]

_BOTH: Options = {
    "bind_address": "127.0.0.1",
    "skip_name_resolve": "ON",
    "log_bin": "binlog",
    "server_id": "1",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_row_metadata": "FULL",
    "binlog_checksum": "CRC32",
    "performance_schema": "OFF",
    "innodb_buffer_pool_size": "256M",
    "secure_file_priv": "",  # LOAD DATA and INTO OUTFILE anywhere, which the tests of the staging format use
    # No fsync per commit, which makes commits many times faster. What was committed survives a killed server (with 0
    # instead of 2 it would not: a second of rows would be in the binary log but not in the tables), not a power cut.
    "innodb_flush_log_at_trx_commit": "2",
    "sync_binlog": "0",
}

_OF_KIND: dict[Kind, Options] = {
    "mysql": {"mysqlx": "OFF", "gtid_mode": "ON", "enforce_gtid_consistency": "ON"},
    "mariadb": {"character_set_server": "utf8mb4"},
}


def merged(*layers: Options) -> dict[str, str | None]:
    """Return all options; later layers override earlier ones. `a-b` and `a_b` are one option, as for the server."""
    return {name.replace("-", "_"): value for layer in layers for name, value in layer.items()}


def defaults(kind: Kind) -> Options:
    """Return the default options of a kind of server."""
    return merged(_BOTH, _OF_KIND[kind])


def arguments(options: Options) -> list[str]:
    """Return the options as command-line arguments."""
    return [f"--{name}" if value is None else f"--{name}={value}" for name, value in options.items()]
