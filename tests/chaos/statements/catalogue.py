"""What statements about tables are made from."""

from __future__ import annotations

from random import Random

from tests.chaos.access.modes import MODES
from tests.chaos.access.source import Session
from tests.chaos.statements.transactions import Table, change


class Catalogue:
    """What a writer of DDL may use: its session, its dice, and the tables that there are."""

    def __init__(self, rng: Random, session: Session, kind: str, *, alone: bool = False) -> None:
        self.alone = alone  # no other writer changes tables
        self.rng, self.session, self.kind = rng, session, kind
        found = session.tables()
        self.names = [one for one in found if one not in MODES]
        self._kept = [one for one in found if one in MODES]

    def some(self, count: int, *, kept: bool = False) -> list[Table]:
        """Return `count` different tables, or an empty list if there are fewer. `kept`: also those that keep more."""
        names = self.names + self._kept * kept
        chosen = self.rng.sample(names, count) if len(names) >= count else []
        return [Table(self.session, one) for one in chosen]

    def keeping(self) -> list[Table]:
        """Return one of the tables that keep more, or an empty list if there is none."""
        return [Table(self.session, self.rng.choice(self._kept))] if self._kept else []

    def changes(self, *names: str) -> list[str]:
        """Return some changes of rows in tables by the names and columns that they have now."""
        found = [Table(self.session, one) for one in names]
        return [change(self.rng, one) for one in found if one.columns for _ in range(self.rng.randint(0, 2))]

    def do(self, *statements: str) -> None:
        """Run statements; the server may refuse any of them."""
        for one in statements:
            self.session.execute(one)
