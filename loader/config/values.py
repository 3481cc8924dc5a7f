"""Checks of single values of the configuration. Each returns the value, or raises what to write instead."""

from __future__ import annotations

import re

from loader.store.address import ROOTS

_TABLE_PATTERN = re.compile(r"(?:`(?:[^`]|``)+`|[^.`][^.]*)\..+")
"""A schema, quoted with backticks if it has a dot, and after its dot any name of a table, or a pattern of both."""


def check_store_root(value: str) -> str:
    """Return an address of a store without options.

    Raises:
        ValueError: the value is something else.
    """
    scheme, _, place = value.partition("://")
    if scheme not in ROOTS or not place.strip("/") or (scheme == "file" and place[0] != "/"):
        raise ValueError(f"write an address: one of {', '.join(ROOTS.values())}")
    if "@" in value.partition("://")[2].partition("/")[0]:
        raise ValueError("the address of a store must not have a user: credentials come from the environment")
    if "?" in value:
        raise ValueError("write options of the store as keys of staging.s3 or staging.hdfs")
    return value.rstrip("/")


def check_host(value: str) -> str:
    """Return the name or address of a host.

    Raises:
        ValueError: the value is something else.
    """
    if not value or re.search(r"[@/?#\s]", value):
        raise ValueError("write the name or address of a host; user and password have their own keys")
    return value


def check_user(value: str) -> str:
    """Return the name of a user.

    Raises:
        ValueError: it is empty.
    """
    if not value:
        raise ValueError("write the user of the loader")
    return value


def check_connection(value: str) -> str:
    """Return a reference to an Airflow connection.

    Raises:
        ValueError: the value is something else.
    """
    kind, _, name = value.partition(":")
    if kind != "airflow" or not name:
        raise ValueError("write airflow:NAME, the id of an Airflow connection of the type binlog_source")
    return value


def check_host_and_port(value: str) -> str:
    """Return a host with or without a port, or nothing.

    Raises:
        ValueError: the value is something else.
    """
    if value:
        host, port = split_port(value)
        check_host(host)
        if port is not None and not 0 < port < 65536:
            raise ValueError("write a port from 1 to 65535")
    return value


def split_port(value: str) -> tuple[str, int | None]:
    """Return host and port of `host:port`. An IPv6 address has several colons, and no port."""
    found = re.fullmatch(r"([^:]+):(\d+)", value)
    return (found[1], int(found[2])) if found else (value, None)


def check_prefix(value: str) -> str:
    """Return a prefix in a store.

    Raises:
        ValueError: the value is something else.
    """
    if not re.fullmatch(r"(?!\.)[\w.-]*", value, re.ASCII):
        raise ValueError("write a name with letters, digits, dots, - and _ only")
    return value


def check_table_pattern(value: str) -> str:
    """Return a pattern over schema.table. The name of a table can have dots; a schema with a dot is quoted.

    Raises:
        ValueError: the value is something else.
    """
    if not _TABLE_PATTERN.fullmatch(value):
        raise ValueError(
            "write a pattern over schema.table, such as shop.* or shop.order_*; a schema with a dot as `my.schema`.*"
        )
    return value


def check_reference(value: str) -> str:
    """Return a reference to a secret, or nothing.

    Raises:
        ValueError: the value is something else.
    """
    kind, _, name = value.partition(":")
    if value and (kind not in {"env", "file", "airflow"} or not name.strip()):
        raise ValueError("write a reference: env:NAME, file:/path or airflow:connection")
    return value


def check_node_reference(value: str) -> str:
    """Return a reference to a secret that works on every node, or nothing.

    Raises:
        ValueError: the value is something else.
    """
    if value and not value.startswith(("env:", "file:")):
        raise ValueError("write a reference that works on every node: env:NAME or file:/path")
    return check_reference(value)


def check_source_name(name: str) -> str:
    """Return the name of a source. Ids of DAGs and names of folders contain it, and Airflow renders braces.

    Raises:
        ValueError: it is empty, is too long, or has braces or control characters.
    """
    if not re.fullmatch(r"[^{}\x00-\x1f\x7f]{1,100}", name):
        raise ValueError("the name of a source has 1 to 100 characters, without braces and control characters")
    return name


def check_site(url: str) -> str:
    """Return the address of a web site, or nothing.

    Raises:
        ValueError: the value is something else.
    """
    if url and not re.match(r"(https?|file)://[^\s]+$", url):
        raise ValueError("must be an address that begins with https://, http:// or file://")
    return url
