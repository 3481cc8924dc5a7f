"""What a column of the tests is: its definition, and values for it as SQL expressions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

Make = Callable[[Random], str]


@dataclass(frozen=True)
class Kind:
    """A column: its definition, its edges, and a maker of other values. No edges: the server makes the values."""

    declared: str
    edges: tuple[str, ...]
    make: Make | None = None

    def value(self, number: int, random: Random | None) -> str:
        """The edge of that number, counted around; with `random`, in half of all cases a random value."""
        if random and self.make and random.random() < 0.5:
            return self.make(random)
        return self.edges[number % len(self.edges)]


def quoted(text: str) -> str:
    """A text of plain characters as a literal."""
    return f"'{text}'"
