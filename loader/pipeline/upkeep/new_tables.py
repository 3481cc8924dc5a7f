"""Captured tables of the server that the warehouse lacks, although the log up to some position is applied.

The log lacks the rows of these tables: they are new in the configuration, or were renamed to captured names. A table
that the log creates needs no load. So tables are listed first, and judged once everything that was logged before is
applied. Then a published record tells which tables the log created.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from loader.initial_load.loads import Loads, manifest_key
from loader.model.position import Position
from loader.model.table import TableName
from loader.pipeline.chain.plan_chain import chain_of
from loader.pipeline.upkeep.kept_files import newest_of
from loader.settings import SourceSettings
from loader.source.schemas import find_tables
from loader.source.server_facts import log_end
from loader.source.table_sizes import TableSize, read_sizes
from loader.staging.chain import PlanChain
from loader.staging.filters import CapturedTables
from loader.staging.layout import chain_folder, load_folder, loaded_key
from loader.staging.notes.finished_work import Loaded
from loader.staging.notes.refusals import find_refusal
from loader.staging.published import Published
from loader.transport.server.connection import connected


class ListedTables(BaseModel):
    """Captured tables that a server had, and that no published record had.

    Attributes:
        generation: the log of the position.
        position: an end of the log after the tables were listed.
        tables: their names, sorted.
    """

    model_config = ConfigDict(frozen=True)

    generation: str
    position: str
    tables: tuple[str, ...]


class UnloadedTable(BaseModel):
    """A captured table that must be loaded before its changes can be applied.

    Attributes:
        action: `load`: this run loads it. `later`: a later run loads it. `ask`: a person must load it, because
            `auto_load` is off, or the table is too large. `refused`: its load failed before, for a reason that no retry
            can change.
        bytes: an estimate of the server.
        error: of a refused table, in the form of `LoaderError.as_dict()`.
    """

    model_config = ConfigDict(frozen=True)

    table: str
    action: Literal["load", "later", "ask", "refused"]
    bytes: int
    error: dict[str, Any] | None = None

    @property
    def note(self) -> str:
        """What happens with the table, for people."""
        about = f"{self.table} is captured and not loaded (about {self.bytes / 1e6:,.1f} MB)"
        match self.action:
            case "load":
                return f"{about}; it is loaded now"
            case "later":
                return f"{about}; one of the next runs loads it"
            case "refused":
                return f"{about}; its load was refused"
            case _:
                return f"{about}; to load it: loader initial-load --table {TableName.parse(self.table).argument}"


def list_tables(settings: SourceSettings) -> ListedTables | None:
    """Return the captured tables that no published record has; None before the first record.

    Raises:
        LoaderError: the source was never loaded, or the server does not answer.
    """
    chain = chain_of(settings)
    generation = chain.require_generation()
    record = newest_of(chain, chain.lineage(generation.name))
    if record is None:
        return None
    captured = CapturedTables(settings.tables)
    with connected(settings.server) as connection:
        found = [table for table in find_tables(connection, captured) if not _is_known(record, str(table))]
        end = log_end(connection)
    return ListedTables(generation=generation.name, position=str(end), tables=tuple(map(str, found)))


def find_unloaded(settings: SourceSettings, listed: ListedTables | None) -> tuple[UnloadedTable, ...]:
    """Return the listed tables that are not loaded, once the log up to the listing is applied. Smallest first.

    With `auto_load`, this run loads tables of up to `auto_load_bytes`, all together.

    Args:
        settings: of the source.
        listed: the tables before the log was read.
    """
    chain = chain_of(settings)
    lineage = chain.lineage(chain.require_generation().name)
    record = newest_of(chain, lineage)
    if record is None or listed is None or lineage[-1].name != listed.generation:
        return ()
    if record.stop_seqno < Position.parse(listed.position).seqno(lineage[-1].shift):
        return ()  # the log that may create or fill the tables is not applied yet
    missing = [name for name in listed.tables if not _is_known(record, name)]
    loaded = _loaded_tables(chain, [one.name for one in lineage], missing, settings.catalog.place)
    missing = [name for name in missing if name not in loaded]
    if not missing:
        return ()
    with connected(settings.server) as connection:
        there, sizes = set(find_tables(connection, CapturedTables(settings.tables))), read_sizes(connection)
    tables = sorted(set(map(TableName.parse, missing)) & there)
    sized = sorted((sizes.get(table, TableSize(0, 0)).bytes, table) for table in tables)
    return tuple(_decided(chain, settings, sized))


def _is_known(record: Published, name: str) -> bool:
    """Return whether a table is in the warehouse, or will come by the log.

    A table behind at seqno 0 may never have been loaded. `made` has tables that the log created and that have no rows.
    In `made`, 0 stands for a dropped table. If the server has it nevertheless, its creation was not read.
    """
    if name in record.tables or name in record.postponed:
        return True
    return bool(record.behind.get(name) or (record.made or {}).get(name))


def _loaded_tables(chain: PlanChain, generations: Sequence[str], names: Sequence[str], warehouse: str) -> set[str]:
    """Return the tables of these names whose initial load is in the warehouse; see Published.

    Loads are looked at only if their folder exists, so tables without one cost no requests.
    """
    found = set()
    for generation in generations if names else ():
        root = f"{chain_folder(chain.source, generation)}/load/"
        folders = {
            f"{root}{schema}/{table}"
            for schema in chain.store.folders(root)
            for table in chain.store.folders(f"{root}{schema}/")
        }
        loads = Loads(chain.store, chain.source, generation)
        for name in names:
            table = TableName.parse(name)
            plan = loads.newest(table, 0) if load_folder(chain.source, generation, table) in folders else None
            note = Loaded.find(chain.store, loaded_key(manifest_key(plan))) if plan else None
            if note and note.warehouse == warehouse:
                found.add(name)
    return found


def _decided(
    chain: PlanChain, settings: SourceSettings, sized: Iterable[tuple[int, TableName]]
) -> Iterable[UnloadedTable]:
    left = settings.auto_load_bytes
    for size, table in sized:
        refused = find_refusal(chain.store, settings.name, table)
        fits = settings.auto_load and size <= settings.auto_load_bytes
        if refused and settings.auto_load:
            yield UnloadedTable(table=str(table), action="refused", bytes=size, error=refused.error)
        elif fits and size <= left:
            left -= size
            yield UnloadedTable(table=str(table), action="load", bytes=size)
        else:
            yield UnloadedTable(table=str(table), action="later" if fits else "ask", bytes=size)
