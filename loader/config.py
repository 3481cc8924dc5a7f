"""The configuration: one TOML file. It is validated as a whole; errors name the key and the fix.

The file never holds secrets, only references to them: `env:NAME`, `file:/path`, `airflow:connection`.
"""

from __future__ import annotations

import glob
import os
import re
import shlex
import tomllib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from loader import config_values
from loader.config_keys import describe_unknown_key
from loader.dag_settings import DagSettings
from loader.errors import UsageError
from loader.extract.spec import TransportSettings
from loader.initial_load.server.read_limits import ReadLimits
from loader.materialise.rules import TableRule
from loader.materialise.spec import CatalogSettings
from loader.resources import CONFIG_VARIABLE, config_file
from loader.secret import holds_secret, names_secret
from loader.settings import AUTO_LOAD_BYTES, IntervalLimits, Maintain, Retention, SourceSettings, parse_keep
from loader.spark.submit import SparkSettings
from loader.staging.documents import Skip, TableFilter
from loader.staging.layout import encode
from loader.store.address import HdfsOptions, LocalOptions, S3Options, signed_address
from loader.store.spark_settings import hadoop_user, spark_conf, trusted_authorities
from loader.transport.keys import KeyFiles
from loader.transport.server.address import ServerAddress, check_tls

VARIABLE = CONFIG_VARIABLE


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


_Pattern = Annotated[str, AfterValidator(config_values.check_table_pattern)]


_KEEP_SCHEMA = {"type": "string", "pattern": r"^(forever|\d+[dh])$"}


class Staging(_Section):
    """Where staged files and plans are stored, with the options of the store: LocalOptions, S3Options, HdfsOptions.

    Attributes:
        keep: how long the files of an interval stay after every table has applied it: `forever`, `30d`, `12h`.
        archive: a prefix in the root. Files are moved to it then, instead of being removed.
        signing_key: reference to the key that signs plans and manifests: `env:NAME` or `file:/path`. Every node that
            runs a part of the loader needs the key.
    """

    root: Annotated[str, AfterValidator(config_values.check_store_root)]
    keep: Annotated[timedelta | None, BeforeValidator(parse_keep), WithJsonSchema(_KEEP_SCHEMA)] = None
    archive: Annotated[str, AfterValidator(config_values.check_prefix)] = ""
    signing_key: Annotated[str, AfterValidator(config_values.check_node_reference)] = ""
    local: LocalOptions = LocalOptions()
    s3: S3Options = S3Options()
    hdfs: HdfsOptions = HdfsOptions()

    @model_validator(mode="after")
    def _options_of_the_root(self) -> Staging:
        for name in self.model_fields_set & {"local", "s3", "hdfs"}:
            scheme = "file" if name == "local" else name
            if not self.root.startswith(f"{scheme}://"):
                raise ValueError(f"{name} is only for a root {scheme}://")
        return self

    @property
    def address(self) -> str:
        """Return the root with its options, in the form of open_store."""
        kinds = {"file": self.local, "hdfs": self.hdfs, "s3": self.s3}
        options = kinds[self.root.partition("://")[0]]
        return options.address(self.root)


_SECRET = re.compile(r"\b(password|secret|credential|authorization|sas-token|shared-key)\b|\btoken$", re.IGNORECASE)
"""Names of catalog properties that are secrets, in Iceberg, Hadoop and clouds."""


class Warehouse(_Section):
    """The Iceberg catalog: see CatalogSettings."""

    name: str = "lake"
    type: Literal["hadoop", "jdbc", "rest", "hive", "glue"] = "hadoop"
    path: str
    uri: str = ""
    properties: dict[str, str] = {}
    secrets: dict[str, Annotated[str, AfterValidator(config_values.check_reference)]] = {}

    @model_validator(mode="after")
    def _secrets_by_reference(self) -> Warehouse:
        if open_ones := sorted(name for name in self.properties if _SECRET.search(name) or names_secret(name)):
            raise ValueError(
                f"secrets are not allowed here, write a reference in warehouse.secrets: {', '.join(open_ones)}"
            )
        cure = "write a reference to it in warehouse.secrets: jdbc.password"
        if holds_secret(self.uri) or holds_secret(self.path):
            raise ValueError(f"{'uri' if holds_secret(self.uri) else 'path'} has a password; {cure}")
        if inside := sorted(name for name, value in self.properties.items() if holds_secret(value)):
            raise ValueError(f"a password in {', '.join(inside)}; {cure}")
        if twice := sorted(self.properties.keys() & self.secrets.keys()):
            raise ValueError(f"set both in properties and in secrets: {', '.join(twice)}")
        return self


