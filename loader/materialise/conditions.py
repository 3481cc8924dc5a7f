"""AND and OR over any number of conditions, as balanced trees.

Spark's analyser walks expressions recursively. A chain of a thousand conditions is a thousand levels deep and overflows
its stack. A balanced tree of them has ten levels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pyspark.sql import Column as Expression
from pyspark.sql import functions as sf


def all_of(conditions: Iterable[Expression]) -> Expression:
    """Return whether every condition holds; true without conditions."""
    listed = list(conditions)
    return _combine(listed, Expression.__and__) if listed else sf.lit(True)


def any_of(conditions: Iterable[Expression]) -> Expression:
    """Return whether at least one condition holds; false without conditions."""
    listed = list(conditions)
    return _combine(listed, Expression.__or__) if listed else sf.lit(False)


def same_values(left: Iterable[Expression], right: Iterable[Expression]) -> Expression:
    """Return whether two lists of values are equal pairwise. NULL equals NULL.

    The values are compared as structs, since Spark turns a join condition back into a chain.
    """
    one, other = (sf.struct(*(value.alias(f"v{n}") for n, value in enumerate(side))) for side in (left, right))
    return one.eqNullSafe(other)


def _combine(conditions: Sequence[Expression], combine: Callable[[Expression, Expression], Expression]) -> Expression:
    if len(conditions) == 1:
        return conditions[0]
    half = len(conditions) // 2
    return combine(_combine(conditions[:half], combine), _combine(conditions[half:], combine))
