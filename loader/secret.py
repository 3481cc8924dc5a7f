"""Secrets, which the loader takes by reference only: `env:NAME`, `file:/path`, `airflow:connection`."""

from __future__ import annotations

import hashlib
import os
import platform
import re
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any

from loader.errors import UsageError

_KINDS = ("env:", "airflow:")
_OF_ENVIRONMENT = re.compile(r"(?:^|=)((?:env|airflow):\S+)$")
"""A reference to the environment, also at the end of the address of a signed store."""
_NAME = re.compile(
    r"(secret|passw(or)?d|passphrase|token|(secret[.-])?access[.-]?key([.-]id)?|(secret|private|api)[.-]?key|credential"
    r"|authorization|shared-key)$"
    r"|account\.key\b|\bsas\b(?!.*\.class$)"
    r"|oauth2\.(client\.secret|user\.password|refresh\.token(?!\.endpoint))\b",  # of one account of Azure
    re.IGNORECASE,
)
_VARIABLE = re.compile(r"(?:executorEnv|driverEnv|appMasterEnv)\.(.*)")
"""Properties that set an environment variable."""
_VARIABLE_NAME = re.compile(
    r"(secret|passw(or)?d|pwd|passphrase|token|key(_id)?|credential)$|^loader_secret_", re.IGNORECASE
)
_REFERENCE = re.compile(r"\.secretKeyRef\.")
"""Properties that name a secret of Kubernetes and do not hold it."""
_OPTION = re.compile(r"-D\S*(password|pwd|secret|token|credential)\S*=", re.IGNORECASE)
_KEY = re.compile(r"[A-Za-z0-9+/]{43}=")
"""32 bytes in Base64: a key of AES-256, such as the key of the customer in S3 (SSE-C)."""
_PASSWORD_IN_URI = re.compile(
    r"(?:^|[?&;,(\s])\w*(?:password|pwd)\s*="  # jdbc:...?password=x, and (password=x) of MySQL's driver
    r"|[?&](?:\w*token|sig)="  # a token, or the signature of an Azure address
    r"|//[^/?#@]*:[^/?#]*@|^jdbc:[^?#]*//[^/?#@]*:[^?#]*@"  # scheme://user:password@host
    r"|^jdbc:oracle:\w+:[^@/]+/[^@]+@"  # jdbc:oracle:thin:user/password@host
    r"|^(?:https?|s3[an]?)://[^/?#]*@",  # a token or a key instead of a user
    re.IGNORECASE,
)


def names_secret(name: str) -> bool:
    """Return whether a property of Spark or Hadoop with that name holds a secret, not its location or class."""
    if _REFERENCE.search(name):
        return False
    variable = _VARIABLE.search(name)
    return bool(_VARIABLE_NAME.search(variable[1]) if variable else _NAME.search(name))


def holds_secret(value: str) -> bool:
    """Return whether a value is a key, or an address or Java options with a password or user information."""
    return bool(_PASSWORD_IN_URI.search(value) or _OPTION.search(value) or _KEY.fullmatch(value))


def secret_variable(connection: str) -> str:
    """Return the name of the environment variable that passes the password of an Airflow connection to a job."""
    told_apart = hashlib.sha256(connection.encode()).hexdigest()[:8]
    return f"LOADER_SECRET_{re.sub(r'[^A-Z0-9]', '_', connection.upper())}_{told_apart}"


_RESOLVED: dict[str, str] = {}
"""Secrets that another process has read for this one, by reference."""


def find_secrets(document: Mapping[str, Any], without: Container[str] = ()) -> dict[str, str]:
    """Return the secrets that references to the environment in a document name, as far as this process has them.

    Args:
        document: nested mappings and values.
        without: keys of mappings to leave out.
    """
    found = references_to_environment(document, without)
    return {reference: os.environ[name] for reference in found if (name := _variable(reference)) in os.environ}


def references_to_environment(document: Mapping[str, Any], without: Container[str] = ()) -> set[str]:
    """Return the references to the environment in a document; see `find_secrets`."""
    found: set[str] = set()
    for key, value in document.items():
        if key in without:
            continue
        if isinstance(value, Mapping):
            found |= references_to_environment(value, without)
        elif isinstance(value, str) and (named := _OF_ENVIRONMENT.search(value)):
            found.add(named[1])
    return found


def keep_secrets(secrets: Mapping[str, str]) -> None:
    """Keep secrets that another process has read, by reference, for `read_secret` in this process."""
    _RESOLVED.update(secrets)


def kept_secret(reference: str) -> str:
    """Return a secret that `keep_secrets` has kept, or an empty string."""
    return _RESOLVED.get(reference, "")


def read_secret(reference: str) -> str:
    """Return the secret that a reference names.

    Raises:
        UsageError: the kind of reference is unknown, or the secret does not exist.
    """
    if not reference:
        return ""
    if reference in _RESOLVED:
        return _RESOLVED[reference]
    kind, _, name = reference.partition(":")
    if kind == "file":
        try:
            return Path(name).read_text(encoding="utf-8").rstrip("\n")
        except OSError as error:
            raise UsageError("a secret file cannot be read", why=str(error), file=name) from error
    if not reference.startswith(_KINDS):
        raise UsageError(
            "a secret must be a reference",
            hint="write env:NAME, file:/path or airflow:connection; never write the secret itself",
        )
    variable = _variable(reference)
    if variable not in os.environ:
        where = "the environment" if kind == "env" else "a task's environment; outside Airflow use env: or file:"
        raise UsageError(
            f"{variable} is not set on {platform.node()}",
            hint=f"set it in {where}; or, if that machine runs executors of Spark, set spark.authenticate and"
            " spark.network.crypto.enabled to true in [spark.conf], and the driver hands it over",
            key=reference,
        )
    return os.environ[variable]


def _variable(reference: str) -> str:
    kind, _, name = reference.partition(":")
    return name if kind == "env" else secret_variable(name)
