"""Applies ALTER TABLE statements to a table's schema, and finds where the values of existing rows come from. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from loader.errors import UnsupportedError
from loader.model.charsets import ALWAYS_VALID_CHARSETS, AMBIGUOUS_CHARSETS
from loader.model.table import GROWING_TEXTS, Column, TableName, TableSchema
from loader.schema.alteration import (
    GENERATED_KEY,
    AlteredColumn,
    Key,
    alter_columns,
    alter_key,
    kept_key_columns,
)
from loader.schema.changes import AddColumn, Altered, ColumnDefinition, ModifyColumn, Reload, SetKey, recovery_hint
from loader.schema.constants import NotLoggedError, existing_row_value
from loader.schema.type_preservation import (
    CHANGES_CHARACTERS,
    INTEGERS,
    TEXTS,
    as_column,
    fills_null_with_time,
    keeps_labels,
    max_kept_length,
)

STRICT = 1 << 21 | 1 << 22
"""Bits of sql_mode: STRICT_TRANS_TABLES, STRICT_ALL_TABLES."""

_HIDDEN_CHANGES = "the log does not show how ALTER TABLE changed the rows"


@dataclass(frozen=True)
class Step:
    """An ALTER TABLE: what it does, whether sql_mode was strict, its position, and whether a MariaDB server ran it."""

    altered: Altered
    strict: bool
    position: str
    mariadb: bool


@dataclass(frozen=True)
class ColumnOrigin:
    """A column takes its values from the column that was named `old`.

    The statement may have changed some values without logging them. If a row has one of these, the table must be
    loaded again.

    Attributes:
        old: the name of the source column.
        longest: texts with more characters may have lost trailing whitespace; None if no text can.
        numbered: values 0 and NULL may have become AUTO_INCREMENT numbers.
        dated: NULLs may have become the time of the statement.
        joins_key: the texts of the column are key texts now. Outside the key, several values may have been staged as
            one text.
    """

    old: str
    longest: int | None = None
    numbered: bool = False
    dated: bool = False
    joins_key: bool = False


@dataclass(frozen=True)
class ConstantOrigin:
    """A column has the same value in all existing rows: `text` in staged form, unescaped; None for NULL."""

    text: str | None


Origin = ColumnOrigin | ConstantOrigin


@dataclass(frozen=True)
class Evolution:
    """A table's schema after the steps, and for each column the origin of its values in older rows."""

    schema: TableSchema
    origins: Mapping[str, Origin]


@dataclass(frozen=True)
class _State:
    """A table between two statements."""

    columns: tuple[Column, ...]
    origins: tuple[Origin, ...]
    key: Key


def evolve(old: TableSchema, steps: Sequence[Step], new: TableSchema | None) -> Evolution:
    """Return the schema after the steps, and where its values come from.

    A column may become narrower: strict mode refuses values that do not fit. The schema then has the narrower type, and
    the warehouse may keep the wider one. Not detected: a generated column whose source column changes its type, if the
    text of the source column, and so the generated value, changes.

    Args:
        old: the schema before the steps.
        steps: in the order of the log; empty if no statement altered the table.
        new: the schema of the next table map, from FULL row metadata; None if no row follows.

    Raises:
        UnsupportedError: the log does not have the values of existing rows, or the steps do not lead to `new`.
    """
    origins: tuple[Origin, ...] = tuple(ColumnOrigin(column.name) for column in old.columns)
    # A table without a key in `old` may have one by now: a new unique key that no row has shown yet.
    state = _State(old.columns, origins, Key(old.key, sure=bool(old.key)))
    for step in steps:
        try:
            state = _apply_step(state, step)
        except NotLoggedError as error:
            raise _refusal(old.name, _HIDDEN_CHANGES, str(error), step) from error
    if new is not None:
        state = _with_generated_key_first(state, new)
    derived = TableSchema(old.name, state.columns, state.key.columns)
    if new is not None and (differs := "; ".join(_differences(state, new))):
        raise _refusal(old.name, "the log's table map does not agree with the statements before it", differs)
    after = new or derived
    _check_characters(old, after, state.origins)
    joined = _join_key(old, after, state.origins)
    return Evolution(after, dict(zip((column.name for column in after.columns), joined, strict=True)))


