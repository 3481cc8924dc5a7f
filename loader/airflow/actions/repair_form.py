"""The form of the DAG `repair`: its fields and their validation."""

from __future__ import annotations

from collections.abc import Mapping
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
            "For follow, instead of a position: the errant transactions that the error names. They are skipped.",
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
