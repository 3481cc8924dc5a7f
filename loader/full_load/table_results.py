"""Results of loads by table, as the commands and tasks report them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loader.materialise.spec import TableResult


def load_results(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of loading tables, with the tables that could not be read.

    Args:
        result: FullLoadResult as JSON.
    """
    failed = {table["table"]: table["error"] for table in result["read"]["tables"] if table["error"]}
    return {**result["load"], "tables": _sorted([*result["load"]["tables"], *_failed(failed)])}


def with_new_tables(
    merged: Mapping[str, Any], loaded: Mapping[str, Any] | None, refused: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:
    """Return the result of merges in which the results of new tables replace earlier results of these tables.

    Args:
        merged: MaterialiseResult as JSON.
        loaded: FullLoadResult of the new tables as JSON; None if none was loaded.
        refused: by table, why it cannot be loaded.
    """
    new = [*(load_results(loaded)["tables"] if loaded else ()), *_failed(refused)]
    names = {table["table"] for table in new}
    return {**merged, "tables": _sorted([*(table for table in merged["tables"] if table["table"] not in names), *new])}


def _failed(errors: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    results = (TableResult(table=name, status="failed", error=error) for name, error in errors.items())
    return [result.model_dump(mode="json") for result in results]


def _sorted(tables: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(tables, key=lambda table: str(table["table"]))
