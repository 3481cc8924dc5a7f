"""The forms of a source's DAGs that do what commands in hints do. On managed Airflow nobody has a shell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from loader.airflow.actions.repair_form import check_form
from loader.errors import UsageError

_WORD = r"""(?:'[^']*'|"'"|,(?=\S)|[^\s;,()'"\\])+"""
"""An argument as `shlex.quote` writes it. Names of tables can hold any character."""
_COMMAND = re.compile(
    r"\bloader (?P<command>release|pause|resume|initial-load|staged restore|extract|follow|schema set|begin|skip"
    rf"|replay|verify|doctor|maintain|run)\b(?!-)(?P<rest>(?: {_WORD})*)"
)
_PLACEHOLDERS = {"SCHEMA.TABLE", "TABLE", "...", "START", "PLACE", "POSITION", "FILE:POS", "TRANSACTION", "TEXT"}
"""Words in hints that a person must replace."""
_REPAIR_OPTIONS = {"--at": "position", "--accept": "accept", "--reason": "reason", "--interval": "position"}
"""Fields of the form of `repair`, by the option of the commands."""


@dataclass(frozen=True)
class CommandForm:
    """A form that does what a command does.

    Attributes:
        dag: which DAG of the source, such as `repair`.
        fields: of the form, by name.
    """

    dag: str
    fields: dict[str, Any]

    @property
    def text(self) -> str:
        """The fields in words; empty if the form needs none."""
        return ", ".join(f"{name} = {_shown(value)}" for name, value in self.fields.items())

    @property
    def conf(self) -> dict[str, Any] | None:
        """The fields as the conf of a run; None if a person must fill in more."""
        values = {item for value in self.fields.values() for item in (value if isinstance(value, list) else [value])}
        if values & _PLACEHOLDERS:
            return None
        try:
            if self.dag == "repair":
                check_form(self.fields)
        except UsageError:
            return None
        return self.fields

    def trigger(self, key: str) -> str:
        """Return what a person does. `key`: prefix of the ids of the source's DAGs."""
        return f"trigger {key}.{self.dag}" + (f" with {self.text}" if self.fields else "")


def forms_of(text: str) -> list[CommandForm]:
    """Return the forms that do what the commands in a text do, each once, in the order of the text."""
    found: list[CommandForm] = []
    for match in _COMMAND.finditer(text):
        form = _form(match["command"], shlex.split(match["rest"]))
        if form and form not in found:
            found.append(form)
    return found


def in_airflow(text: str, key: str) -> str:
    """Return a line with the forms that do what the commands in a text do; empty if no command has one.

    Args:
        text: such as the hint of an error.
        key: prefix of the ids of the source's DAGs.
    """
    steps = [form.trigger(key) for form in forms_of(text)]
    instead = ", in place of each command" if len(steps) > 1 else ""
    return f"in Airflow{instead}: {'; '.join(steps)}" if steps else ""


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ", ".join(value) + (" (one per line)" if len(value) > 1 else "")
    return str(value)


def _form(command: str, words: Sequence[str]) -> CommandForm | None:
    """Return the form for a command; None if runs of `delta` do it anyway."""
    options = dict(_options(words))
    tables = {"tables": found} if (found := [value for name, value in _options(words) if name == "--table"]) else {}
    match command:
        case "initial-load" if "--again" not in words:
            return CommandForm("initial_load", tables)
        case "replay":
            end = {"to": options["--to"]} if "--to" in options else {}
            publish = {"dry_run": False} if "--publish" in words else {}
            return CommandForm("replay", {"from": options.get("--from", "PLACE")} | end | tables | publish)
        case "verify":
            return CommandForm("check", {"verify": True} | tables)
        case "doctor":
            return CommandForm("check", {})
        case "maintain":
            return CommandForm("maintain", tables)
        case "run":
            return CommandForm("delta", {"until": options["--until"]}) if "--until" in options else None
        case _:
            fields = _repair_fields(command, words, tables)
            return CommandForm("repair", fields) if fields else None


def _repair_fields(command: str, words: Sequence[str], tables: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the form of `repair`; empty for an extraction of planned intervals, which is no repair."""
    named = {_REPAIR_OPTIONS[name]: value for name, value in _options(words) if name in _REPAIR_OPTIONS}
    options: dict[str, Any] = tables | named
    place = next((word for number, word in enumerate(words) if _is_place(words, number)), "")
    table = {"tables": [place or "SCHEMA.TABLE"]}
    match command:
        case "release":
            return {"action": "release"} | (table if place else {"all_tables": True})
        case "pause":
            return {"action": "pause"} | table | options
        case "resume":
            return {"action": "resume"} | table
        case "initial-load":
            return {"action": "load_again"} | (tables or {"all_tables": True})
        case "staged restore":
            return {"action": "restore", "position": place or "START"}
        case "extract":
            return {"action": "stage_rows"} | options if "--interval" in words else {}
        case "follow":
            return {"action": "follow"} | options
        case "begin":
            return {"action": "begin", "place": options.get("position", "PLACE")}
        case "skip":
            action = "withdraw_skip" if "--withdraw" in words else "skip"
            return {"action": action, "transaction": place or "TRANSACTION"} | options
        case _:
            return {"action": "set_schema"} | table | options


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    return ((name, value) for name, value in pairwise(words) if name.startswith("--"))


def _is_place(words: Sequence[str], number: int) -> bool:
    return not words[number].startswith("--") and (number == 0 or not words[number - 1].startswith("--"))
