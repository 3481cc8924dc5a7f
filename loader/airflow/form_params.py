"""Fields that several forms have. Light: DAG files and reports of errors import it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk import Param

_TABLE = r"^\s*$|^\s*(`([^`]|``)+`|[^.`\s][^.]*)\.\s*\S"
"""An empty line, or a table: a schema, quoted with backticks if it has a dot, and after its dot any name."""
_TABLE_HELP = "write schema.table, such as shop.orders; a schema with a dot as `my.schema`.orders"


def text_param(title: str, description: str, *, pattern: str = "", example: str = "", **schema: Any) -> Param:
    """Return a field for an optional text. An empty field is null.

    Args:
        title: the label.
        description: the text below the field.
        pattern: what the text must match without the spaces around it.
        example: what to write. Airflow shows it, with the pattern, if the text does not match.
        schema: more keywords of the field's JSON schema.
    """
    if pattern:
        schema |= {"pattern": rf"^\s*({pattern})?\s*$", "$comment": f"write {example}"}
    return Param(None, type=["null", "string"], title=title, description=description, **schema)


def flag_param(title: str, description: str, *, default: bool = False) -> Param:
    """Return a field that is ticked or not."""
    return Param(default, type="boolean", title=title, description=description)


def tables_param(description: str) -> Param:
    """Return the field `tables`: names in the text of `TableName`. An empty field is null. See `clean_form`."""
    return Param(
        [],
        type=["null", "array"],
        items={"type": "string", "pattern": _TABLE, "$comment": _TABLE_HELP},
        title="Tables",
        description=description,
    )


def clean_form(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a form without the spaces around texts, and without empty lines.

    People paste texts with spaces and line ends. Neither position nor GTID has spaces around it, and the names of MySQL
    cannot end with one.
    """
    return {name: _clean(value) for name, value in values.items()}


def _clean(value: Any) -> Any:
    if isinstance(value, list):
        return [text for item in value if (text := _clean(item)) != ""]
    return value.strip() if isinstance(value, str) else value
