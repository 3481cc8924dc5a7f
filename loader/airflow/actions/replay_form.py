"""The form of the DAG `replay`: its fields, and what its tasks do with them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from airflow.sdk import Param

from loader.airflow.form_params import flag_param, text_param
from loader.errors import UsageError
from loader.visible_text import visible

Step = Literal["restore_files", "compare", "approve", "publish"]
FIRST_POSITION = 4
"""Offset of the first event of a log file."""
APPROVE = "Approve"
"""The answer that Airflow's ApprovalOperator takes for a yes."""
_SAMPLES = 3
_MARKUP = re.compile(r"[\\|\[<`]")
_FIELDS = ("from", "lognum", "logpos", "to", "tables", "restore_files", "dry_run", "approval")


def replay_params(tables: Param) -> dict[str, Param]:
    """Return the params of the DAG; `tables` is the list of tables."""
    return {
        "from": text_param(
            "From",
            "Where to start: binlog.000054:123, 54:123, begin, a time such as 2026-01-31T12:00:00Z, or a GTID set. Or"
            " leave it empty, and give the log number and the offset.",
        ),
        "lognum": Param(
            None,
            type=["null", "integer"],
            minimum=0,
            title="Log number (lognum)",
            description="For example 54 for binlog.000054.",
        ),
        "logpos": Param(
            None,
            type=["null", "integer"],
            minimum=FIRST_POSITION,
            title="Offset (logpos)",
            description="Offset in that log file; empty: the start of the file.",
        ),
        "to": text_param(
            "To",
            "Compare only rows that changed up to a position such as binlog.000054:123, each with its newest change."
            " Empty: all rows that changed since the start.",
        ),
        "tables": tables,
        "restore_files": flag_param("Restore staged files", "First restore staged files that were lost or changed."),
        "dry_run": flag_param(
            "Dry run", "Only report differences, and change nothing. It has no effect with approval.", default=True
        ),
        "approval": flag_param("Ask for approval", "Compare first, and publish only after a person approved it."),
    }


def form_arguments(dag: Any) -> dict[str, Any]:
    """Return the fields of the form of a DAG, as arguments of its tasks."""
    return {name: dag.param(name) for name in _FIELDS}


def start_of(form: Mapping[str, Any]) -> str:
    """Return the place where the replay starts.

    Raises:
        UsageError: the form names no place, or two.
    """
    place, lognum, logpos = (form["from"] or "").strip(), form["lognum"], form["logpos"]
    if bool(place) == (lognum is not None) or (place and logpos is not None):
        raise UsageError(
            "the form of the replay is wrong",
            why="it needs either from, or lognum and perhaps logpos",
            hint="trigger a new run with one of them; nothing was done",
        )
    return str(place or f"{lognum}:{logpos or FIRST_POSITION}")


def end_of(form: Mapping[str, Any]) -> str:
    """Return the position up to which rows count; empty if all rows that changed count."""
    return str(form["to"] or "").strip()


def reason_to_skip(step: Step, form: Mapping[str, Any], compared: Mapping[str, Any] | None = None) -> str:
    """Return why a task of the DAG has nothing to do; empty if it must run.

    Args:
        step: the task.
        form: the fields of the form.
        compared: the result of `compare`, for `approve`; the answer of the person, for `publish`.
    """
    match step:
        case "restore_files":
            return "" if form["restore_files"] else "the form does not ask to restore staged files"
        case "compare":
            return "" if form["dry_run"] or form["approval"] else "the form asks to publish at once"
        case "approve":
            if not form["approval"]:
                return "the form does not ask for approval"
            return "" if differing(compared or {}) else "no table differs"
        case "publish":
            if form["approval"]:
                return "" if approver(compared) else "nobody approved it"
            return "the run is a dry run" if form["dry_run"] else ""


def approver(answer: Mapping[str, Any] | None) -> str:
    """Return who approved; empty if the answer is missing or another."""
    if not answer or answer["chosen_options"] != [APPROVE]:
        return ""
    user = answer["responded_by_user"] or {}
    return str(user.get("name") or user.get("id") or "unknown")


def differing(compared: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the results of the tables that differ."""
    return [table for table in compared.get("tables", []) if table["status"] == "differs"]


def question(compared: Mapping[str, Any]) -> str:
    """Return the differences as Markdown: a table of numbers, and samples of each table."""
    tables = differing(compared)
    lines = table_rows(("table", "inserts", "updates", "deletes", "position"), tables)
    for table in tables:
        if note := table.get("note"):
            lines += ["", _cell(f"{table['table']}: {note}")]
        lines += ["", f"Samples of {_cell(table['table'])}:", "", "```"]
        lines += [_sample(one) for one in table["samples"][:_SAMPLES]] + ["```"]
    return "\n".join(lines)


def table_rows(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines of a Markdown table."""
    return [_row(columns), _row("---" for _ in columns), *(_row(row[column] for column in columns) for row in rows)]


def _row(cells: Any) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(value: object) -> str:
    """Return a text for Markdown in which names add no columns, links, pictures or HTML."""
    return _MARKUP.sub(r"\\\g<0>", visible(str(value)))


def _sample(sample: Mapping[str, Any]) -> str:
    return visible(f"{sample['before']} -> {sample['after']}").replace("```", "'''")
