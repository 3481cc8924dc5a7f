"""The loop: writers write, the loader runs, cures are tried, both sides are compared."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from infra.servers import Server
from tests.chaos import ddl
from tests.chaos.command import Command, Ended, grants
from tests.chaos.compare import differences, location
from tests.chaos.cures import asks_to_run_again, commands
from tests.chaos.faults import BEFORE, choose
from tests.chaos.refusals import is_known
from tests.chaos.replica import start_replica, take_over
from tests.chaos.scenario import Scenario
from tests.chaos.schema import create_table, table_name
from tests.chaos.source import DATABASE, History, Session
from tests.chaos.workload import Table, insert, transaction

_ATTEMPTS = 8
"""Runs of the loader, each followed by the cures it printed, until the tables must be equal."""


class Failure(AssertionError):
    """The loader broke its promise; the text says how, `tables` which ones are concerned, if any."""

    def __init__(self, text: str, tables: Sequence[str] = (), what: str = "") -> None:
        super().__init__(text)
        self.tables, self.what = tuple(tables), what


class Run:
    """One scenario on one server. `say` is given each line of the protocol."""

    def __init__(self, scenario: Scenario, server: Server, home: Path, say: Callable[[str], None]) -> None:
        self.scenario, self.server, self.home, self.say = scenario, server, home, say
        self.history = History()
        self.command = Command(home / "loader", server, scenario.catalog, scenario.transport)
        self.reader = Session(server, History(), "reader")
        self.replica: Server | None = None
        self.stops: list[tuple[str, int]] = []
        """Stops of intervals that all tables have, as positions and seqnos."""

    def begin(self) -> None:
        """Make the first tables and load them."""
        if self.scenario.replicated:
            self.replica = start_replica(self.server, self.home / "replica", self.scenario.options)
        rng, session = Random(f"begin {self.scenario.seed}"), self._session("setup")
        for one in (*grants(self.scenario.kind), f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}"):
            session.execute(one)
        for _ in range(self.scenario.tables):
            name = table_name(rng, set(session.tables()))
            session.execute(create_table(rng, self.scenario.kind, name))
            if name in session.tables():
                session.execute(insert(rng, Table(session, name), rows=rng.choice([0, 3, 20, 200])))
        session.close()
        self.command.configure()
        self._settle(self._load())

    def play(self, script: str) -> None:
        """Run a script of `-- load` and `-- interval` instead of random statements, and settle after each part."""
        session = self._session("setup")
        for one in (*grants(self.scenario.kind), f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}"):
            session.execute(one)
        self.command.configure()
        load, *intervals = re.split(r"^-- interval$", script.replace("-- load\n", ""), flags=re.MULTILINE)
        for place, part in enumerate([load, *intervals]):
            for sql in filter(str.strip, re.split(r";$", part, flags=re.MULTILINE)):
                if error := session.execute(sql.strip()):
                    self.say(f"error {error}: {sql.strip()}")
            self.say(f"part {place}: equal after {self._settle(None if place else self._load())} runs")

    def round(self, number: int) -> None:
        """Write at random, then make both sides equal and compare them."""
        self.history.round = number
        before = len(self.history.statements)
        writers = [
            threading.Thread(target=self._write, args=(number, writer), name=f"w{writer}")
            for writer in range(self.scenario.writers)
        ]
        rng = Random(f"faults {self.scenario.seed} {number}")
        fault = choose(rng, self.scenario.without)
        if fault in BEFORE:
            fault(self, rng)
        for one in writers:
            one.start()
        try:
            if fault not in BEFORE:
                fault(self, rng)
        finally:
            for one in writers:
                one.join()
        self._end_prepared(rng)
        done = self.history.statements[before:]
        failed = sum(1 for one in done if one.error)
        started = time.monotonic()
        runs = self._settle(None)
        self.history.write(self.home / "history.sql")
        self.say(
            f"round {number}, {fault.__name__}: {len(done)} statements, {failed} of them refused by the server; equal after {runs} runs"
            f" of the loader in {time.monotonic() - started:.0f} s"
        )

    def loader(self, *arguments: str, kill_after: float | None = None) -> None:
        """Run a command while the writers write; what it refuses must be on the list.

        Raises:
            Failure: it is not.
        """
        ended = self.command.run(*arguments, kill_after=kill_after)
        if ended.code != -9:
            self._judge(ended)

    def fail_over(self) -> None:
        """Promote the replica; the loader and all writers use it from now on."""
        assert self.replica
        if not take_over(self.server, self.replica):
            raise AssertionError("the replica did not catch up")
        self.server, self.replica = self.replica, self.server
        self.command.server = self.reader.server = self.server
        self.reader.close()
        self.command.configure()
        self.stops.clear()

    def loaded_with_key(self) -> list[str]:
        """Tables with a primary key that are in the warehouse."""
        return [
            one for one in self.reader.tables()
            if self.reader.key(one) and location(self.command, DATABASE, one)
        ]  # fmt: skip

    def replay(self, position: str, name: str) -> None:
        """Replay a table, and load it anew where it cannot be replayed.

        Raises:
            Failure: neither makes the table equal.
        """
        ended = self.command.run("replay", "--from", position, "--table", f"{DATABASE}.{name}", "--publish")
        if ended.code:
            self.say(f"  replay refused: {[one['what'] for one in ended.errors]}")
            ended = self.command.run("initial-load", "--table", f"{DATABASE}.{name}", "--again")
        self._judge(ended)

    def _end_prepared(self, rng: Random) -> None:
        """Commit or roll back what an earlier round left prepared; some stay for a later round."""
        for format_number, length, _, data in self.reader.rows("XA RECOVER"):
            name = data[:length] if isinstance(data, str) else data[:length].decode()
            if rng.random() < 0.7 and format_number == 1:
                session = self._session("xa")
                session.execute(f"XA {rng.choice(['COMMIT', 'COMMIT', 'ROLLBACK'])} '{name}'")
                session.close()

    def _write(self, number: int, writer: int) -> None:
        rng = Random(f"{self.scenario.seed} {number} {writer}")
        session = self._session(f"w{writer}")
        for step in range(rng.choice([10, 40, 80])):
            if rng.random() < 0.35:
                ddl.run(ddl.Catalogue(rng, session, self.scenario.kind), self.scenario.without)
                continue
            names = session.tables()
            tables = [Table(session, one) for one in rng.sample(names, min(3, len(names)))]
            if usable := [one for one in tables if one.columns]:
                transaction(rng, session, usable, f"{number}-{step}")
        session.close()

    def _session(self, writer: str) -> Session:
        return Session(self.server, self.history, writer, self.scenario.image)

    def _load(self) -> Ended:
        return self.command.run("initial-load")

    def _settle(self, first: Ended | None) -> int:
        """Run the loader and what it asks for until it is done, then compare.

        Raises:
            Failure: an error that is not on the list, no progress, or tables that differ.
        """
        ended = first or self.command.run("run")
        for attempt in range(_ATTEMPTS):
            self._judge(ended)
            if ended.code == 0 and self._complete(ended):
                if found := differences(self.server, self.reader, self.command):
                    text = "\n  ".join(map(str, found))
                    raise Failure(f"exit code 0, and tables differ:\n  {text}", [one.table for one in found])
                self._note(ended)
                return attempt + 1
            self._cure(ended)
            before, ended = ended, self.command.run("run")
            if ended.code and ended.stdout == before.stdout:
                raise Failure(f"two runs without progress:\n{_shown(ended)}", *concerned(ended.errors[0]))
        raise Failure(f"not done after {_ATTEMPTS} runs; the last one:\n{_shown(ended)}")

    def _complete(self, ended: Ended) -> bool:
        """Whether nothing is left in the log: the newest interval reaches its end, or there was nothing to plan."""
        document = ended.document
        if ended.arguments[0] != "run":
            return True  # a load of a quiet server
        intervals = document.get("intervals") if isinstance(document, dict) else None
        if not intervals:
            return True
        return intervals[-1]["stop"] == self._log_end() or not any(one["new"] for one in intervals)

    def _note(self, ended: Ended) -> None:
        document = ended.document if ended.arguments[0] == "run" else None
        for one in (document or {}).get("intervals") or []:
            self.stops.append((one["stop"], one["stop_seqno"]))

    def _log_end(self) -> str:
        words = "MASTER STATUS" if self.scenario.kind == "mariadb" else "BINARY LOG STATUS"
        rows = self.reader.rows(f"SHOW {words}")
        return f"{rows[0][0]}:{rows[0][1]}" if rows else ""

    def _judge(self, ended: Ended) -> None:
        if "Traceback (most recent call last)" in ended.stdout + ended.stderr:
            raise Failure(f"a traceback:\n{_shown(ended)}")
        if ended.code == 0:
            return
        errors = ended.errors
        if not errors or ended.code not in {3, 4}:
            raise Failure(f"an error that says nothing to an operator:\n{_shown(ended)}")
        if unknown := [one for one in errors if not is_known(one)]:
            raise Failure(f"an error that is not on the list: {unknown[0]}\n{_shown(ended)}", *concerned(unknown[0]))

    def _cure(self, ended: Ended) -> None:
        """Run the commands that the errors of a run print, exactly as they are printed."""
        for error in ended.errors:
            found = commands(error)
            again = [one for one in found if "initial-load" in one]
            self.say(f"  refused: {error['what']} ({error['where']}): {error['why']}; {error['hint']}")
            if not found and not asks_to_run_again(error):
                raise Failure(f"an error without a command that cures it: {error}", *concerned(error))
            for line in again[:1] or found:
                self.say(f"  $ {line}")
                if self.command.shell(line).code == 2:
                    raise Failure(f"a cure that is no valid command: {line}\n{_shown(self.command.shell(line))}")


def concerned(error: dict[str, Any]) -> tuple[list[str], str]:
    """Return the tables that an error names, without their database, and what it says, without its numbers."""
    table = error["where"].get("table", "").partition(".")[2]
    return [table] if table else [], re.sub(r"\d+|'[^']*'|`[^`]*`", "?", error["what"])


def _shown(ended: Ended) -> str:
    return f"$ loader {' '.join(ended.arguments)} -> {ended.code}\n{ended.stdout[-6000:]}\n{ended.stderr[-6000:]}"
