"""The form of the DAG `replay`, and what each of its tasks does with it."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from loader.airflow.actions.replay_form import Step, approver, question, reason_to_skip, start_of
from loader.airflow.actions.replay_steps import ApproveReplayOperator, ReplayFormOperator, RestoreFilesOperator
from loader.airflow.reports.errors import TaskFailed
from loader.airflow.versions import AirflowSkipException
from loader.errors import UsageError
from tests.dags.conftest import Site, SparkSubmit, Task
from tests.support.airflow_waits import TaskWaits

EMPTY: dict[str, Any] = {
    "from": None,
    "lognum": None,
    "logpos": None,
    "to": None,
    "tables": [],
    "restore_files": False,
    "dry_run": True,
    "approval": False,
}
DIFFERS = {
    "table": "shop.a|b",
    "status": "differs",
    "inserts": 1,
    "updates": 2,
    "deletes": 3,
    "position": "binlog.000001:100",
    "samples": [{"before": {"id": 1}, "after": None}, *({"before": None, "after": {"id": n}} for n in range(9))],
}
COMPARED = {"tables": [{"table": "shop.same", "status": "same"}, DIFFERS]}
SAME = {"tables": [{"table": "shop.same", "status": "same"}]}
YES = {"chosen_options": ["Approve"], "responded_by_user": {"id": "7", "name": "ada"}}
NO = {"chosen_options": ["Reject"], "responded_by_user": {"id": "7", "name": "ada"}}
NOBODY = {"chosen_options": ["Reject"], "responded_by_user": None}


@pytest.mark.parametrize(
    ("form", "start"),
    [
        ({"from": "binlog.000054:123"}, "binlog.000054:123"),
        ({"from": "2026-01-31T12:00:00Z"}, "2026-01-31T12:00:00Z"),
        ({"lognum": 54, "logpos": 123}, "54:123"),
        ({"lognum": 54}, "54:4"),
        ({"lognum": 0}, "0:4"),
    ],
)
def test_a_start(form: dict[str, Any], start: str) -> None:
    assert start_of(EMPTY | form) == start


@pytest.mark.parametrize(
    "form", [{}, {"from": ""}, {"logpos": 123}, {"from": "1:4", "lognum": 1}, {"from": "1:4", "logpos": 9}]
)
def test_a_form_names_one_start(form: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="form of the replay"):
        start_of(EMPTY | form)


def test_what_each_form_does() -> None:
    """By dry_run, approval, what was found and what was answered: whether tasks compare, ask and publish."""
    done = {}
    for dry_run, approval, compared, answer in product([True, False], [True, False], [COMPARED, SAME], [YES, NO]):
        form = EMPTY | {"dry_run": dry_run, "approval": approval}
        given: dict[Step, Any] = {"compare": None, "approve": compared, "publish": answer if approval else None}
        key = dry_run, approval, compared is COMPARED, answer is YES
        done[key] = [step for step, result in given.items() if not reason_to_skip(step, form, result)]
    for (dry_run, approval, differs, yes), found in done.items():
        steps = ["compare"] if dry_run or approval else []
        steps += ["approve"] if approval and differs else []
        steps += ["publish"] if (approval and yes) or not (approval or dry_run) else []
        assert found == steps


@pytest.mark.parametrize(
    ("answer", "name"),
    [(YES, "ada"), (NO, ""), (NOBODY, ""), (None, ""), ({**YES, "responded_by_user": None}, "unknown")],
)
def test_who_approved(answer: Any, name: str) -> None:
    assert approver(answer) == name


@pytest.mark.parametrize("answer", [None, NO, NOBODY])
def test_without_a_yes_nothing_is_published(answer: Any) -> None:
    assert reason_to_skip("publish", EMPTY | {"approval": True, "dry_run": False}, answer) == "nobody approved it"


def test_the_question_shows_numbers_and_samples() -> None:
    text = question(COMPARED)
    assert "| shop.a\\|b | 1 | 2 | 3 | binlog.000001:100 |" in text
    assert "shop.same" not in text
    assert "{'id': 1} -> None" in text
    assert text.count("->") == 3


def test_a_value_cannot_end_the_samples() -> None:
    sample = {"before": {"text": "```\n# Approve\x1b[2J"}, "after": None}
    text = question({"tables": [DIFFERS | {"samples": [sample]}]})
    assert text.count("```") == 2
    assert "\x1b" not in text
    assert "\n# Approve" not in text


def test_a_name_cannot_add_links_and_pictures_to_the_question() -> None:
    name = "shop.a](https://evil.example) ![p](https://evil.example/p.png) <b> `c` \\[d](e)"
    text = question({"tables": [DIFFERS | {"table": name, "note": name}]})
    escaped = r"shop.a](https://evil.example) !\[p](https://evil.example/p.png) \<b> \`c\` \\\[d](e)"
    assert text.count(escaped) == 4


# The operators.


def _replay(publish: bool, answer: Any = None, **form: object) -> ReplayFormOperator:
    operator = ReplayFormOperator(task_id="replay", source="", form=EMPTY | {"from": "1:4"} | form, publish=publish)
    operator.answer = answer
    return operator


def test_a_comparison_publishes_nothing(site: Site, spark_submit_program: SparkSubmit, running: Task) -> None:
    site.stage()
    _replay(False, tables=["shop.orders"]).execute(running.context)
    spec = spark_submit_program.spec
    assert (spec["since_seqno"], spec["tables"]) == (1_000_000_000_004, ["shop.orders"])
    assert (spec["publish"], spec["approved_by"], spec["until_seqno"]) == (False, "", 0)
    _replay(False, to=" binlog.000001:90 ").execute(running.context)
    assert spark_submit_program.spec["until_seqno"] == 1_000_000_000_090


def test_a_correction_has_the_name_of_who_approved_it(
    site: Site, spark_submit_program: SparkSubmit, running: Task
) -> None:
    _replay(True, YES, approval=True).execute(running.context)
    assert (spark_submit_program.spec["publish"], spark_submit_program.spec["approved_by"]) == (True, "ada")


def test_only_the_tables_that_the_person_saw_are_corrected(
    site: Site, spark_submit_program: SparkSubmit, running: Task
) -> None:
    """Another table may differ since. Nobody approved to correct it, and its snapshot must not say so."""
    operator = _replay(True, YES, approval=True, tables=["shop.*"])
    operator.compared = COMPARED
    operator.execute(running.context)
    assert spark_submit_program.spec["tables"] == ["shop.a|b"]


@pytest.mark.parametrize(("publish", "form"), [(True, {}), (True, {"approval": True}), (False, {"dry_run": False})])
def test_a_task_without_work_is_skipped(
    publish: bool, form: dict[str, Any], site: Site, spark_submit_program: SparkSubmit, running: Task
) -> None:
    with pytest.raises(AirflowSkipException):
        _replay(publish, **form).execute(running.context)
    assert spark_submit_program.argv is None


@pytest.mark.parametrize("publish", [True, False])
def test_a_wrong_form_fails_before_any_work(
    publish: bool, site: Site, spark_submit_program: SparkSubmit, running: Task
) -> None:
    with pytest.raises(TaskFailed, match="form of the replay is wrong"):
        _replay(publish, lognum=1).execute(running.context)
    with pytest.raises(TaskFailed, match="form of the replay is wrong"):
        RestoreFilesOperator(task_id="restore", source="", form=EMPTY).execute(running.context)
    assert spark_submit_program.argv is None


def test_files_of_every_interval_are_restored(
    site: Site, running: Task, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    site.stage()
    site.follow_up("binlog.000001:200")
    restored: list[int] = []

    def restore(_: object, spec: Any) -> Any:
        restored.append(spec.start_seqno)
        return type("Result", (), {"model_dump": lambda *_, **__: {"files": 2}})()

    monkeypatch.setattr("loader.extract.extraction.restore", restore)
    form = EMPTY | {"from": "begin", "restore_files": True}
    found = RestoreFilesOperator(task_id="restore", source="", form=form).execute(running.context)
    assert restored == [1_000_000_000_004, 1_000_000_000_100]
    assert found == {"start": "binlog.000001:4", "intervals": 2, "files": 4}
    with pytest.raises(AirflowSkipException):
        RestoreFilesOperator(task_id="restore", source="", form=form | {"restore_files": False}).execute(
            running.context
        )


def _approval(compared: Any, **form: object) -> ApproveReplayOperator:
    operator = ApproveReplayOperator(task_id="approve", form=EMPTY | {"from": "1:4"} | form, compared=compared)
    operator.compared = compared
    return operator


@pytest.mark.parametrize(("compared", "form"), [(COMPARED, {}), (SAME, {"approval": True}), (None, {"approval": True})])
def test_nobody_is_asked_without_a_reason(compared: Any, form: dict[str, Any], running: Task) -> None:
    with pytest.raises(AirflowSkipException):
        _approval(compared, **form).execute(running.context)


def test_a_person_is_asked(running: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr(
        "airflow.providers.standard.operators.hitl.upsert_hitl_detail", lambda **given: asked.update(given)
    )
    context = running.context | {"task_instance": type("Instance", (), {"id": 1})()}
    with pytest.raises(TaskWaits):
        _approval(COMPARED, approval=True).execute(context)
    assert (asked["subject"], asked["defaults"]) == ("Correct 1 table?", ["Reject"])
    assert asked["body"] == question(COMPARED)
