"""What a person does with an error in the log of a task: find the form that it names, fill it in, and send it."""

from __future__ import annotations

import re

from playwright.sync_api import Page

from tests.e2e.airflow.running.dag_form import Form
from tests.e2e.airflow.running.server import Airflow, until

Fields = dict[str, str]
_NAMES = "action|tables|all_tables|reason|position|accept|definition|place|transaction"
_LINE = re.compile(r"  in Airflow(?:, in place of each command)?: (?P<steps>trigger .*)")


def printed_forms(airflow: Airflow, dag: str, run: str, task: str) -> list[Fields]:
    """Return the fields of the forms of the source's repair DAG that the log of a failed task names, in their order."""
    lines = [found for line in airflow.log(dag, run, task) if (found := _LINE.fullmatch(line))]
    steps = [step for line in lines for step in re.split(r"; (?=trigger )", line["steps"])]
    repair = f"trigger {dag.rpartition('.')[0]}.repair with "
    found = [_fields(step.removeprefix(repair)) for step in steps if step.startswith(repair)]
    assert found, airflow.log(dag, run, task)
    return found


def _fields(text: str) -> Fields:
    """Return the fields of `name = value, name = value`. Names of tables can have commas."""
    parts = re.split(rf"(?:^|, )({_NAMES}) = ", text)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def send_form(page: Page, airflow: Airflow, dag: str, **fields: str) -> str:
    """Fill in the form of a DAG in the browser and send it. Return the run, which must succeed."""
    run = send(page, airflow, dag, **fields)
    airflow.wait_for(dag, run, "success")
    return run


def send(page: Page, airflow: Airflow, dag: str, **fields: str) -> str:
    """Fill in the form of a DAG in the browser and send it, which unpauses the DAG. Return the run."""
    form = Form(page, dag)
    if action := fields.pop("action", ""):
        form.choose(f"{action}:")
    for flag in [name for name, value in fields.items() if value in {"true", "false"}]:
        form.tick(flag, fields.pop(flag) == "true")
    form.fill(**fields)
    form.trigger()
    until(f"{dag} to be unpaused", lambda: not airflow.get(dag)["is_paused"])
    page.goto("about:blank")  # the page of a run asks the server all the time
    return form.run


def answer(page: Page, airflow: Airflow, dag: str, run: str, task: str, option: str) -> None:
    """Wait for the question of a task, and answer it in the browser."""
    airflow.wait_for_question(dag, run, task)
    page.goto(f"/dags/{dag}/runs/{run}/tasks/{task}/required_actions")
    page.get_by_role("button", name=option).click()
