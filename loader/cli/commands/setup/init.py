"""The command that writes a first configuration and prints what the server needs."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from loader.cli.commands.setup.config import SCHEMA_FILE, schema_text
from loader.cli.commands.setup.doctor import doctor
from loader.cli.commands.setup.jars import needed
from loader.cli.session import Session
from loader.errors import UsageError
from loader.resources import config_file, sql

_TEMPLATE = Path(__file__).with_name("loader.toml.template")
_ADDRESSES = {
    "jdbc": "jdbc:postgresql://host/db",
    "rest": "https://host/catalog",
    "hive": "thrift://host:9083",
}
_SETTINGS = ("binlog_format = ROW", "binlog_row_image = FULL", "binlog_row_metadata = FULL")


@dataclass(frozen=True)
class _Answers:
    """The answers that a configuration is made of. `tables` are patterns over schema.table."""

    name: str
    host: str
    port: int
    user: str
    password: str
    tables: tuple[str, ...]
    staging: str
    warehouse: str
    catalog: str
    uri: str

    def text(self, jars: str) -> str:
        """Return the configuration file. Strings and lists of JSON are also valid TOML."""
        values = {key: json.dumps(value, ensure_ascii=False) for key, value in vars(self).items()}
        values |= {"jars": json.dumps(jars), "section": _key(self.name), "uri_mark": "" if self.uri else "# "}
        return Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(values)


def _refuse_existing(context: typer.Context, force: bool) -> bool:
    """Refuse to replace a configuration, before any question is asked.

    Raises:
        UsageError: there is a configuration already.
    """
    session: Session | None = context.obj
    if session is None:  # the arguments are only parsed
        return force
    file = config_file(session.file)
    if file.exists() and not force:
        raise UsageError(
            "the configuration exists already",
            hint="to add a source, add a section [sources.NAME] to the file; to replace the file with all its sources:"
            " loader init --force",
            file=file,
        )
    return force


def init(
    context: typer.Context,
    host: Annotated[
        str, typer.Option(prompt="Host name of the server", metavar="HOST", help="Host of the MySQL or MariaDB server.")
    ],
    user: Annotated[
        str, typer.Option(prompt="User on the server", metavar="USER", help="User of the loader on the server.")
    ] = "loader",
    password: Annotated[
        str,
        typer.Option(
            prompt="Where its password is (env:NAME, file:/path or airflow:connection)",
            metavar="REFERENCE",
            help="Reference to the password: env:NAME, file:/path or airflow:connection; never the password itself.",
        ),
    ] = "env:LOADER_PASSWORD",  # noqa: S107 - a reference
    tables: Annotated[
        str,
        typer.Option(
            prompt="Tables (patterns over schema.table, with commas)",
            metavar="PATTERNS",
            help="Tables to capture, such as shop.*,crm.order_*.",
        ),
    ] = "shop.*",
    staging: Annotated[
        str,
        typer.Option(
            prompt="Staging folder (file:///..., s3://..., hdfs://...)",
            metavar="ADDRESS",
            help="Folder of staged files.",
        ),
    ] = "file:///data/staging",
    warehouse: Annotated[
        str,
        typer.Option(prompt="Warehouse folder of Iceberg", metavar="FOLDER", help="Folder of the warehouse tables."),
    ] = "/data/warehouse",
    catalog: Annotated[
        str,
        typer.Option(
            prompt="Catalog (hadoop, jdbc, rest, hive, glue)", metavar="KIND", help="Kind of the Iceberg catalog."
        ),
    ] = "hadoop",
    uri: Annotated[
        str, typer.Option(metavar="URI", help="Address of the catalog, such as jdbc:postgresql://host/db.")
    ] = "",
    port: Annotated[int, typer.Option(metavar="PORT", help="Port of the server.")] = 3306,
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the source in the configuration.")] = "shop",
    jars: Annotated[
        str, typer.Option(metavar="FOLDER", help="Folder with the jars of Spark; by default they are downloaded.")
    ] = "",
    mirror: Annotated[str, typer.Option(metavar="URL", help="Maven repository to download jars from.")] = "",
    _force: Annotated[
        bool,
        typer.Option("--force", callback=_refuse_existing, is_eager=True, help="Replace an existing configuration."),
    ] = False,
    check: Annotated[bool, typer.Option(help="Run loader doctor at the end.")] = True,
) -> None:
    """Download the jars, write a commented loader.toml, print what the server needs, and run loader doctor."""
    session: Session = context.obj
    file = config_file(session.file)
    if catalog in _ADDRESSES and not uri:
        uri = typer.prompt(f"Address of the catalog, such as {_ADDRESSES[catalog]}")
    patterns = tuple(one.strip() for one in tables.split(",") if one.strip())
    answers = _Answers(name, host, port, user, password, patterns, staging, warehouse, catalog, uri)
    _write(file, answers, jars, mirror)
    session.output.line(f"written: {file}")
    for line in needed_on_server(user, patterns):
        session.output.line(line)
    if check:
        doctor(context, name)


def _write(file: Path, answers: _Answers, jars: str, mirror: str) -> None:
    """Write the configuration, after it was validated and its jars were downloaded.

    Raises:
        LoaderError: an answer is invalid, or the jars cannot be downloaded.
    """
    from loader.config.file import parse_config
    from loader.jars.resolve import spark_jars

    config = parse_config(tomllib.loads(answers.text("")), file)
    file.parent.mkdir(parents=True, exist_ok=True)
    folder = jars or str(spark_jars(tuple(needed(config)), mirror=mirror))
    file.write_text(answers.text(folder), encoding="utf-8")
    file.with_name(SCHEMA_FILE).write_text(schema_text(), encoding="utf-8")


def needed_on_server(user: str, patterns: tuple[str, ...]) -> list[str]:
    """Return SQL for an administrator of the server: settings of the log, the user, and its grants."""
    account = f"'{user}'@'%'"
    schemas = dict.fromkeys(pattern.partition(".")[0] for pattern in patterns)
    named = [schema if any(sign in schema for sign in "*?[") else f"`{schema}`" for schema in schemas]
    replication, _ = sql("source/grants").replace("'loader'@'%'", account).split(";")
    grants = [f"GRANT SELECT ON {'*' if '`' not in schema else schema}.* TO {account};" for schema in named]
    return [
        "",
        "-- Run this on the server as an administrator, where loader doctor reports that it is missing:",
        *(f"SET GLOBAL {setting};" for setting in _SETTINGS),
        f"CREATE USER {account} IDENTIFIED BY '...';",
        f"{replication.strip()};",
        *dict.fromkeys(grants),
        "",
    ]


def _key(name: str) -> str:
    """Return a name as a key of TOML."""
    plain = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if plain else json.dumps(name, ensure_ascii=False)