def created_like(name: TableName, other: TableSchema) -> TableSchema:
    """Return the schema of CREATE TABLE name LIKE other."""
    return TableSchema(name, other.columns, other.key)


def _refusal(table: TableName, what: str, why: str, step: Step | None = None) -> UnsupportedError:
    return UnsupportedError(
        what,
        why=why,
        hint=recovery_hint(table, why),
        table=table,
        position=step.position if step else None,
    )


def _with_generated_key_first(state: _State, new: TableSchema) -> _State:
    """Return the state with its generated invisible primary key before all other columns, if `new` has it there.

    MySQL keeps the key first, whatever column a statement puts FIRST (`sql_gipk.cc`).
    """
    names = [column.name for column in state.columns]
    if new.columns[0].name != GENERATED_KEY or GENERATED_KEY not in names:
        return state
    order = sorted(range(len(names)), key=lambda place: names[place] != GENERATED_KEY)
    return replace(
        state,
        columns=tuple(state.columns[place] for place in order),
        origins=tuple(state.origins[place] for place in order),
    )


def _apply_step(state: _State, step: Step) -> _State:
    actions = step.altered.actions
    for action in actions:
        if isinstance(action, Reload):
            raise NotLoggedError(action.reason)
    after = alter_columns(state.columns, actions)
    if step.mariadb and (replaced := _find_replaced(state.columns, after)):
        raise NotLoggedError(f"another column got the name {replaced}, and MariaDB computes generated columns from it")
    if added := [one.column.name for one in kept_key_columns(state.key, after) if one.before is None]:
        raise NotLoggedError(f"the key got the new column {added[0]} in place of the old column of that name")
    before = {column.name: (column, origin) for column, origin in zip(state.columns, state.origins, strict=True)}
    keyed = {name.lower() for action in actions if isinstance(action, SetKey) for name in action.columns}
    origins = []
    for one in after:
        try:
            origins.append(_origin(one, before, step, one.column.name.lower() in keyed))
        except NotLoggedError as error:
            raise NotLoggedError(f"column {one.column.name}: {error}") from error
    return _State(tuple(one.column for one in after), tuple(origins), alter_key(state.key, actions, after))


def _find_replaced(before: Sequence[Column], after: Sequence[AlteredColumn]) -> str:
    """Return the name of a column that was dropped, if another column has it now, or an empty text."""
    kept = {one.before for one in after}
    dropped = {column.name.lower() for column in before if column.name not in kept}
    return next((one.column.name for one in after if one.column.name.lower() in dropped), "")


def _origin(one: AlteredColumn, before: Mapping[str, tuple[Column, Origin]], step: Step, keyed: bool) -> Origin:
    """Return where the values of a column come from after a step."""
    if isinstance(one.action, AddColumn):
        definition = one.action.definition
        return ConstantOrigin(
            existing_row_value(replace(definition, nullable=False) if keyed else definition, strict=step.strict)
        )
    column, origin = before[str(one.before)]
    if (one.widens or keyed) and not step.strict:
        raise NotLoggedError("outside strict mode the server changes values that do not fit")
    if column.charset not in {"", one.column.charset} and one.column.charset in CHANGES_CHARACTERS:
        raise NotLoggedError(f"the conversion to {one.column.charset} changes some characters")
    if one.widens and not keeps_labels(column, one.column.charset):
        raise NotLoggedError("CONVERT TO CHARACTER SET keeps the bytes of labels, which changes their text")
    if isinstance(one.action, ModifyColumn):
        origin = _modified_origin(column, origin, one.action, step)
    if not keyed or column.type != "timestamp":
        return origin
    if isinstance(origin, ColumnOrigin):
        return replace(origin, dated=True)  # MariaDB puts the time of the statement for NULL
    if origin.text is None:
        raise NotLoggedError("the server gave existing rows other values")
    return origin


