"""Locations of files: the configuration, the cache, and shipped files outside the package."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent

CONFIG_VARIABLE = "LOADER_CONFIG"
PACKED_KERNELS = "_kernels"
"""Folder of the package with compiled kernels; only packages for executors have it."""
_CONFIG_FILE = "loader.toml"
_PARENTS = {"servers": "infra", "airflow": "infra", "reference": "docs"}


def config_file(path: str | None = None) -> Path:
    """Return the configuration file: `path`, else `$LOADER_CONFIG`, else `loader.toml` in the working directory."""
    return Path(path or os.environ.get(CONFIG_VARIABLE) or _CONFIG_FILE)


def cache_folder() -> Path:
    """Return `$LOADER_CACHE`, else `~/.cache/binlog-loader`: the folder of jars, kernels and class archives."""
    named = os.environ.get("LOADER_CACHE")
    return Path(named).expanduser().absolute() if named else Path.home() / ".cache" / "binlog-loader"


def packed_kernels() -> Path:
    """Return the folder of the compiled kernels that came with the package. It may not exist."""
    return _PACKAGE / PACKED_KERNELS


def folder(name: str) -> Path:
    """Return a folder of the wheel, else of the checkout.

    Args:
        name: `sql`, `dags`, `servers`, `airflow` (for its installation) or `reference` (pages of the documentation).

    Raises:
        FileNotFoundError: neither has it.
    """
    packed = _PACKAGE / f"_{name}"
    checkout = _PACKAGE.parent / _PARENTS.get(name, "") / name
    for candidate in (packed, checkout):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"{name} is neither in the package nor next to it")


@cache
def sql(name: str) -> str:
    """Return the statement in `sql/<name>.sql`, without its comment lines."""
    text = (folder("sql") / f"{name}.sql").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    return "\n".join(lines).strip().rstrip(";")
