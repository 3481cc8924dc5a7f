"""Sections that all sources share: staging, warehouse, Spark."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, WithJsonSchema, model_validator

from loader.config import values
from loader.secret import holds_secret, names_secret
from loader.settings import parse_keep
from loader.store.address import HdfsOptions, LocalOptions, S3Options


class Section(BaseModel):
    """A section of the configuration: unknown keys are errors, and errors do not show values."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


_KEEP_SCHEMA = {"type": "string", "pattern": r"^(forever|\d+[dh])$"}


class Staging(Section):
    """Where staged files and plans are stored, with the options of the store: LocalOptions, S3Options, HdfsOptions.

    Attributes:
        keep: how long the files of an interval stay after every table has applied it: `forever`, `30d`, `12h`.
        archive: a prefix in the root. Files are moved to it then, instead of being removed.
        signing_key: reference to the key that signs plans and manifests: `env:NAME` or `file:/path`. Every node that
            runs a part of the loader needs the key.
    """

    root: Annotated[str, AfterValidator(values.check_store_root)]
    keep: Annotated[timedelta | None, BeforeValidator(parse_keep), WithJsonSchema(_KEEP_SCHEMA)] = None
    archive: Annotated[str, AfterValidator(values.check_prefix)] = ""
    signing_key: Annotated[str, AfterValidator(values.check_node_reference)] = ""
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


class Warehouse(Section):
    """The Iceberg catalog: see CatalogSettings."""

    name: str = "lake"
    type: Literal["hadoop", "jdbc", "rest", "hive", "glue"] = "hadoop"
    path: str
    uri: str = ""
    properties: dict[str, str] = {}
    secrets: dict[str, Annotated[str, AfterValidator(values.check_reference)]] = {}

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


class Spark(Section):
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
