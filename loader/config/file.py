"""The configuration: one TOML file. It is validated as a whole; errors name the key and the fix.

The file never holds secrets, only references to them: `env:NAME`, `file:/path`, `airflow:connection`.
"""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError, model_validator

from loader.config import values
from loader.config.resolve import FindServer, outside_airflow, server_of, source_settings
from loader.config.sections import Section, Spark, Staging, Warehouse
from loader.config.source import Source
from loader.config.unknown_keys import describe_unknown_key
from loader.errors import UsageError
from loader.resources import CONFIG_VARIABLE, config_file
from loader.settings import SourceSettings
from loader.staging.layout import encode

VARIABLE = CONFIG_VARIABLE


class Config(Section):
    """The whole configuration file."""

    staging: Staging
    warehouse: Warehouse
    spark: Spark
    docs_url: Annotated[str, AfterValidator(values.check_site)] = ""
    sources: Annotated[dict[Annotated[str, AfterValidator(values.check_source_name)], Source], Field(min_length=1)]

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
            sections = self.staging, self.warehouse, self.spark
            return source_settings(names[0], self.sources[names[0]], sections, find_server)
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
        return [name for name, one in known.items() if is_address_of(uri, server_of(one, outside_airflow), files[name])]


def _without_user(uri: str) -> str:
    """Return an address without user information, which may be secret."""
    return re.sub(r"://[^/?#]*@", "://", uri.partition("?")[0])


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