class Spark(_Section):
    """How Spark jobs run. Airflow takes the master from its connection instead.

    Attributes:
        package: address of an archive of `loader package` for the executors of a cluster: a path on this machine, or
            a place that Spark reads, such as `hdfs://`. Without it, each machine has Python and the loader.
        python: Python program on the executors of a cluster, if it has another path than the program of this process.
    """

    master: str = "local[*]"
    jars: str
    package: str = ""
    python: str = ""
    conf: dict[str, str] = {}

    @model_validator(mode="after")
    def _one_python(self) -> Spark:
        if self.package and self.python:
            raise ValueError("set package or python: a package has its own Python")
        return self

    @model_validator(mode="after")
    def _no_secrets(self) -> Spark:
        """Refuse secrets: they would be arguments of spark-submit, which every user of the machine can see."""
        open_ones = sorted(name for name, value in self.conf.items() if names_secret(name) or holds_secret(value))
        if open_ones:
            raise ValueError(
                f"conf has secrets: {', '.join(open_ones)}; refer to those of catalogs in warehouse.secrets,"
                " and pass others by the environment (AWS_ACCESS_KEY_ID), in a keystore that"
                " spark.hadoop.hadoop.security.credential.provider.path names, or in spark-defaults.conf with mode 0600"
            )
        return self


class Tables(_Section):
    """Captured tables, as patterns over schema.table."""

    include: Annotated[tuple[_Pattern, ...], Field(min_length=1)]
    exclude: tuple[_Pattern, ...] = ()


class Rule(TableRule):
    """How the rows of some captured tables are applied: see TableRule."""

    tables: Annotated[tuple[_Pattern, ...], Field(min_length=1)]


FindServer = Callable[[str], ServerAddress]
_OF_SERVER = ("host", "port", "user", "password", "tls", "tls_ca", "tls_cert", "tls_key", "server_public_key")
"""Keys of a source that an Airflow connection has instead."""


def _check_host(value: str, info: ValidationInfo) -> str:
    return config_values.check_host(value) if _needed(value, info) else value


def _check_user(value: str, info: ValidationInfo) -> str:
    _needed(value, info)
    return value


def _needed(value: str, info: ValidationInfo) -> bool:
    """Return whether a key of a source has a value. Without one, its server must come from an Airflow connection."""
    if not value and not info.data.get("server", "wrong"):
        raise PydanticCustomError("missing", "Field required")
    return bool(value)


class Source(_Section):
    """A MySQL or MariaDB server.

    Attributes:
        server: `airflow:connection`, which has host, port, user, password and TLS instead of the keys here.
        log_files: for `transport = "file"`: the folder of the log files, the index file of the server or its my.cnf, as
            a path that every executor can read; or `s3://bucket/folder`.
        keyring: path of the keyring file, if MySQL encrypts the log files.
        keys: path of the key file, if MariaDB encrypts the log files.
        log_archive: a folder that every executor can read, or `s3://bucket/folder`, with copies of log files that the
            server has purged.
        read_from: a replica that initial loads read, as `host` or `host:port`, with the user, password and TLS of the
            source.
        rules: the first rule that matches a table applies. A table without a rule is a plain mirror.
        read_timeout_seconds: seconds without an answer of the server after which a statement fails with a retryable
            error.
        run_minutes: minutes that a delta extracts planned intervals before it applies them. The next delta continues.
        auto_load, auto_load_bytes: see SourceSettings.
        min_runway_hours: the DAG fails if the server will purge unstaged log within these hours; 0 turns that off.
    """

    server: Annotated[str, AfterValidator(config_values.check_connection)] = ""
    host: Annotated[str, AfterValidator(_check_host)] = Field("", validate_default=True)
    port: int = 3306
    user: Annotated[str, AfterValidator(_check_user)] = Field("", validate_default=True)
    password: Annotated[str, AfterValidator(config_values.check_reference)] = ""
    tls: Literal["", "required", "off"] = ""
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    server_public_key: str = ""
    tables: Tables
    rules: tuple[Rule, ...] = ()
    skip: Skip = Skip()
    transport: Literal["network", "file"] = "network"
    log_files: str = ""
    keyring: str = ""
    keys: str = ""
    log_archive: str = ""
    update_rows: Literal["after", "both"] = "after"
    undecodable: Literal["error", "hex"] = "error"
    read_timeout_seconds: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 600
    part_bytes: Annotated[int, Field(ge=4096)] = 64 * 1024 * 1024
    chunk_rows: Annotated[int, Field(ge=0)] = 0
    read_from: Annotated[str, AfterValidator(config_values.check_host_and_port)] = ""
    initial_load: ReadLimits = ReadLimits()
    interval: IntervalLimits = IntervalLimits()
    run_minutes: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 30
    auto_load: bool = False
    auto_load_bytes: Annotated[int, Field(ge=0)] = AUTO_LOAD_BYTES
    maintain: Maintain = Maintain()
    airflow: DagSettings = DagSettings()
    min_runway_hours: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 6

    @model_validator(mode="after")
    def _one_server(self) -> Source:
        given = [name for name in _OF_SERVER if name in self.model_fields_set]
        if self.server and given:
            raise ValueError(f"remove {', '.join(given)}: the connection that server names has it")
        return self

    @model_validator(mode="after")
    def _files_given(self) -> Source:
        if self.transport == "file" and not self.log_files:
            raise ValueError(
                'transport = "file" needs log_files: the folder of the log files, their index file, or the my.cnf'
            )
        if self.transport == "network" and (self.keyring or self.keys) and not self.log_archive:
            raise ValueError(
                'keyring and keys are only for transport = "file" and log_archive: a server sends its log unencrypted'
            )
        check_tls(self.tls, self.tls_ca, self.tls_cert, self.tls_key)
        return self


