"""Asset events of warehouse tables, on which other DAGs can be scheduled.

The tables are not known when a DAG file is read. So each DAG declares one asset alias of its source, and the tasks that
commit to tables add an event of each table's asset to that alias.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.sdk import Asset, AssetAlias

from loader.dag_settings import dag_key
from loader.model.table import TableName

if TYPE_CHECKING:
    from airflow.sdk import Context

_COMMITTED = {"applied", "published"}  # by merges and loads, by replays
_COUNTS = ("inserts", "updates", "deletes")


def tables_alias(source: str) -> AssetAlias:
    """Return the alias `<source>.tables`, which has the events of all tables of a source."""
    return AssetAlias(f"{dag_key(source)}.tables")


def table_asset(catalog: str, table: str) -> Asset:
    """Return the asset of a warehouse table: the name is `catalog.schema.table`, with other characters as `%XX`."""
    name = TableName.parse(table)
    parts = [quote(part, safe="") for part in (catalog, name.schema, name.table)]
    return Asset(name=".".join(parts), uri=f"iceberg://{'/'.join(parts)}")


def add_table_events(
    context: Context,
    source: str,
    catalog: str,
    arguments: Mapping[str, Any],
    result: Mapping[str, Any],
    tries: int,
) -> None:
    """Add an event for each table that a task committed to, if the task has the alias of a source among its outlets.

    A table counts as committed to if an earlier try of the task was: its worker may have died before it reported. So a
    cleared task can repeat events. Snapshot ids are texts, because browsers round large numbers.

    Args:
        context: of the task.
        source: its name.
        catalog: name of the catalog.
        arguments: of the use case, with the interval and the staged rows by table, if there is one.
        result: of the use case.
        tries: of the work. A table that an earlier try committed to counts as well.
    """
    aliases = [outlet for outlet in context["task"].outlets if isinstance(outlet, AssetAlias)]
    if not aliases:
        return
    for table, counts in committed_tables(arguments, result, tries):
        extra = {
            "source": source,
            "start": arguments.get("start", ""),
            "stop": arguments.get("stop", ""),
            "position": table.get("position") or result.get("stop", ""),
            "snapshot": str(table.get("snapshot") or ""),
            **counts,
        }
        for alias in aliases:
            context["outlet_events"][alias].add(table_asset(catalog, table["table"]), extra=extra)


def committed_tables(
    arguments: Mapping[str, Any], result: Mapping[str, Any], tries: int
) -> Iterator[tuple[dict[str, Any], dict[str, int]]]:
    """Yield the result of each table that a task committed to, and its numbers of staged records by operation.

    Args:
        arguments: see add_table_events.
        result: see add_table_events.
        tries: see add_table_events.
    """
    staged = {one["table"]: one for one in arguments.get("tables") or () if isinstance(one, dict)}
    for table in result.get("tables", []):
        status = table.get("status")  # tables that were only staged have none
        again = status == "already" and table["table"] in staged and tries > 1
        if status in _COMMITTED or again:
            counted = staged[table["table"]] if again else table
            yield table, {name: counted.get(name, 0) for name in _COUNTS}
