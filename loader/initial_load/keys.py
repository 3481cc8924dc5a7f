"""Bounds of chunks as SQL. The server orders and compares keys in its own collations.

A bound is the text of each key column: strings as hex digits of their bytes in the column's character set; numbers and
temporal values as the server writes them, floating-point numbers with all digits; ENUM, SET and BIT as numbers, because
their columns are ordered by number; UUID and addresses as text.
"""

from __future__ import annotations

import re

from loader.errors import StagedDataError
from loader.initial_load.documents import Bound, KeyColumn, LoadPlan
from loader.model.table import Column
from loader.source.schemas import quote_name
from loader.types.catalogue import type_of
from loader.types.column_type import KeyBound

_EXPRESSIONS = {
    KeyBound.NUMBER: "CAST({} AS CHAR)",
    KeyBound.FLOAT: "CAST({} AS DOUBLE)",  # a number and no text: see server_text of the types
    KeyBound.TEMPORAL: "CAST({} AS CHAR)",
    KeyBound.ADDRESS: "CAST({} AS CHAR)",
    KeyBound.INDEX: "CAST(CAST({} AS UNSIGNED) AS CHAR)",
    KeyBound.YEAR: "CAST({} + 0 AS CHAR)",
    KeyBound.BYTES: "HEX({})",
}
_HEX = re.compile(r"[0-9A-Fa-f]*")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_FLOAT = re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")
_MOMENT = re.compile(r"-?[0-9:. -]+")
_ADDRESS = re.compile(r"[0-9a-f:.-]+")
_INEXACT = 1 << 53  # a double holds every integer below this
_LISTED = 1000  # ENUM and SET ranges with fewer values are listed value by value


def bound_expression(column: Column) -> str:
    """Return the expression that reads a key column's part of a bound."""
    name = quote_name(column.name)
    return _EXPRESSIONS[type_of(column).key_bound].format(name)


def range_condition(plan: LoadPlan, lower: Bound | None, upper: Bound | None) -> str:
    """Return the condition for keys after `lower` up to and including `upper`.

    Row values are expanded, because servers do not use an index for ranges such as `(a, b) > (1, 2)`. Servers evaluate
    the condition for every row that they read by the index, so it has as few comparisons as possible.
    """
    shared = shared_columns(lower, upper)
    conditions = _equal_columns(plan, (lower or ())[:shared])
    key = plan.key[shared:]
    if lower is not None:
        conditions.append(_beyond(plan, key, lower[shared:], after=True))
    if upper is not None:
        conditions.append(_beyond(plan, key, upper[shared:], after=False))
    return " AND ".join(f"({condition})" for condition in conditions) or "TRUE"


def range_parts(plan: LoadPlan, lower: Bound | None, upper: Bound | None) -> tuple[str, ...]:
    """Return conditions that a row of the range fulfils exactly one of, in the order of the index.

    A server evaluates fewer comparisons for them than for range_condition. They are only valid if a row fulfils
    `middle_condition`: a collation may treat different bounds as equal.
    """
    middle = middle_condition(plan, lower, upper)
    if middle is None and lower is not None and upper is not None:
        return (range_condition(plan, lower, upper),)
    start = shared_columns(lower, upper) + 1 if middle else 0
    before = [] if lower is None else reversed(_side_parts(plan, lower, start, after=True))
    behind = [] if upper is None else _side_parts(plan, upper, start, after=False)
    return (*before, *filter(None, [middle]), *behind) or ("TRUE",)


def middle_condition(plan: LoadPlan, lower: Bound | None, upper: Bound | None) -> str | None:
    """Return the condition for keys that are between the bounds by the first column in which the bounds differ.

    It is None if a bound is missing, or if that column is the last one.
    """
    place = shared_columns(lower, upper)
    if lower is None or upper is None or place == len(plan.key) - 1:
        return None
    ends = [_end(plan, lower, place, after=True), _end(plan, upper, place, after=False)]
    return " AND ".join([*_equal_columns(plan, lower[:place]), *ends])


def _side_parts(plan: LoadPlan, bound: Bound, start: int, *, after: bool) -> list[str]:
    """Return the conditions for keys on a side of a bound, by the first column that differs from it."""
    return [
        " AND ".join([*_equal_columns(plan, bound[:place]), _end(plan, bound, place, after=after)])
        for place in range(start, len(plan.key))
    ]


