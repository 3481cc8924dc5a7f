"""Conjunctions and disjunctions of any number of conditions.

Spark walks an expression by recursion. A chain of a condition for each of a thousand columns is a thousand levels deep,
which overflows the stack of its analyser; a balanced tree of them has ten levels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pyspark.sql import Column as Expression
from pyspark.sql import functions as sf


def all_of(conditions: Iterable[Expression]) -> Expression:
    """Return whether every condition holds; true if there is none."""
    found = list(conditions)
    return _combine(found, Expression.__and__) if found else sf.lit(True)


def any_of(conditions: Iterable[Expression]) -> Expression:
    """Return whether at least one condition holds; false if there is none."""
    found = list(conditions)
    return _combine(found, Expression.__or__) if found else sf.lit(False)


def same_values(left: Iterable[Expression], right: Iterable[Expression]) -> Expression:
    """Return whether two lists of values are equal one by one, NULL equal to NULL.

    As structs, since Spark turns the condition of a join back into a chain.
    """
    one, other = (sf.struct(*(value.alias(f"v{n}") for n, value in enumerate(side))) for side in (left, right))
    return one.eqNullSafe(other)


def _combine(conditions: Sequence[Expression], combine: Callable[[Expression, Expression], Expression]) -> Expression:
    if len(conditions) == 1:
        return conditions[0]
    half = len(conditions) // 2
    return combine(_combine(conditions[:half], combine), _combine(conditions[half:], combine))
