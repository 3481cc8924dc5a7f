"""Fields that several forms have. Light: DAG files and reports of errors import it."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Param

_TABLE = r"^(`([^`]|``)+`|[^.`]+)\..+$"
"""The text of a table: a schema, quoted with backticks if it has a dot, and after its dot any name."""


def text_param(title: str, description: str, **schema: Any) -> Param:
    """Return a field for an optional text. An empty field is null. `schema`: more keywords of its JSON schema."""
    return Param(None, type=["null", "string"], title=title, description=description, **schema)


def flag_param(title: str, description: str, *, default: bool = False) -> Param:
    """Return a field that is ticked or not."""
    return Param(default, type="boolean", title=title, description=description)


def tables_param(description: str) -> Param:
    """Return the field `tables`: names in the text of `TableName`. An empty field is null."""
    return Param(
        [],
        type=["null", "array"],
        items={"type": "string", "pattern": _TABLE},
        title="Tables",
        description=description,
    )
