"""The forms that do what the commands in errors do, and how people read of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

import loader
from loader.airflow.actions.command_forms import CommandForm, forms_of, in_airflow
from loader.airflow.actions.repair_form import repair_params
from loader.airflow.dags.source_dags import source_dags
from loader.cli.app import app
from loader.dag_settings import dag_key
from loader.errors import LOAD_ALL_AGAIN, DataError
from loader.model.table import TableName
from tests.dags.conftest import Site, SparkSubmit, Task
from tests.dags.operators import failed_task

_PLACE = "binlog.000054:123"


@pytest.mark.parametrize(
    ("hint", "steps"),
    [
        ("fix it, then: loader release shop.orders", "repair with action = release, tables = shop.orders"),
        ("loader release 'shop.my table'; or wait", "repair with action = release, tables = shop.my table"),
        (
            "loader resume shop.a; loader resume 'shop.b c'",
            "repair with action = resume, tables = shop.a; repair with action = resume, tables = shop.b c",
        ),
        (
            "loader pause 'shop.a b' --reason 'a migration'",
            "repair with action = pause, tables = shop.a b, reason = a migration",
        ),
        (LOAD_ALL_AGAIN, "repair with action = load_again, all_tables = true"),
        (TableName("shop", "a").load_again, "repair with action = load_again, tables = shop.a"),
        ("loader staged restore 281474976710660", "repair with action = restore, position = 281474976710660"),
        ("loader extract --interval binlog.000001:4", "repair with action = stage_rows, position = binlog.000001:4"),
        ("loader extract", ""),
        ("loader staged restore binlog.000001:4", "repair with action = restore, position = binlog.000001:4"),
        ("loader follow --source db --at FILE:POS", "repair with action = follow, position = FILE:POS"),
        ("loader follow --source db --accept 0-1-7", "repair with action = follow, accept = 0-1-7"),
        (
            f"loader schema set shop.a --at {_PLACE} --file FILE",
            f"repair with action = set_schema, tables = shop.a, position = {_PLACE}",
        ),
        (
            "loader initial-load --table shop.a --again; then, loader release shop.a (quarantined), loader release shop.a",
            "repair with action = load_again, tables = shop.a; repair with action = release, tables = shop.a",
        ),
        (
            f"loader skip {_PLACE} --table shop.a --reason TEXT; then: loader extract --interval 5",
            f"repair with action = skip, transaction = {_PLACE}, tables = shop.a, reason = TEXT;"
            " repair with action = stage_rows, position = 5",
        ),
        (
            f"loader skip {_PLACE} --table shop.a --table shop.b --reason TEXT",
            f"repair with action = skip, transaction = {_PLACE}, tables = shop.a, shop.b (one per line), reason = TEXT",
        ),
        (
            f"loader skip {_PLACE} --withdraw --reason TEXT",
            f"repair with action = withdraw_skip, transaction = {_PLACE}, reason = TEXT",
        ),
        ("loader initial-load --table 'shop.a b'", "initial_load with tables = shop.a b"),
        ("load tables with: loader initial-load; then wait", "initial_load"),
        (f"loader replay --source db --from {_PLACE}", f"replay with from = {_PLACE}"),
        (
            f"loader replay --table shop.a --from {_PLACE} --to binlog.000054:200",
            f"replay with from = {_PLACE}, to = binlog.000054:200, tables = shop.a",
        ),
        ("loader replay --from begin --publish", "replay with from = begin, dry_run = false"),
        ("go over the log again: loader replay", "replay with from = PLACE"),
        ("compare them with: loader verify", "check with verify = true"),
        ("loader verify --table shop.a", "check with verify = true, tables = shop.a"),
        ("check user and grants: loader doctor; see grants.sql", "check"),
        ("run later: loader maintain --table shop.a", "maintain with tables = shop.a"),
        (f"loader run --source db --until {_PLACE}", f"delta with until = {_PLACE}"),
        ("loader run", ""),
        ("the loader follows columns; a loader release-note", ""),
        ("", ""),
    ],
)
def test_the_forms_of_a_command(hint: str, steps: str) -> None:
    assert "; ".join(form.trigger("db").removeprefix("trigger db.") for form in forms_of(hint)) == steps


@pytest.mark.parametrize(
    ("hint", "conf"),
    [
        ("loader release shop.a", {"action": "release", "tables": ["shop.a"]}),
        ("loader verify", {"verify": True}),
        ("loader doctor", {}),
        ("loader replay --from begin --table shop.a", {"from": "begin", "tables": ["shop.a"]}),
        ("loader replay --from FILE:POS", None),
        ("loader verify --table ...", None),
        ("loader initial-load --table TABLE --again", None),
        ("loader follow --at FILE:POS", None),
        ("loader schema set shop.a --at binlog.000054:123 --file FILE", None),  # it needs the definition
        ("loader pause SCHEMA.TABLE --reason TEXT", None),
    ],
)
def test_a_form_that_lacks_nothing_is_the_conf_of_a_run(hint: str, conf: dict[str, Any] | None) -> None:
    (form,) = forms_of(hint)
    assert form.conf == conf


def test_the_line_of_several_forms() -> None:
    assert in_airflow("wait", "db") == ""
    assert in_airflow("loader doctor", "db") == "in Airflow: trigger db.check"
    assert in_airflow("loader replay --from begin; otherwise: loader release shop.a", "db") == (
        "in Airflow, in place of each command: trigger db.replay with from = begin;"
        " trigger db.repair with action = release, tables = shop.a"
    )


@given(st.text(min_size=1), st.text())
def test_a_table_with_any_name_has_a_form(name: str, after: str) -> None:
    table = TableName("shop", name)
    first, *_ = forms_of(f"loader release {table.argument}; {after}")
    assert first == CommandForm("repair", {"action": "release", "tables": [str(table)]})
    assert first.text == f"action = release, tables = {table}"


@given(st.text(alphabet="'\"\\\\ ;,()-a\n"))
def test_no_text_breaks_the_report_of_an_error(rest: str) -> None:
    for command in ("release", "initial-load --again", "replay --from", "pause"):
        forms_of(f"loader {command} {rest}")


# Every command that the code names.

_READS = "it only reads; the status pages show the same"
_NEXT_RUN = "the next run of SOURCE.delta does it"
_SETS_UP = "it sets up a machine or a configuration, which no DAG can change"
WITHOUT_FORM = {
    "status": _READS,
    "intervals": _READS,
    "inspect": "it only reads; the log of the server can also be read from another machine",
    "tables": "it only reads; it prints the snapshots of tables for another query",
    "schema show": "it only reads the store; any machine with the configuration can do that",
    "run": _NEXT_RUN,
    "extract": _NEXT_RUN,
    "init": _SETS_UP,
    "jars": _SETS_UP,
    "package": _SETS_UP,
    "adopt": "it takes over a table once, with a position that only the other tool knows",
    "staged sign": "it vouches for all documents in the store, so a person who knows who could write there runs it",
}
"""Commands that hints name and that have no form, each with the reason."""


def _names() -> set[str]:
    """Return the names of all commands: those of groups with the name of the group."""
    group = typer.main.get_command(app)
    found = set()
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        found |= {f"{name} {inner}" for inner in getattr(command, "commands", {})} or {name}
    return found


def _texts(file: Path) -> Iterator[str]:
    """Yield the texts of a module that are no docstrings, with `x` in place of each value."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    left_out = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            left_out |= {id(part) for part in node.values}
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            yield node.value