def outside_airflow(reference: str) -> ServerAddress:
    """Refuse to find a server: only tasks and pages of Airflow read its connections.

    Raises:
        UsageError: always.
    """
    raise UsageError(
        "the server of the source is known to Airflow only",
        why=f'server = "{reference}" names an Airflow connection, which a command outside Airflow cannot read',
        hint="use the DAGs and the status pages of Airflow; or set host, user and password of the source instead of"
        " server",
        key="server",
    )


class Config(_Section):
    """The whole configuration file."""

    staging: Staging
    warehouse: Warehouse
    spark: Spark
    docs_url: Annotated[str, AfterValidator(config_values.check_site)] = ""
    sources: Annotated[dict[str, Source], Field(min_length=1)]

    @model_validator(mode="after")
    def _archive_beside_sources(self) -> Config:
        if self.staging.archive in map(encode, self.sources):
            raise ValueError(f"staging.archive: {self.staging.archive} is the folder of a source")
        return self

    def source(self, name: str = "", find_server: FindServer = outside_airflow) -> SourceSettings:
        """Return the settings of a source.

        Args:
            name: of the source, or the address of its server or files; empty for the only source.
            find_server: returns the server that an Airflow connection has, by the reference to it.

        Raises:
            UsageError: no source or several sources match, or the server cannot be found.
        """
        names = self.at(name) if "://" in name else [name] if name in self.sources else []
        names = list(self.sources) if not name else names
        if len(names) == 1:
            return _resolved(self, names[0], self.sources[names[0]], find_server)
        what = f"source {name!r}" if "://" not in name else f"source at {_without_user(name)}"
        raise UsageError(
            "the configuration has several sources"
            if not name
            else f"there is {'no' if not names else 'more than one'} {what}",
            hint=f"choose one with --source: {', '.join(sorted(names or self.sources))}",
            key="sources",
        )

    def at(self, uri: str) -> list[str]:
        """Return the names of the sources that use the server or files at an address.

        Raises:
            UsageError: the address is invalid.
        """
        from loader.reader.locations.uri import is_address_of

        files = {name: one.log_files if one.transport == "file" else "" for name, one in self.sources.items()}
        known = {name: one for name, one in self.sources.items() if not one.server}
        return [name for name, one in known.items() if is_address_of(uri, _server(one), files[name])]


def _without_user(uri: str) -> str:
    """Return an address without user information, which may be secret."""
    return re.sub(r"://[^/?#]*@", "://", uri.partition("?")[0])


