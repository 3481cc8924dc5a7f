"""A quiet point: the loader runs until it is done, what it tells to do is done, and both sides are compared."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from tests.chaos.access.command import Command, Ended
from tests.chaos.access.source import Session
from tests.chaos.comparison.history_starts import Emptied
from tests.chaos.comparison.tables import differences
from tests.chaos.cures.commands import asks_to_run_again, commands, is_gone, must_be_excluded, named_tables
from tests.chaos.cures.refusals import is_known
from tests.chaos.cures.row_skips import is_chosen, skip_rows

_ATTEMPTS = 8
"""Runs of the loader, each followed by the cures it printed, until the tables must be equal."""


class Failure(AssertionError):
    """The loader broke its promise; the text says how, `tables` which ones are concerned, if any."""

    def __init__(self, text: str, tables: Sequence[str] = (), what: str = "") -> None:
        super().__init__(text)
        self.tables, self.what = tuple(tables), what


class QuietPoint:
    """Brings the warehouse to where the server of the reader is, while nobody writes."""

    def __init__(self, command: Command, reader: Session, say: Callable[[str], None]) -> None:
        self._command, self._reader, self._say = command, reader, say
        self._stop = ""
        self._excluded: set[str] = set()  # at some time
        self.stops: list[tuple[str, int]] = []
        """Stops of intervals that all tables have, as positions and seqnos."""
        self.emptied = Emptied(reader)

    def settle(self, first: Ended | None = None) -> int:
        """Run the loader and what it asks for until it is done, then compare.

        Raises:
            Failure: an error that is not on the list, no progress, or tables that differ.
        """
        self._reader.drop_lost_tables()
        ended = first or self._command.run("run")
        for attempt in range(_ATTEMPTS):
            self.judge(ended)
            if ended.code == 0 and self._complete(ended):
                self._note(ended)
                begun = self.emptied.newest(self.stops)
                if found := differences(self._reader.server, self._reader, self._command, begun):
                    text = "\n  ".join(map(str, found))
                    raise Failure(f"exit code 0, and tables differ:\n  {text}", [one.table for one in found])
                return attempt + 1
            self._cure(ended)
            before, ended = ended, self._command.run("run")
            if ended.code and _facts(ended) == _facts(before):
                raise Failure(f"two runs without progress:\n{shown(ended)}", *concerned(ended.errors[0]))
        raise Failure(f"not done after {_ATTEMPTS} runs; the last one:\n{shown(ended)}")

    def _complete(self, ended: Ended) -> bool:
        """Whether nothing is left in the log: the newest interval reaches its end, or two runs stop at the same place.

        A run that finds what a killed run had planned reads nothing beyond it.
        """
        document = ended.document
        if ended.arguments[0] != "run":
            return True  # a load of a quiet server
        intervals = document.get("intervals") if isinstance(document, dict) else None
        if not intervals:
            return True
        before, self._stop = self._stop, intervals[-1]["stop"]
        return self._stop in {before, self._log_end()}

    def _note(self, ended: Ended) -> None:
        document = ended.document if ended.arguments[0] == "run" else None
        for one in (document or {}).get("intervals") or []:
            self.stops.append((one["stop"], one["stop_seqno"]))

    def _log_end(self) -> str:
        words = "MASTER STATUS" if self._reader.server.kind == "mariadb" else "BINARY LOG STATUS"
        rows = self._reader.rows(f"SHOW {words}")
        return f"{rows[0][0]}:{rows[0][1]}" if rows else ""

    def judge(self, ended: Ended) -> None:
        """Look at how a run of the command ended.

        Raises:
            Failure: it left a traceback, or an error that is not on the list.
        """
        self._excluded.update(self._command.excluded)
        if "Traceback (most recent call last)" in ended.stdout + ended.stderr:
            raise Failure(f"a traceback:\n{shown(ended)}")
        if ended.code == 0:
            return
        errors = ended.errors
        if not errors or ended.code not in {3, 4}:
            about = concerned(errors[0]) if errors else ()
            raise Failure(f"an error that says nothing to an operator:\n{shown(ended)}", *about)
        if unknown := [one for one in errors if not is_known(one, self._excluded)]:
            raise Failure(f"an error that is not on the list: {unknown[0]}\n{shown(ended)}", *concerned(unknown[0]))

    def _cure(self, ended: Ended) -> None:
        """Run the commands that the errors of a run print, exactly as they are printed; each once."""
        run, skipped = set[str](), set[str | None]()
        for error in ended.errors:
            found = commands(error)
            again = [one for one in found if "initial-load" in one]
            self._say(f"  refused: {error['what']} ({error['where']}): {error['why']}; {error['hint']}")
            if must_be_excluded(f"{error['why']} {error['hint']}"):
                self._exclude(concerned(error)[0])
                continue
            if not found and not asks_to_run_again(error):
                raise Failure(f"an error without a command that cures it: {error}", *concerned(error))
            if is_chosen(error) and error["where"].get("table") not in skipped:
                skipped.add(error["where"].get("table"))
                if why := skip_rows(self._command, error, self._say):
                    raise Failure(f"a cure that does not work: {why}", *concerned(error))
                continue
            for line in (one for one in again[:1] or found if one not in run):
                run.add(line)
                done = self._command.shell(line)
                self._say(f"  $ {line} -> {done.code}")
                if must_be_excluded(done.stderr):
                    self._exclude(named_tables(line))
                if is_gone(done.stderr) and not set(concerned(error)[0]) & set(self._reader.tables()):
                    self._run_past(error)
                    continue
                if done.code in {1, 2} or "Traceback (most recent call last)" in done.stderr:
                    raise Failure(f"a cure that does not work: {line}\n{shown(done)}", *concerned(error))

    def _run_past(self, error: dict[str, Any]) -> None:
        """Let a run read how a table was dropped or renamed. Exclude the table if the run does not get past its error."""
        ended = self._command.run("run")
        self.judge(ended)
        if _fact(error) in _facts(ended):
            self._exclude(concerned(error)[0])

    def _exclude(self, tables: Sequence[str]) -> None:
        self._command.excluded += tables
        self._command.configure()


def _facts(ended: Ended) -> list[tuple[Any, Any]]:
    return [_fact(one) for one in ended.errors]


def _fact(error: dict[str, Any]) -> tuple[Any, Any]:
    return error["what"], error["where"]


def concerned(error: dict[str, Any]) -> tuple[list[str], str]:
    """Return the tables that an error is about, without their database, and what it says, without names and numbers."""
    table = error["where"].get("table", "").partition(".")[2]
    return [table] if table else [], re.sub(r"\b[cp]\d+\.\S+|\d+|'[^']*'|`[^`]*`", "?", error["what"])


def shown(ended: Ended) -> str:
    """Return a run with the ends of what it printed."""
    return f"$ loader {' '.join(ended.arguments)} -> {ended.code}\n{ended.stdout[-6000:]}\n{ended.stderr[-6000:]}"
