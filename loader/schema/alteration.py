"""Applies one ALTER TABLE to the columns and the key of a table: their names, their order, and the origin of each.

The server resolves names in all actions against the table before the statement. Places (AFTER) have the names after it:
columns move one after the other, each from the place where it was (`mysql_prepare_alter_table`). Column names are
case-insensitive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loader.model.table import Column
from loader.schema.changes import (
    FIRST,
    Action,
    AddColumn,
    ChangeIndexes,
    ConvertCharset,
    DropColumn,
    DropKey,
    ModifyColumn,
    RenameColumn,
    SetKey,
)
from loader.schema.constants import NotLoggedError
from loader.schema.type_preservation import as_column
from loader.types.catalogue import names_of
from loader.types.column_type import Encoding

GENERATED_KEY = "my_row_id"
"""The column of a primary key that MySQL generates (`sql_generate_invisible_primary_key`)."""
_CHARSETS = names_of(Encoding.TEXT, Encoding.ENUM, Encoding.SET)


@dataclass(frozen=True)
class AlteredColumn:
    """A column of a table after a statement.

    Attributes:
        column: its character set is empty if it takes that of the table.
        before: its name before the statement; None if the statement adds it.
        action: the action that adds or modifies it, if any.
        widens: CONVERT TO CHARACTER SET applies to it: its type may become a longer text type.
    """

    column: Column
    before: str | None
    action: AddColumn | ModifyColumn | None = None
    widens: bool = False


@dataclass(frozen=True)
class Key:
    """The key of a table.

    Attributes:
        columns: in key order; empty for no key.
        sure: False if a unique key may have become the key, or may no longer be it.
        primary: it is the primary key. Then no unique key can replace it.
        others: the table may have unique keys other than this key.
    """

    columns: tuple[str, ...]
    sure: bool
    primary: bool = False
    others: bool = True


def alter_columns(columns: Sequence[Column], actions: Sequence[Action]) -> list[AlteredColumn]:
    """Return the columns after a statement with these actions, in order.

    Raises:
        NotLoggedError: a column does not exist, or exists already, or this depends on the server.
    """
    _refuse_doubtful(actions)
    effective = [action for action in actions if not _is_noop(action, columns)]
    dropped = {a.name.lower() for a in effective if isinstance(a, DropColumn)}
    renamed = {a.old.lower(): a.new for a in effective if isinstance(a, RenameColumn)}
    modified = {a.old.lower(): a for a in effective if isinstance(a, ModifyColumn)}
    _require(columns, [*dropped, *renamed, *modified])
    found: list[AlteredColumn] = []
    for column in columns:
        name = column.name.lower()
        if (change := modified.get(name)) is not None:
            found.append(AlteredColumn(as_column(change.definition), column.name, change))
        elif name not in dropped:
            found.append(AlteredColumn(replace(column, name=renamed.get(name, column.name)), column.name))
    for action in effective:
        if isinstance(action, AddColumn):
            _insert(found, AlteredColumn(as_column(action.definition), None, action), action.place)
        elif isinstance(action, ModifyColumn) and action.place is not None:
            moved = next(one for one in found if one.action is modified[action.old.lower()])
            found.remove(moved)
            _insert(found, moved, action.place)
    _require_distinct(found)
    return _convert(found, effective)


def alter_key(key: Key, actions: Sequence[Action], after: Sequence[AlteredColumn]) -> Key:
    """Return the key after a statement with these actions; `after`: the columns after it."""
    others = key.others or any(isinstance(action, ChangeIndexes) for action in actions)
    dropped = any(isinstance(action, DropKey) for action in actions)
    kept = tuple(one.column.name for one in kept_key_columns(key, after))
    for action in actions:
        # MariaDB looks for the primary key in the table before the statement, which also drops it.
        if isinstance(action, SetKey) and not (action.if_not_exists and (key.primary or dropped)):
            if action.if_not_exists and key.columns:
                return Key(kept, sure=False, others=others)  # it may be a unique key, which a primary key replaces
            known = {one.column.name.lower(): one.column.name for one in after}
            _require([one.column for one in after], [name.lower() for name in action.columns])
            columns = tuple(known[name.lower()] for name in action.columns)
            return Key(columns, sure=True, primary=True, others=others)
    if dropped:
        return Key((), sure=not others, others=others)
    if key.primary and kept:
        return Key(kept, sure=True, primary=True, others=others)
    changed = any(isinstance(action, ChangeIndexes | ModifyColumn | DropColumn) for action in actions)
    return Key(kept, key.sure and not (others and changed), others=others)


def kept_key_columns(key: Key, after: Sequence[AlteredColumn]) -> list[AlteredColumn]:
    """Return the columns that a key has after a statement that does not name it.

    Servers take the first column in the new order that had the name, or that is added with it
    (`mysql_prepare_alter_table`). So a column that is dropped and added again stays in the key.
    """
    found: dict[str, AlteredColumn] = {}
    for one in after:
        found.setdefault((one.before or one.column.name).lower(), one)
    return [found[name.lower()] for name in key.columns if name.lower() in found]


def may_move_first_column(columns: Sequence[Column], actions: Sequence[Action]) -> bool:
    """Return whether a statement puts a column before one that may be a generated key, which MySQL keeps first."""
    placed = any(isinstance(action, AddColumn | ModifyColumn) and action.place == FIRST for action in actions)
    return placed and bool(columns) and columns[0].name == GENERATED_KEY


def _is_noop(action: Action, columns: Sequence[Column]) -> bool:
    """Return whether IF EXISTS or IF NOT EXISTS makes an action a no-op."""
    names = {column.name.lower() for column in columns}
    match action:
        case AddColumn(definition, _, True):
            return definition.name.lower() in names
        case DropColumn(name, True):
            return name.lower() not in names
        case RenameColumn(old, _, True) | ModifyColumn(old, _, _, True):
            return old.lower() not in names
    return False


def _refuse_doubtful(actions: Sequence[Action]) -> None:
    """Refuse ADD COLUMN IF NOT EXISTS in a statement with another action on the same column.

    The manual does not say which of the actions MariaDB skips.
    """
    added = {a.definition.name.lower() for a in actions if isinstance(a, AddColumn) and a.if_not_exists}
    names = [name.lower() for action in actions for name in _names(action)]
    if twice := [name for name in sorted(added) if names.count(name) > 1]:
        raise NotLoggedError(f"several actions concern column {twice[0]}, and one of them has IF NOT EXISTS")


def _names(action: Action) -> set[str]:
    match action:
        case AddColumn(definition):
            return {definition.name}
        case ModifyColumn(old, definition):
            return {old, definition.name}
        case RenameColumn(old, new):
            return {old, new}
        case DropColumn(old):
            return {old}
    return set()


def _require(columns: Sequence[Column], names: Sequence[str]) -> None:
    missing = set(names) - {column.name.lower() for column in columns}
    if missing:
        raise NotLoggedError(f"the table had no column {min(missing)} at this position")


def _require_distinct(found: Sequence[AlteredColumn]) -> None:
    names = [one.column.name.lower() for one in found]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise NotLoggedError(f"the table already had a column {min(twice)} at this position")


def _insert(found: list[AlteredColumn], one: AlteredColumn, place: str | None) -> None:
    if place is None:
        found.append(one)
    elif place == FIRST:
        found.insert(0, one)
    else:
        _require([other.column for other in found], [place.lower()])
        at = [other.column.name.lower() for other in found].index(place.lower())
        found.insert(at + 1, one)


def _convert(found: list[AlteredColumn], actions: Sequence[Action]) -> list[AlteredColumn]:
    """Return the columns after CONVERT TO CHARACTER SET. In MySQL, a column defined with another one keeps its own."""
    charset = next((action.charset for action in actions if isinstance(action, ConvertCharset)), None)
    if charset is None:
        return found
    return [
        replace(
            one, column=replace(one.column, charset="" if _has_other_charset(one, charset) else charset), widens=True
        )
        if one.column.type in _CHARSETS
        else one
        for one in found
    ]


def _has_other_charset(one: AlteredColumn, charset: str) -> bool:
    return one.action is not None and one.action.definition.charset not in {"", charset}