def _named_commands() -> Iterator[tuple[str, str]]:
    """Yield each command in a text of the code, except the texts of commands themselves: its name, and with arguments."""
    names = "|".join(sorted(map(re.escape, _names()), key=len, reverse=True))
    command = re.compile(rf"\bloader (?:--json )?({names})\b(?!-).*?(?=\bloader |$)", re.DOTALL)
    root = Path(loader.__file__).parent
    for file in root.rglob("*.py"):
        if file.relative_to(root).parts[0] != "cli":
            for text in _texts(file):
                yield from ((match[1], match[0]) for match in command.finditer(text))


def test_every_command_that_an_error_names_has_a_form_or_a_reason() -> None:
    """On managed Airflow nobody has a shell on a worker."""
    found = list(_named_commands())
    assert len(found) > 80
    assert {name for name, command in found if not forms_of(command)} <= WITHOUT_FORM.keys()
    assert WITHOUT_FORM.keys() <= {name for name, _ in found}  # none is out of date


def test_the_forms_have_these_fields(site: Site) -> None:
    dags = source_dags("shop")
    for name, command in _named_commands():
        for form in forms_of(command):
            known = repair_params() if form.dag == "repair" else dags[f"{dag_key('shop')}.{form.dag}"].params
            assert set(form.fields) <= set(known), name


def test_the_log_of_a_failed_task_names_the_form(
    site: Site, spark_submit_program: SparkSubmit, running: Task, caplog: pytest.LogCaptureFixture
) -> None:
    error = DataError("a value does not fit", hint="fix it, then: loader release shop.orders", table="shop.orders")
    spark_submit_program.result, spark_submit_program.exit_code = {"error": error.as_dict()}, 4
    with caplog.at_level("ERROR"):
        failed_task("materialise", site, running)
    lines = [record.getMessage() for record in caplog.records]
    assert "  in Airflow: trigger shop.repair with action = release, tables = shop.orders" in lines