def _server(source: Source, find_server: FindServer = outside_airflow) -> ServerAddress:
    if source.server:
        return find_server(source.server).model_copy(update={"read_timeout_seconds": source.read_timeout_seconds})
    return ServerAddress(
        host=source.host,
        port=source.port,
        user=source.user,
        password=source.password,
        tls=source.tls,
        tls_ca=source.tls_ca,
        tls_cert=source.tls_cert,
        tls_key=source.tls_key,
        server_public_key=source.server_public_key,
        read_timeout_seconds=source.read_timeout_seconds,
    )


def _replica(source: Source, server: ServerAddress) -> ServerAddress | None:
    """Return the address of the server that initial loads read, if it is not the source."""
    if not source.read_from:
        return None
    host, port = config_values.split_port(source.read_from)
    return server.model_copy(update={"host": host, "port": port or server.port})


def _captured(source: Source) -> TableFilter:
    """Return the filter of captured tables without marker tables, whose transactions are skipped."""
    markers = map(glob.escape, source.skip.marker_tables)
    return TableFilter(include=source.tables.include, exclude=(*source.tables.exclude, *markers))


def _resolved(config: Config, name: str, source: Source, find_server: FindServer) -> SourceSettings:
    server = _server(source, find_server)
    catalog = config.warehouse
    return SourceSettings(
        name=name,
        server=server,
        transport=TransportSettings(
            kind=source.transport,
            server=server,
            path=source.log_files,
            keys=KeyFiles(keyring=source.keyring, keys=source.keys),
            archive=source.log_archive,
        ),
        tables=_captured(source),
        rules=source.rules,
        skip=source.skip,
        update_rows=source.update_rows,
        undecodable=source.undecodable,
        part_bytes=source.part_bytes,
        chunk_rows=source.chunk_rows,
        read_from=_replica(source, server),
        initial_load=source.initial_load,
        interval=source.interval,
        run_minutes=source.run_minutes,
        min_runway_hours=source.min_runway_hours,
        maintain=source.maintain,
        auto_load=source.auto_load,
        auto_load_bytes=source.auto_load_bytes,
        staging_root=signed_address(config.staging.address, config.staging.signing_key),
        retention=Retention(keep=config.staging.keep, archive=config.staging.archive),
        catalog=CatalogSettings(
            name=catalog.name,
            type=catalog.type,
            warehouse=catalog.path,
            uri=catalog.uri,
            properties=catalog.properties,
            secrets=catalog.secrets,
        ),
        spark=SparkSettings(
            master=config.spark.master,
            jars=config.spark.jars,
            package=config.spark.package,
            python=config.spark.python,
            conf=spark_conf(config.staging.address) | config.spark.conf,
            hadoop_user=hadoop_user(config.staging.address),
            tls_ca=trusted_authorities(config.staging.address),
        ),
    )


def configured(path: str | None = None) -> bool:
    """Return whether a configuration exists, or a path or `$LOADER_CONFIG` names one."""
    return bool(path or os.environ.get(VARIABLE)) or config_file().exists()


def load_config(path: str | None = None) -> Config:
    """Read the configuration at `path`, else at `$LOADER_CONFIG`, else `loader.toml` in the working directory.

    Raises:
        UsageError: the file does not exist, is not TOML, or has missing, unknown or invalid keys; it names all of them.
    """
    file = config_file(path)
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(
            "there is no configuration",
            hint=f"write one with loader init, or name it with --config FILE or {VARIABLE}",
            file=file,
        ) from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(
            "the configuration cannot be read",
            why=str(error),
            hint=_check_hint(file),
            file=file,
        ) from error
    return parse_config(data, file)


def parse_config(data: dict[str, Any], file: Path) -> Config:
    """Validate the content of a configuration file.

    Raises:
        UsageError: keys are missing, unknown or invalid; it names all of them.
    """
    try:
        return Config.model_validate(data)
    except ValidationError as error:
        raise UsageError(
            "the configuration is wrong",
            why=_explained(error),
            hint=_check_hint(file),
            file=file,
        ) from error


def _check_hint(file: Path) -> str:
    return f"correct the file, then: loader --config {shlex.quote(str(file))} config check"


def _explained(error: ValidationError) -> str:
    lines = []
    for found in error.errors():
        key = ".".join(str(part) for part in found["loc"])
        cure = "this key is required" if found["type"] == "missing" else ""
        cure = describe_unknown_key(Config, found["loc"]) if found["type"] == "extra_forbidden" else cure
        lines.append(f"{key}: {cure or found['msg'].removeprefix('Value error, ')}")
    return "; ".join(lines)
