"""Make a failure small: leave out statements as long as the failure stays.

Candidates are tried many at once, each in a database of its own, because a run of the loader costs the same for all.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.servers import start_server
from tests.chaos.access.command import Command, Ended, grants
from tests.chaos.access.source import History, Session, Statement
from tests.chaos.comparison.history_starts import Emptied
from tests.chaos.comparison.tables import differences
from tests.chaos.quiet_point import Failure, concerned
from tests.chaos.scenario import Scenario

_AT_ONCE, _STATEMENTS = 12, 800
"""How many scripts, and how many statements in all of them, one run of the loader tries."""


@dataclass(frozen=True)
class Script:
    """Statements before the initial load, and those of one interval after it."""

    before: tuple[str, ...]
    after: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(
            ["-- load", *(f"{one};" for one in self.before), "-- interval", *(f"{one};" for one in self.after)]
        )

    def __len__(self) -> int:
        return len(self.before) + len(self.after)


def reduce(
    scenario: Scenario,
    history: History,
    tables: Mapping[str, list[str]],
    failure: Failure,
    folder: Path,
    seconds: float,
) -> Script | None:
    """Return the shortest script found within the time that fails as the run did; None when none fails.

    `tables` makes those that there were before the last round.
    """
    deadline = time.monotonic() + seconds
    done = [one for one in history.statements if not one.error and one.writer != "setup"]
    setup = [one for one in history.statements if not one.error and one.writer == "setup"]
    names = related_names([*setup, *done], failure.tables)
    kept = [one for one in [*setup, *done] if names is None or _names(one.sql) & names or _is_frame(one.sql)]
    prober = _Prober(scenario, failure, folder)
    last = max(one.round for one in kept)
    made = [sql for name, statements in tables.items() if names is None or name in names for sql in statements]
    short = Script(tuple(made), cut_at(kept, last).after)
    found = prober.first([short]) or prober.first([cut_at(kept, last), cut_at(kept, last + 1)])
    size = max(len(found) // 2, 1) if found else 0
    while found and time.monotonic() < deadline:
        smaller = prober.first(candidates(found, size))
        if smaller:
            found = smaller
        elif size == 1:
            break
        size = max(min(size if smaller else size // 2, len(found) // 2), 1)
    return found


def _is_frame(sql: str) -> bool:
    return sql.split(maxsplit=1)[0] in {"BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "XA", "SET"}


def _names(sql: str) -> set[str]:
    """Every quoted identifier of a statement: among them are its tables."""
    return {one.replace("``", "`") for one in re.findall(r"`((?:[^`]|``)+)`", sql)}


def related_names(statements: Sequence[Statement], tables: Sequence[str]) -> set[str] | None:
    """Names that took part in a statement about tables with one of the tables, directly or not; None for all."""
    if not tables:
        return None
    names, known = set(tables), 0
    while known != len(names):
        known = len(names)
        for one in statements:
            if re.match(
                r"RENAME|ALTER TABLE \S+ RENAME TO|CREATE TABLE \S+ (LIKE|AS)|CREATE TRIGGER|[^;]* REFERENCES ", one.sql
            ):
                found = _names(one.sql) | set(re.findall(r"\btmp_swap\b", one.sql))
                names |= found if found & names else set()
    return names


def cut_at(statements: Sequence[Statement], number: int) -> Script:
    """Everything before a round comes before the load, the rest is one interval."""
    skipped = ("CREATE USER", "GRANT", "CREATE DATABASE", "USE ")
    useful = [one for one in statements if not one.sql.startswith(skipped)]
    return Script(
        tuple(one.sql for one in useful if one.round < number), tuple(one.sql for one in useful if one.round >= number)
    )


def candidates(script: Script, size: int) -> list[Script]:
    """The script without each run of so many statements, the latest of each part first."""
    before, after = script.before, script.after
    found = [Script(before, after[:start] + after[start + size :]) for start in range(0, len(after), size)]
    return found + [Script(before[:start] + before[start + size :], after) for start in range(0, len(before), size)]


class _Prober:
    """Tries scripts on servers of its own."""

    def __init__(self, scenario: Scenario, failure: Failure, folder: Path) -> None:
        self._scenario, self._failure, self._folder = scenario, failure, folder
        self._probes = 0

    def first(self, scripts: Sequence[Script]) -> Script | None:
        """Return the shortest of the first scripts that fail; they are tried some at once."""
        count = max(1, min(_AT_ONCE, _STATEMENTS // max(map(len, scripts))))
        for start in range(0, len(scripts), count):
            some = scripts[start : start + count]
            if failing := self._failing(some):
                return min(failing, key=len)
        return None

    def _failing(self, scripts: Sequence[Script]) -> list[Script]:
        self._probes += 1
        home, chosen = self._folder / f"probe{self._probes}", self._scenario
        with start_server(chosen.kind, home / "server", chosen.options) as server:
            command = Command(home, server, chosen.catalog, chosen.transport, chosen.master, pattern="p*.*")
            command.keeps_columns = chosen.keeps_columns
            command.configure()
            databases = [f"p{place}" for place in range(len(scripts))]
            root = Session(server, History(), "root", database="mysql")
            for one in (*grants(chosen.kind), *(f"CREATE DATABASE {name}" for name in databases)):
                root.execute(one)
            sessions = [Session(server, History(), name, chosen.image, name) for name in databases]
            for session, script in zip(sessions, scripts, strict=True):
                for sql in script.before:
                    session.execute(sql)
            loaded = command.run("initial-load")
            for session, script in zip(sessions, scripts, strict=True):
                for sql in script.after:
                    session.execute(sql)
            ended = command.run("run")
            failing = [
                script
                for session, script in zip(sessions, scripts, strict=True)
                if self._fails(session, command, ended, loaded.errors)
            ]
            server.kill()
        return failing

    def _fails(self, session: Session, command: Command, ended: Ended, before: list[dict[str, Any]]) -> bool:
        own = session.database + "."
        if self._failure.what:
            found = [one for one in ended.errors if concerned(one)[1] == self._failure.what]
            return any(not self._failure.tables or one["where"].get("table", "").startswith(own) for one in found)
        document = ended.document or {}
        if "materialise" not in document:
            return False
        begun = Emptied(session).newest([(one["stop"], one["stop_seqno"]) for one in document.get("intervals") or []])
        named = {one["where"].get("table", "") for one in [*before, *ended.errors]}
        return any(own + one.table not in named for one in differences(session.server, session, command, begun))
