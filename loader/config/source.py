"""The section of a source: its server, its tables, and how they are read and merged."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from loader.config import values
from loader.config.sections import Section
from loader.dag_settings import DagSettings
from loader.initial_load.server.read_limits import ReadLimits
from loader.materialise.rules import TableRule
from loader.settings import AUTO_LOAD_BYTES, IntervalLimits, Maintain
from loader.staging.documents import Skip
from loader.transport.server.address import check_tls

_Pattern = Annotated[str, AfterValidator(values.check_table_pattern)]


class Tables(Section):
    """Captured tables, as patterns over schema.table."""

    include: Annotated[tuple[_Pattern, ...], Field(min_length=1)]
    exclude: tuple[_Pattern, ...] = ()


class Rule(TableRule):
    """How the rows of some captured tables are applied: see TableRule."""

    tables: Annotated[tuple[_Pattern, ...], Field(min_length=1)]


_OF_SERVER = ("host", "port", "user", "password", "tls", "tls_ca", "tls_cert", "tls_key", "server_public_key")
"""Keys of a source that an Airflow connection has instead."""


def _check_host(value: str, info: ValidationInfo) -> str:
    return values.check_host(value) if _needed(value, info) else value


def _check_user(value: str, info: ValidationInfo) -> str:
    _needed(value, info)
    return value


def _needed(value: str, info: ValidationInfo) -> bool:
    """Return whether a key of a source has a value. Without one, its server must come from an Airflow connection."""
    if not value and not info.data.get("server", "wrong"):
        raise PydanticCustomError("missing", "Field required")
    return bool(value)


class Source(Section):
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

    server: Annotated[str, AfterValidator(values.check_connection)] = ""
    host: Annotated[str, AfterValidator(_check_host)] = Field("", validate_default=True)
    port: int = 3306
    user: Annotated[str, AfterValidator(_check_user)] = Field("", validate_default=True)
    password: Annotated[str, AfterValidator(values.check_reference)] = ""
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
    read_from: Annotated[str, AfterValidator(values.check_host_and_port)] = ""
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