def _end(plan: LoadPlan, bound: Bound, place: int, *, after: bool) -> str:
    part = plan.key[place]
    equal = not after and place == len(plan.key) - 1
    column = plan.definition.column(part.name)
    return _compared(column, bound[place], rising=after != part.descending, equal=equal)


def _equal_columns(plan: LoadPlan, values: Bound) -> list[str]:
    """Return the conditions for the values of the first columns of the key."""
    return [_equal(plan.definition.column(part.name), text) for part, text in zip(plan.key, values, strict=False)]


def shared_columns(lower: Bound | None, upper: Bound | None) -> int:
    """Return how many of the first columns have the same value in both bounds. It is less than all columns."""
    shared = 0
    while lower and upper and shared < len(lower) - 1 and lower[shared] == upper[shared]:
        shared += 1
    return shared


def up_to_condition(plan: LoadPlan, place: int, text: str) -> str:
    """Return the condition for keys whose column at a place is not after a value, in the order of the index."""
    part = plan.key[place]
    return _compared(plan.definition.column(part.name), text, rising=part.descending, equal=True)


def _beyond(plan: LoadPlan, key: tuple[KeyColumn, ...], bound: Bound, *, after: bool) -> str:
    """Return the condition for keys after the bound, or up to and including the bound."""
    column, text = plan.definition.column(key[0].name), bound[0]
    rising = after != key[0].descending
    if len(key) == 1:
        return _compared(column, text, rising=rising, equal=not after)
    passed = _compared(column, text, rising=rising, equal=False)
    rest = _beyond(plan, key[1:], bound[1:], after=after)
    return f"{passed} OR ({_equal(column, text)} AND ({rest}))"


def _compared(column: Column, text: str, *, rising: bool, equal: bool) -> str:
    name = quote_name(column.name)
    most = _most(column)
    if most is None or most >= _LISTED:
        value = name if most is None else f"CAST({name} AS UNSIGNED)"
        return f"{value} {'>' if rising else '<'}{'=' if equal else ''} {literal(column, text)}"
    # Servers look up single values of ENUM and SET in an index, but not ranges.
    at = int(literal(column, text))
    step = 0 if equal else 1
    values = range(at + step, most + 1) if rising else range(at - step + 1)
    return f"{name} IN ({', '.join(map(str, values))})" if values else "FALSE"


def _equal(column: Column, text: str) -> str:
    """Return the condition for one value of a key column. Servers compare the numbers of ENUM and SET as doubles."""
    exact = (_most(column) or 0) < _INEXACT
    name = quote_name(column.name)
    return f"{name if exact else f'CAST({name} AS UNSIGNED)'} = {literal(column, text)}"


def _most(column: Column) -> int | None:
    """Return the highest number of an ENUM or SET, or None for other types."""
    if column.type == "enum":
        return len(column.labels)
    return (1 << len(column.labels)) - 1 if column.type == "set" else None


def literal(column: Column, text: str) -> str:
    """Return a key column's part of a bound as a literal of its type.

    Raises:
        StagedDataError: the text is no value of the type, so the plan is damaged.
    """
    bound = type_of(column).key_bound
    if bound in {KeyBound.NUMBER, KeyBound.INDEX, KeyBound.YEAR}:
        return _checked(_NUMBER, column, text)
    if bound is KeyBound.FLOAT:
        return _checked(_FLOAT, column, text) + ("" if "e" in text else "e0")  # without an exponent it is a DECIMAL
    if bound is KeyBound.TEMPORAL:
        return f"'{_checked(_MOMENT, column, text)}'"
    if bound is KeyBound.ADDRESS:
        return f"'{_checked(_ADDRESS, column, text)}'"
    digits = _checked(_HEX, column, text)
    return f"_{column.charset} X'{digits}'" if column.charset else f"X'{digits}'"


def _checked(pattern: re.Pattern[str], column: Column, text: str) -> str:
    if not pattern.fullmatch(text):
        raise StagedDataError(
            f"the chunk bound {text!r} is not a value of type {column}",
            hint="restore the plan.json of the load",
            column=column.name,
        )
    return text
