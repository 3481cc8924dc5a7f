"""Table definitions at a position, for logs that do not name columns: showing them, and giving them by hand."""

from __future__ import annotations

import json

from pydantic import ValidationError

from loader.errors import DataError, UsageError
from loader.materialise.plan.ddl_events import read_barrier
from loader.model.position import Position
from loader.model.table import TableName
from loader.pipeline.chain.plan_chain import chain_of
from loader.schema.history import KnownTable, SchemaHistory
from loader.schema.statement_reader import table_changes
from loader.settings import SourceSettings
from loader.staging.chain import PlanChain
from loader.staging.documents import Barrier, Generation, Manifest
from loader.staging.schemas import GivenSchema, SchemaStore, TableDocument
from loader.types.catalogue import names_of
from loader.types.column_type import Encoding

_CHARSETS = names_of(Encoding.TEXT, Encoding.ENUM, Encoding.SET)


class ShownTable(TableDocument):
    """The known definition of a table `at` a position of the log."""

    at: str = ""


def table_schema(settings: SourceSettings, table: TableName, at: str = "") -> ShownTable:
    """Return the known definition of a table at a position, or at the end of everything that is staged.

    In a part of the log that is not staged yet, only definitions given by hand are known.

    Raises:
        UsageError: nothing is known of the table, or the position is before the newest generation.
    """
    chain = chain_of(settings)
    generation = chain.require_generation()
    place = Position.parse(at) if at else chain.newest_checkpoint(generation).position
    history = _history(chain, generation, place)
    known = history.latest(table)
    if known.schema is None and not known.why:
        raise UsageError(
            "the definition of the table at this position is unknown",
            hint=f"loader schema set {table.argument} --at {place} --file FILE",
            table=table,
            position=place,
        )
    return ShownTable(at=str(place), **TableDocument.of(table, known).model_dump())


def _history(chain: PlanChain, generation: Generation, place: Position) -> SchemaHistory:
    """Return the tables at a position.

    They come from the newest schema document before it, changed by later barriers and given definitions.
    """
    store, seqno = SchemaStore(chain.store, chain.source), place.seqno(generation.shift)
    start, at, digest = generation.start_position.seqno(generation.shift), generation.start, generation.schemas
    if seqno < start:
        raise UsageError(
            "the position is before the start of the generation",
            hint=f"choose a position from {at} on: --at {at}",
            position=place,
        )
    newest = chain.newest_manifest(generation.name)
    inside: Manifest | None = None
    before = newest
    if newest and newest.stop_seqno > seqno:
        begun = chain.start_at_or_before(generation.name, seqno)
        inside = chain.manifest(generation.name, begun) if begun is not None else None
        before = chain.manifest_stopping_at(generation.name, inside.start_seqno) if inside else None
    if before:
        start, at, digest = before.stop_seqno, before.stop, before.schemas_after
    history = store.get(digest).history(start, at)
    events: list[GivenSchema | Barrier] = []
    events += [one for one in inside.barriers if one.seqno <= seqno] if inside else []
    events += [store.given(key) for key in store.given_keys(generation.name, start, seqno + 1)]
    for one in sorted(events, key=lambda one: one.seqno):
        if isinstance(one, Barrier):
            history.apply(one.seqno, one.position, read_barrier(one), one.statement)
        else:
            history.set_table(one.seqno, one.at, one.table.name, one.table.known())
    return history


def set_table_schema(settings: SourceSettings, table: TableName, at: str, text: str) -> GivenSchema:
    """Store the definition of a table from a position on: a CREATE TABLE statement or the JSON of `table_schema`.

    Raises:
        UsageError: the text is neither or is incomplete; or another definition was given for the position; or that part
            of the log is staged already, and the table is complete there.
        DataError: the interval was staged without the definition at the same time.
    """
    chain = chain_of(settings)
    generation = chain.require_generation()
    staged, place = chain.newest_checkpoint(generation).position, Position.parse(at)
    if place < staged and not _left_out(chain, generation, table, place):
        raise UsageError(
            "this part of the log is already staged, and staged intervals never change",
            hint=f"{table.load_again}; or choose a position from {staged} on",
            table=table,
            position=at,
        )
    given = GivenSchema(
        source=settings.name,
        generation=generation.name,
        at=at,
        seqno=place.seqno(generation.shift),
        table=_read(table, text, generation),
    )
    _check_not_too_late(chain, given, SchemaStore(chain.store, settings.name).give(given))
    return given


def _check_not_too_late(chain: PlanChain, given: GivenSchema, key: str) -> None:
    """Check that a stored definition was used, or that it will be used.

    An extraction publishes only if no definition came meanwhile. So a definition is too late only if its interval was
    published just before.

    Raises:
        DataError: its interval was staged without it.
    """
    start, name = chain.start_at_or_before(given.generation, given.seqno), given.table.name
    staged = chain.extracted_manifest(given.generation, start) if start is not None else None
    if staged is None or staged.stop_seqno <= given.seqno:
        return
    waits = any(one.name == name for one in staged.left_out)
    used = chain.backfilled_manifests(staged).get(name) if waits else staged
    if used and key not in used.given:
        raise DataError(
            "the interval was staged without the definition, while it was given",
            why="staged intervals never change, so rows after the position may be staged with wrong columns",
            hint=name.load_again,
            table=name,
            position=given.at,
            interval=staged.start,
        )


def _left_out(chain: PlanChain, generation: Generation, table: TableName, place: Position) -> bool:
    """Return whether the interval at a position still lacks rows of the table."""
    seqno = place.seqno(generation.shift)
    start = chain.start_at_or_before(generation.name, seqno)
    manifest = chain.manifest(generation.name, start) if start is not None else None
    return manifest is not None and any(one.name == table for one in manifest.left_out)


def _read(table: TableName, text: str, generation: Generation) -> TableDocument:
    if text.lstrip().startswith("{"):
        try:
            shown = ShownTable.model_validate(json.loads(text))
            name, known = shown.name, shown.known()
        except (ValueError, ValidationError, KeyError, TypeError) as error:
            raise _unread(table, str(error)) from error
    else:
        history, mariadb = SchemaHistory(), generation.identity.kind == "mariadb"
        history.apply(0, "", table_changes(text.strip().rstrip(";"), table.schema, 0, mariadb), text)
        made = history.tables()
        name, known = (
            next(iter(made.items())) if len(made) == 1 else (table, KnownTable(None, history.latest(table).key))
        )
    if name != table:
        raise _unread(table, f"it defines table {name}")
    if known.unreadable_why:
        raise _unread(table, known.unreadable_why)
    columns = known.schema.columns if known.schema else ()
    if open_ := [column.name for column in columns if column.type in _CHARSETS and not column.charset]:
        raise _unread(table, f"it lacks the character set of column {open_[0]}")
    return TableDocument.of(table, known)


def _unread(table: TableName, why: str) -> UsageError:
    return UsageError(
        "the file does not define the table",
        why=why,
        hint="use the output of SHOW CREATE TABLE if the table has a primary key; otherwise, use that of: loader --json"
        f" schema show, and set its key and sure; or load the table again: {table.load_again}",
        table=table,
    )
