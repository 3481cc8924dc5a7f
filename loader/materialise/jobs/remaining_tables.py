"""The tables of a job that runs for all tables of a source."""

from __future__ import annotations

import logging

from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.merge.table_selection import known_tables
from loader.materialise.plan.interval_chain import Chain
from loader.model.table import TableName
from loader.retries import Retries
from loader.staging.published import Published

_LOG = logging.getLogger(__name__)


def remaining_tables(chain: Chain, record: Published | None, warehouse: Warehouse, retries: Retries) -> set[TableName]:
    """Return the known tables that are still in the warehouse: a person may have removed some.

    The newest record does not name tables that the source dropped or that the configuration excludes. Their staged
    initial loads name them.

    Args:
        chain: the intervals of the source.
        record: the newest published record.
        warehouse: of the source.
        retries: of the requests to the catalog.
    """
    named = set(map(TableName.parse, (*record.tables, *record.behind))) if record else set()
    return {table for table in known_tables(chain, record) if table in named or _may_exist(table, warehouse, retries)}


def _may_exist(table: TableName, warehouse: Warehouse, retries: Retries) -> bool:
    """Return whether the warehouse has a table, or does not tell. The work on the table then reports the error."""
    try:
        return retries.call(lambda: warehouse.metadata(table)) is not None
    except Exception as error:
        _LOG.info("%s: the warehouse does not tell whether it has the table: %s", table, error)
        return True
