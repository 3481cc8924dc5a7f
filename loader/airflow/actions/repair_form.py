"""The form of the DAG `repair`: its fields, their validation, and the form that does what a command in a hint does."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from airflow.sdk import Param

from loader.airflow.form_params import flag_param, tables_param, text_param
from loader.errors import UsageError

USES = {
    "release": {"tables", "all_tables"},
    "pause": {"tables", "reason"},
    "resume": {"tables"},
    "load_again": {"tables", "all_tables"},
    "restore": {"position"},
    "follow": {"position", "accept"},
    "set_schema": {"tables", "position", "definition"},
    "stage_rows": {"position"},
    "begin": {"place"},
    "skip": {"transaction", "tables", "reason"},
    "withdraw_skip": {"transaction", "tables", "reason"},
}
"""The fields that each action uses."""
_ACTIONS = {
    "release": "release: let quarantined tables continue",
    "pause": "pause: stop merging tables, until they are resumed",
    "resume": "resume: merge paused tables again",
    "load_again": "load_again: read tables from the server again",
    "restore": "restore: extract lost or changed staged files again",
    "follow": "follow: continue on another server",
    "set_schema": "set_schema: give the columns of a table",
    "stage_rows": "stage_rows: stage rows that an interval lacks, once their schema is set or others are skipped",
    "begin": "begin: begin to read the log before any table is loaded",
    "skip": "skip: leave a transaction out, or the rows of tables in it, once a person approved it",
    "withdraw_skip": "withdraw_skip: stage the rows of a skip that no plan has yet",
}
_POSITION = r"\S+\.\d{6,}:\d+|\d+"
_WORD = r"""(?:'[^']*'|"'"|,(?=\S)|[^\s;,()'"\\])+"""
"""An argument as `shlex.quote` writes it. Names of tables can hold any character."""
_COMMAND = re.compile(
    r"\bloader (?P<command>release|resume|initial-load|staged restore|extract|follow|schema set|begin|skip)\b"
    rf"(?P<rest>(?: {_WORD})*)"
)
_PLACEHOLDERS = {"SCHEMA.TABLE", "START", "PLACE", "TRANSACTION", "TEXT"}
"""Words in hints that a person must replace."""
_OPTIONS = {
    "--table": "tables",
    "--at": "position",
    "--accept": "accept",
    "--reason": "reason",
    "--interval": "position",
}


def repair_params() -> dict[str, Param]:
    """Return the params of the DAG."""
    return {
        "action": Param(type="string", enum=list(_ACTIONS), values_display=_ACTIONS, title="Action"),
        "tables": tables_param(
            "For release, load_again, set_schema, pause, resume, skip and withdraw_skip: as schema.table, one per line."
            " For pause and resume also patterns such as shop.order_*. For skip, empty means the whole transaction; for"
            " withdraw_skip, all skips of it."
        ),
        "all_tables": flag_param(
            "All tables", "For release and load_again: all quarantined tables, or all captured tables."
        ),
        "reason": text_param(
            "Reason",
            "For pause, skip and withdraw_skip: why. Everybody sees it. For skip, it is kept with the name of who"
            " approves.",
        ),
        "position": text_param(
            "Position",
            "Such as binlog.000054:123. For restore and stage_rows: the start of the interval, or its seqno."
            " For follow: a position on the new server, before which everything was read."
            " For set_schema: where the columns begin to be valid.",
            pattern=_POSITION,
            example="a position such as binlog.000054:123, or for an interval its seqno",
        ),
        "accept": text_param(
            "Accept",
            "For follow, instead of a position: GTIDs of transactions that only the new server has. They are skipped.",
        ),
        "definition": text_param(
            "Definition",
            "For set_schema: the output of SHOW CREATE TABLE if the table has a primary key; otherwise that of"
            " `loader --json schema show`, with its key and `sure`.",
            format="multiline",
        ),
        "place": text_param(
            "Place", "For begin: begin, end, binlog.000054:123, a time such as 2026-01-31T12:00:00Z, or a GTID set."
        ),
        "transaction": text_param(
            "Transaction",
            "For skip and withdraw_skip: its GTID, a position in it such as binlog.000054:123, or its seqno.",
        ),
    }


def check_form(values: Mapping[str, Any]) -> str:
    """Check that a clean form has the fields that its action needs, and no others. Return the action.

    Raises:
        UsageError: fields are missing, or the action does not use them.
    """
    action = values["action"]
    given = {name for name in set().union(*USES.values()) if values.get(name)}
    if unused := sorted(given - USES[action]):
        raise _wrong(action, f"it does not use {', '.join(unused)}")
    tables = values.get("tables") or []
    if action in {"release", "load_again"} and bool(tables) == bool(values.get("all_tables")):
        raise _wrong(action, "it needs either tables or all_tables")
    if action in {"pause", "resume"} and given != USES[action]:
        raise _wrong(action, f"it needs {' and '.join(sorted(USES[action], reverse=True))}")
    if action == "follow" and len(given) != 1:
        raise _wrong(action, "it needs either position or accept")
    if action == "begin" and not given:
        raise _wrong(action, "it needs the place where the log is read from")
    if action in {"restore", "stage_rows"} and not given:
        raise _wrong(action, "it needs the position at which the interval starts")
    if action in {"skip", "withdraw_skip"} and not {"transaction", "reason"} <= given:
        raise _wrong(action, "it needs a transaction and a reason")
    if action == "set_schema" and (given != USES[action] or len(tables) != 1):
        raise _wrong(action, "it needs one table, a position and a definition")
    return str(action)


def _wrong(action: str, why: str) -> UsageError:
    return UsageError(
        f"the form of the action {action} is wrong",
        why=why,
        hint="trigger a new run with other fields; nothing was done",
        action=action,
    )


def forms_of(text: str) -> dict[str, dict[str, Any] | None]:
    """Return the forms that do what the repairing commands in a text do.

    The keys are the fields of the form in words. The values are the fields as the conf of a run, or None if a person
    must fill in more.
    """
    found = (_fields(match["command"], shlex.split(match["rest"])) for match in _COMMAND.finditer(text))
    return {
        ", ".join(f"{name} = {_word(value)}" for name, value in fields.items()): _conf(fields)
        for fields in found
        if fields
    }


def _word(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ", ".join(value) + (" (one per line)" if len(value) > 1 else "")
    return str(value)


def _conf(fields: dict[str, Any]) -> dict[str, Any] | None:
    values = {item for value in fields.values() for item in (value if isinstance(value, list) else [value])}
    if values & _PLACEHOLDERS:
        return None
    try:
        check_form(fields)
    except UsageError:
        return None
    return fields


def _fields(command: str, words: list[str]) -> dict[str, Any]:
    """Return the fields for a command; empty for a first initial load or extraction, which are no repairs."""
    options: dict[str, Any] = {}
    for name, value in pairwise(words):
        field = _OPTIONS.get(name)
        if field == "tables":
            options[field] = [*options.get(field, []), value]
        elif field:
            options[field] = value
    places = [word for number, word in enumerate(words) if _is_place(words, number)]
    match command:
        case "release":
            return {"action": "release", "tables": places[:1]} if places else {"action": "release", "all_tables": True}
        case "resume":
            return {"action": "resume", "tables": places[:1] or ["SCHEMA.TABLE"]}
        case "initial-load":
            if "--again" not in words:
                return {}
            return {"action": "load_again"} | (options or {"all_tables": True})
        case "staged restore":
            return {"action": "restore", "position": places[0] if places else "START"}
        case "extract":
            return {"action": "stage_rows"} | options if "--interval" in words else {}
        case "follow":
            return {"action": "follow"} | options
        case "begin":
            return {"action": "begin", "place": options.get("position", "PLACE")}
        case "skip":
            action = "withdraw_skip" if "--withdraw" in words else "skip"
            return {"action": action, "transaction": places[0] if places else "TRANSACTION"} | options
        case _:
            return {"action": "set_schema", "tables": places[:1] or ["SCHEMA.TABLE"]} | options


def _is_place(words: list[str], number: int) -> bool:
    return not words[number].startswith("--") and (number == 0 or not words[number - 1].startswith("--"))
