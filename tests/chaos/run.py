"""The loop: writers write, the loader runs, cures are tried, both sides are compared."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from infra.s3server import S3Server
from infra.servers import Server
from tests.chaos.access.columns import quoted
from tests.chaos.access.command import Command, Ended, grants
from tests.chaos.access.dump import dump
from tests.chaos.access.modes import HISTORY, MODES
from tests.chaos.access.source import DATABASE, History, Session
from tests.chaos.comparison.history_starts import is_noted
from tests.chaos.comparison.tables import location
from tests.chaos.cures.commands import is_gone
from tests.chaos.faults.choice import BEFORE, choose
from tests.chaos.faults.replica import start_replica, take_over, take_over_dead, why_stopped
from tests.chaos.quiet_point import QuietPoint
from tests.chaos.scenario import Scenario
from tests.chaos.statements import ddl
from tests.chaos.statements.schema import create_table, table_name
from tests.chaos.statements.transactions import Table, insert, transaction


class Run:
    """One scenario on one server. `say` is given each line of the protocol."""

    def __init__(
        self, scenario: Scenario, server: Server, home: Path, say: Callable[[str], None], s3: S3Server | None = None
    ) -> None:
        self.scenario, self.server, self.home, self.say = scenario, server, home, say
        self.history = History()
        self.command = Command(home / "loader", server, scenario.catalog, scenario.transport, scenario.master, s3)
        self.command.keeps_columns = scenario.keeps_columns
        self.reader = Session(server, History(), "reader")
        self.replica: Server | None = None
        self.before: dict[str, list[str]] = {}
        """The tables as they were before the last round, as statements."""
        self._writing: list[Session] = []
        self._reload_history = False
        self.quiet = QuietPoint(self.command, self.reader, say)

    def begin(self) -> None:
        """Make the first tables and load them."""
        if self.scenario.replicated:
            self.replica = start_replica(self.server, self.home / "replica", self.scenario.options)
        rng, session = Random(f"begin {self.scenario.seed}"), self._session("setup")
        for one in (*grants(self.scenario.kind), f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}"):
            session.execute(one)
        modes = [] if "modes" in self.scenario.without else list(MODES)
        for name in [*modes, *[""] * self.scenario.tables]:
            keyed = name in MODES
            name = name or table_name(rng, set(session.tables()))  # noqa: PLW2901
            session.execute(create_table(rng, self.scenario.kind, name, keyed=keyed))
            if name in session.tables():
                session.execute(insert(rng, Table(session, name), rows=rng.choice([0, 3, 20, 200])))
        session.close()
        self._delete_invalid_keys()
        self.command.configure()
        self.command.warm()
        self.quiet.settle(self._load())

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
            self.say(f"part {place}: equal after {self.quiet.settle(None if place else self._load())} runs")

    def round(self, number: int) -> None:
        """Write at random, then make both sides equal and compare them."""
        self.history.round = number
        before = len(self.history.statements)
        writers = [
            threading.Thread(target=self._write, args=(number, writer), name=f"w{writer}")
            for writer in range(self.scenario.writers)
        ]
        rng = Random(f"faults {self.scenario.seed} {number}")
        fault = choose(rng, self.scenario)
        if fault in BEFORE:
            fault(self, rng)
        self.before = dump(self.reader)
        for one in writers:
            one.start()
        try:
            if fault not in BEFORE:
                fault(self, rng)
        finally:
            for one in writers:
                one.join()
        self._end_prepared(rng)
        self._delete_invalid_keys()
        done = self.history.statements[before:]
        failed = sum(1 for one in done if one.error)
        started = time.monotonic()
        if self._reload_history:
            self._reload_history = False
            self.loader("run")
            self.loader("initial-load", "--table", f"{DATABASE}.{HISTORY}", "--again")
        runs = self.quiet.settle()
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
        if is_gone(ended.stdout + ended.stderr):
            self.say(f"  gone before it was read: {arguments}")
        elif ended.code != -9:
            self.quiet.judge(ended)

    def has_replica(self) -> bool:
        """Return whether a replica can take over; give up one that stopped by itself."""
        if self.replica and (why := why_stopped(self.replica)):
            self.say(f"  the replica stopped, and is given up: {why[:300]}")
            self.replica.kill()
            self.replica = None
        return self.replica is not None

    def fail_over(self) -> None:
        """Promote the replica; the loader and all writers use it from now on."""
        assert self.replica
        if not take_over(self.server, self.replica):
            raise AssertionError("the replica did not catch up")
        old = self.server
        self._use(self.replica)
        self.replica = old

    def lose_server(self) -> None:
        """Kill the server for good and promote the replica; the loader and all writers use it from now on."""
        assert self.replica
        self.server.kill()
        take_over_dead(self.replica)
        self._use(self.replica)
        self.replica = None
        # Where the lost log had the statements about the history is not known: its next load begins it anew.
        sent = (one for one in self.history.statements if one.round == self.history.round)
        self._reload_history = any(is_noted(one.sql) for one in sent)

    def _use(self, server: Server) -> None:
        self.server = self.command.server = self.reader.server = server
        self.reader.close()
        for one in self._writing:
            one.server = server
        self.command.configure()
        self.quiet.stops.clear()
        self.quiet.emptied.restart()

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
        self.quiet.judge(ended)

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
        self._writing.append(session)
        for step in range(rng.choice([10, 40, 80])):
            if rng.random() < 0.35:
                alone = self.scenario.writers == 1
                ddl.run(ddl.Catalogue(rng, session, self.scenario.kind, alone=alone), self.scenario.without)
                continue
            names = session.tables()
            tables = [Table(session, one) for one in rng.sample(names, min(3, len(names)))]
            if usable := [one for one in tables if one.columns]:
                transaction(rng, session, usable, f"{number}-{step}")
        self._writing.remove(session)
        session.close()

    def write_once(self, rng: Random, writer: str) -> None:
        """Write a transaction at random, in a session of its own."""
        session = self._session(writer)
        names = session.tables()
        tables = [Table(session, one) for one in rng.sample(names, min(3, len(names)))]
        if usable := [one for one in tables if one.columns]:
            transaction(rng, session, usable, f"{self.history.round}-{writer}")
        session.close()

    def _delete_invalid_keys(self) -> None:
        """Delete rows with an invalid date in the key: statements with IGNORE can write one, and no load takes it."""
        session = self._session("setup")
        for name in session.tables():
            unique = session.unique_columns(name)
            for column in session.columns(name):
                if column.name in unique and column.type in {"date", "datetime", "timestamp"}:
                    # As text: MySQL looks for no TIMESTAMP before 1970 in an index, although there are zeros.
                    session.execute(f"DELETE FROM {quoted(name)} WHERE CAST({column.quoted} AS CHAR) < '1000-01-01'")
        session.close()

    def _session(self, writer: str) -> Session:
        return Session(self.server, self.history, writer, self.scenario.image)

    def _load(self) -> Ended:
        return self.command.run("initial-load")
