"""Tables of a server in a consistent snapshot, although others write to the tables and alter them meanwhile.

A snapshot has old rows, but new definitions. If rows were rewritten since the snapshot, the server refuses to read them
(MySQL manual, "Consistent Nonlocking Reads"). It reads the wrong rows if columns or tables only exchanged their names.
So definitions from before the snapshot are compared.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from pymysql.connections import Connection
from pymysql.err import MySQLError

from loader.errors import RetryableError
from loader.initial_load.definition_check import lock_definition
from loader.initial_load.server.consistent_snapshot import open_snapshot, read_status
from loader.materialise.rules import TableRule, rule_of
from loader.model.identity import Identity
from loader.model.position import Position
from loader.model.table import TableName
from loader.source.digest import definition_digest
from loader.source.schemas import read_schemas
from loader.source.server_facts import query, read_identity
from loader.source.table_sizes import read_size
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import connected
from loader.verify.comparable import check_engine
from loader.verify.expressions import Row
from loader.verify.key_sample import choose_sample
from loader.verify.server_rows import count_rows, server_rows, server_sums
from loader.verify.spec import TableSums

_LOG = logging.getLogger(__name__)
_BUCKET_ROWS = 1000
_MOST_BUCKETS = 8192
_LONGEST_SECONDS = 7 * 86_400
"""A sum of all rows of a table sends nothing until it is complete."""


class TableState(NamedTuple):
    """What changes if a table is altered or created again, or if another table takes its name.

    Attributes:
        engine: empty if there is no such table.
        created: the time, in seconds.
        digest: of the definition.
    """

    engine: str
    created: str
    digest: str


class ServerSnapshot:
    """Tables of a server as a transaction sees them.

    Args:
        asking: for definitions.
        reading: in the transaction.
        states: of the tables, before the transaction.
        position: of the transaction in the log.
        identity: of the server.
        rules: of the warehouse tables. They decide what the warehouse has for invalid dates.
    """

    def __init__(
        self,
        asking: Connection[Any],
        reading: Connection[Any],
        states: dict[TableName, TableState],
        position: Position,
        identity: Identity,
        rules: Sequence[TableRule],
    ) -> None:
        self._asking = asking
        self._reading = reading
        self._states = states
        self._rules = rules
        self.position, self.identity = position, identity

    @property
    def tables(self) -> Sequence[TableName]:
        """The tables in order."""
        return list(self._states)

    def sums(self, table: TableName, *, sampled: bool = False) -> TableSums:
        """Return number and sum of hashes of a table's rows, by bucket. `sampled`: of a sample, if the table is large.

        Raises:
            UnsupportedError: the engine of the table has no consistent snapshots, or a type is not supported.
            RetryableError: the table was altered since the snapshot.
        """
        check_engine(self._states[table].engine, table)
        with self._unaltered(table):
            (schema,) = read_schemas(self._asking, [table])
            size = read_size(self._asking, table).rows
            sample = choose_sample(schema, size) if sampled else None
            buckets = max(1, min(_MOST_BUCKETS, size // (sample.parts if sample else 1) // _BUCKET_ROWS))
            on_misfit = rule_of(self._rules, table).on_misfit
            sums = server_sums(self._reading, schema, buckets, sample, on_misfit)
            rows = count_rows(self._reading, schema) if sample else sum(count for count, _ in sums.values())
            return TableSums(
                definition=schema.as_dict(),
                on_misfit=on_misfit,
                rows=rows,
                sample=sample,
                buckets=buckets,
                sums=sums,
            )

    def rows(self, table: TableSums, wanted: Collection[int]) -> Counter[Row]:
        """Return the canonical texts of the rows in the wanted buckets.

        Raises:
            RetryableError: the table was altered since the snapshot.
        """
        with self._unaltered(table.table_schema.name):
            return Counter(server_rows(self._reading, table, wanted))

    @contextmanager
    def _unaltered(self, table: TableName) -> Iterator[None]:
        """Check that a table is that of the snapshot, and prevent changes of its definition inside the block.

        A transaction holds a metadata lock on each table that it read. ALTER TABLE would wait for the lock, and all
        other statements on the table for ALTER TABLE. A rollback to a savepoint releases the lock. On MariaDB it does
        so only if the session does not write to the log, because its savepoints are logged.
        """
        query(self._reading, "SAVEPOINT loader")
        try:
            lock_definition(self._reading, table)
            if _read_state(self._asking, table) != self._states[table]:
                raise _altered_error(table, "its definition is another one than before the snapshot")
            yield
        except MySQLError as error:
            raise _altered_error(table, str(error)) from error
        finally:
            query(self._reading, "ROLLBACK TO SAVEPOINT loader")


@contextmanager
def server_snapshot(
    address: ServerAddress, tables: Sequence[TableName], rules: Sequence[TableRule] = ()
) -> Iterator[ServerSnapshot]:
    """Open a consistent snapshot of tables at a position of the log.

    Raises:
        RetryableError: no snapshot with a known position could be opened.
        LoaderError: the server does not answer.
    """
    with connected(address) as asking, connected(address, _LONGEST_SECONDS) as reading:
        _leave_log(reading)
        states = {table: _read_state(asking, table) for table in tables}
        yield ServerSnapshot(asking, reading, states, open_snapshot(reading), read_identity(reading), rules)


def _leave_log(connection: Connection[Any]) -> None:
    """Set a session of MariaDB to write nothing to the log, if its user may do so (BINLOG ADMIN)."""
    try:
        query(connection, "/*M! SET SESSION sql_log_bin = 0 */")
    except MySQLError as error:
        _LOG.info("ALTER TABLE waits until the comparison ends: %s", error)


def _read_state(connection: Connection[Any], table: TableName) -> TableState:
    status = read_status(connection, table)
    if not status:
        return TableState("", "", "")
    return TableState(str(status["engine"]), str(status["create_time"]), definition_digest(connection, table))


def _altered_error(table: TableName, why: str) -> RetryableError:
    return RetryableError(
        "the table cannot be read as of the snapshot of the server", why=why, hint="loader verify", table=table
    )