def _modified_origin(column: Column, origin: Origin, action: ModifyColumn, step: Step) -> Origin:
    new = action.definition
    if not step.strict:
        _require_same_type(column, action)
    longest = max_kept_length(column, new)
    if isinstance(origin, ConstantOrigin):
        if not _same_type(column, new) and not {column.type, as_column(new).type} <= INTEGERS:
            raise NotLoggedError("its type changed after it was added")
        if origin.text is not None and longest is not None and len(origin.text) > longest:
            raise NotLoggedError("it became shorter than its default")
        if new.auto_increment or (origin.text is None and fills_null_with_time(new)):
            raise NotLoggedError("the server gave existing rows other values")
        return origin
    limits = [limit for limit in (origin.longest, longest) if limit is not None]
    return ColumnOrigin(
        origin.old,
        min(limits, default=None),
        origin.numbered or new.auto_increment,
        origin.dated or fills_null_with_time(new),
    )


def _require_same_type(column: Column, action: ModifyColumn) -> None:
    """Refuse a narrower type: outside strict mode the server changes values that do not fit."""
    new = action.definition
    if (
        not _same_type(column, new)
        or new.nullable is False
        or new.positive
        or column.charset
        or column.type in TEXTS | {"varbinary", "vector", "timestamp"}
    ):
        raise NotLoggedError("outside strict mode the server changes values that do not fit")


def _check_characters(old: TableSchema, after: TableSchema, origins: Sequence[Origin]) -> None:
    """Refuse a conversion to a character set that changes some characters."""
    for column, origin in zip(after.columns, origins, strict=True):
        before = old.column(origin.old).charset if isinstance(origin, ColumnOrigin) else column.charset
        if column.charset != before and column.charset in CHANGES_CHARACTERS:
            why = f"column {column.name}: the conversion to {column.charset} changes some characters"
            raise _refusal(old.name, _HIDDEN_CHANGES, why)


def _join_key(old: TableSchema, after: TableSchema, origins: Sequence[Origin]) -> list[Origin]:
    """Return the origins, with a mark on text columns that join the key.

    Outside a key, all byte sequences of a character are staged as this character, and texts may have the form of
    invalid bytes that are staged as hex. So rows with different keys may have one text.

    Raises:
        UnsupportedError: the character set of a column that joins the key encodes some characters in several ways.
    """
    joined: list[Origin] = []
    for column, origin in zip(after.columns, origins, strict=True):
        if column.name in after.key and isinstance(origin, ColumnOrigin) and origin.old not in old.key:
            before = old.column(origin.old)
            if before.charset in AMBIGUOUS_CHARSETS:
                why = f"column {column.name} joins the key, and {before.charset} has several byte sequences for some"
                raise _refusal(old.name, "two keys of the table can have the same text", f"{why} characters")
            may_be_hex = before.type in TEXTS and before.charset not in ALWAYS_VALID_CHARSETS
            joined.append(replace(origin, joins_key=may_be_hex))
        else:
            joined.append(origin)
    return joined


def _same_type(column: Column, new: ColumnDefinition) -> bool:
    return replace(column, name="", charset="") == replace(as_column(new), name="", charset="")


def _differences(state: _State, new: TableSchema) -> Iterator[str]:
    """Yield the differences between the schema that the steps lead to and the schema of the log."""
    expected, found = [c.name for c in state.columns], [c.name for c in new.columns]
    if expected != found:
        yield f"the columns are ({', '.join(found)}), not ({', '.join(expected)})"
        return
    for column, told in zip(state.columns, new.columns, strict=True):
        if not _agrees(column, told):
            yield f"column {column.name} is {told} {told.charset}".strip() + f", not {column} {column.charset}".rstrip()
    if state.key.sure and state.key.columns != new.key:
        yield f"the key is ({', '.join(new.key)}), not ({', '.join(state.key.columns)})"


def _shown_by_catalog(label: str) -> str:
    """Return a label as information_schema shows it, whose character set is utf8mb3."""
    return "".join(character if character <= "\uffff" else "?" for character in label)


def _agrees(column: Column, told: Column) -> bool:
    # CONVERT TO CHARACTER SET may choose a longer TEXT type, even in an earlier interval. No value changes.
    if {column.type, told.type} <= set(GROWING_TEXTS) and GROWING_TEXTS.index(told.type) >= GROWING_TEXTS.index(
        column.type
    ):
        column = replace(column, type=told.type)
    if tuple(map(_shown_by_catalog, told.labels)) == column.labels:
        column = replace(column, labels=told.labels)
    # A column without a character set in the statement has that of the table.
    return (column if column.charset else replace(column, charset=told.charset)) == told
