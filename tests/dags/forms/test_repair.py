"""The form of the DAG `repair`, and its tasks."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from loader.airflow.actions import pause_tasks, repair_tasks, skip_tasks
from loader.airflow.actions.pause_tasks import pause, resume
from loader.airflow.actions.repair_form import USES, check_form, repair_params
from loader.airflow.actions.repair_tasks import choose_repair, release, set_schema
from loader.airflow.actions.skip_tasks import ApproveSkipOperator, SkipOperator, question, withdraw_skip
from loader.airflow.reports.errors import TaskFailed
from loader.airflow.versions import AirflowSkipException, ParamValidationError
from loader.errors import UsageError
from loader.model.table import TableName
from loader.pipeline import TransactionRows, chain_of, table_schema
from loader.staging.documents import IncompleteTable
from loader.staging.notes.skips import RowCounts, SkipRecord, Skips
from tests.dags.conftest import Site, SparkSubmit, Task
from tests.dags.operators import connect, operator_of
from tests.support.airflow_waits import TaskWaits

_EMPTY = dict.fromkeys(("position", "accept", "definition", "place", "transaction", "reason")) | {
    "tables": [],
    "all_tables": False,
}
_PLACE = "binlog.000054:123"
_CREATE = (
    "CREATE TABLE `t` (`id` int NOT NULL, `name` varchar(9) DEFAULT NULL, PRIMARY KEY (`id`)) DEFAULT CHARSET=utf8mb4"
)
GOOD: list[dict[str, Any]] = [
    {"action": "release", "tables": ["shop.a", "shop.b"]},
    {"action": "release", "all_tables": True},
    {"action": "pause", "tables": ["shop.a", "shop.order_*"], "reason": "disk full"},
    {"action": "resume", "tables": ["shop.*"]},
    {"action": "load_again", "tables": ["shop.a"]},
    {"action": "load_again", "all_tables": True},
    {"action": "restore", "position": _PLACE},
    {"action": "restore", "position": "281474976710660"},
    {"action": "stage_rows", "position": _PLACE},
    {"action": "follow", "position": _PLACE},
    {"action": "follow", "accept": "0-1-7"},
    {"action": "set_schema", "tables": ["shop.a"], "position": _PLACE, "definition": _CREATE},
    {"action": "begin", "place": "2026-01-31T12:00:00Z"},
    {"action": "skip", "transaction": "0-1-7", "reason": "bad"},
    {"action": "skip", "transaction": _PLACE, "tables": ["shop.a", "shop.b"], "reason": "bad"},
    {"action": "withdraw_skip", "transaction": _PLACE, "tables": ["shop.a"], "reason": "wrong one"},
]
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"action": "release"}, "either tables or all_tables"),
    ({"action": "load_again", "tables": ["shop.a"], "all_tables": True}, "either tables or all_tables"),
    ({"action": "release", "tables": ["shop.a"], "position": _PLACE}, "does not use position"),
    ({"action": "pause", "tables": ["shop.a"]}, "needs tables and reason"),
    ({"action": "pause", "reason": "disk full"}, "needs tables and reason"),
    ({"action": "resume"}, "needs tables"),
    ({"action": "resume", "tables": ["shop.a"], "reason": "fixed"}, "does not use reason"),
    ({"action": "restore"}, "needs the position"),
    ({"action": "stage_rows"}, "needs the position"),
    ({"action": "restore", "position": _PLACE, "accept": "0-1-7"}, "does not use accept"),
    ({"action": "follow"}, "either position or accept"),
    ({"action": "follow", "position": _PLACE, "accept": "0-1-7"}, "either position or accept"),
    ({"action": "set_schema", "tables": ["shop.a"], "position": _PLACE}, "one table, a position and a definition"),
    ({"action": "begin"}, "needs the place"),
    ({"action": "begin", "place": "end", "position": _PLACE}, "does not use position"),
    (
        {"action": "set_schema", "tables": ["shop.a", "shop.b"], "position": _PLACE, "definition": _CREATE},
        "one table, a position and a definition",
    ),
    ({"action": "skip", "transaction": "0-1-7"}, "needs a transaction and a reason"),
    ({"action": "skip", "reason": "bad"}, "needs a transaction and a reason"),
    ({"action": "withdraw_skip", "transaction": "0-1-7"}, "needs a transaction and a reason"),
    ({"action": "release", "tables": ["shop.a"], "reason": "bad"}, "does not use reason"),
]


@pytest.mark.parametrize("form", GOOD)
def test_a_form(form: dict[str, Any]) -> None:
    assert check_form(_EMPTY | form) == form["action"]
    params = repair_params()
    assert {name: params[name].resolve(value) for name, value in (_EMPTY | form).items()} == _EMPTY | form


@pytest.mark.parametrize(("form", "why"), WRONG)
def test_a_form_that_does_not_fit_its_action(form: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_form(_EMPTY | form)
    assert why in caught.value.why


@pytest.fixture
def form(running: Task, site: Site, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give the running task a form."""
    monkeypatch.setattr(repair_tasks, "get_current_context", lambda: {**running.context, "params": running.form})

    def fill(**fields: object) -> None:
        running.form = {**_EMPTY, **fields}
        running.params = tuple(running.form)
        running.conf = dict(fields)

    return fill


def test_the_task_of_the_action_is_chosen(form: Any, running: Task) -> None:
    for action in USES:
        good = next(one for one in GOOD if one["action"] == action)
        form(**good)
        tasks = {"load_again": "read_tables_again", "skip": "approve_skip"}
        assert choose_repair.function() == tasks.get(action, action)
    form(action="release")
    with pytest.raises(TaskFailed, match="the form of the action release is wrong") as caught:
        choose_repair.function()
    assert not caught.value.retry


def test_spaces_and_empty_lines_are_ignored(form: Any, site: Site) -> None:
    site.quarantine("shop.my table, 'x'")
    form(action="release", tables=[" shop.my table, 'x' \r", "", " "], reason=" ", position="\t")
    assert choose_repair.function() == "release"
    assert release.function("shop") == ["shop.my table, 'x'"]
    position = repair_params()["position"]
    assert position.resolve(f" {_PLACE}\n") == f" {_PLACE}\n"
    with pytest.raises(ParamValidationError, match="write a position such as"):
        position.resolve("somewhere")


def test_tables_are_released(form: Any, site: Site, running: Task) -> None:
    for table in ("shop.a", "shop.b", "shop.c"):
        site.quarantine(table)
    form(action="release", tables=["shop.b"])
    assert release.function("shop") == ["shop.b"]
    with pytest.raises(TaskFailed, match="not quarantined"):
        release.function("shop")
    running.try_number = 2  # the first try may have released it
    assert release.function("shop") == []
    form(action="release", all_tables=True)
    assert release.function("shop") == ["shop.a", "shop.c"]


def test_tables_are_paused_and_resumed(
    form: Any, site: Site, running: Task, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pause_tasks, "get_current_context", repair_tasks.get_current_context)
    for table in ("shop.a", "shop.b"):
        site.quarantine(table)  # so the source has them
    form(action="pause", tables=["shop.*"], reason="disk full")
    running.triggering_user_name = "ada"
    with caplog.at_level("INFO"):
        for _ in range(2):  # a cleared task changes nothing
            assert pause.function("shop") == ["shop.a", "shop.b"]
    assert re.search(r"shop\.b is paused since \S+ \S+ UTC by ada: disk full", caplog.text)
    form(action="resume", tables=["shop.b"])
    assert resume.function("shop") == ["shop.b"]
    with pytest.raises(TaskFailed, match="no such paused table"):
        resume.function("shop")
    running.try_number = 2  # the first try may have resumed it
    assert resume.function("shop") == []
    form(action="pause", tables=["shop.a", "shop.typo"], reason="disk full")
    with pytest.raises(TaskFailed, match="the source has no such table"):
        pause.function("shop")


def test_the_columns_of_a_table_are_set(form: Any, site: Site) -> None:
    from loader.airflow.sources import settings_of

    form(action="set_schema", tables=["shop.t"], position="binlog.000001:200", definition=_CREATE)
    for _ in range(2):  # a cleared task changes nothing
        assert set_schema.function("shop") == {"table": "shop.t", "position": "binlog.000001:200"}
    known = table_schema(settings_of("shop"), TableName("shop", "t"), "binlog.000001:200").known()
    assert known.schema
    assert [column.name for column in known.schema.columns] == ["id", "name"]


def test_an_interval_is_restored_by_its_start(
    site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, conn_type="spark", host="yarn")
    site.stage()
    spark_submit_program.result = {"start_seqno": site.plan.start_seqno, "files": 1}
    operator = operator_of("restore", site, position="binlog.000001:4")
    assert operator.execute(running.context) == spark_submit_program.result
    assert spark_submit_program.spec["start_seqno"] == site.plan.start_seqno


@pytest.mark.parametrize("position", [" binlog.000001:4 ", "START"])
def test_rows_that_an_interval_lacks_are_staged(
    position: str, site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, conn_type="spark", host="yarn")
    entry = {"what": "not known", "why": "lost", "position": site.plan.stop, "at": site.plan.stop}
    site.stage((IncompleteTable(table="shop.orders", seqno=site.plan.stop_seqno, **entry),))
    spark_submit_program.result = {"extracts": [], "tables": []}
    place = position.replace("START", str(site.plan.start_seqno))  # an error names the seqno
    operator = operator_of("stage_rows", site, position=place)
    assert operator.execute(running.context) == spark_submit_program.result
    assert spark_submit_program.spec["start_seqno"] == site.plan.start_seqno
    assert spark_submit_program.argv and "extract_job.py" in " ".join(spark_submit_program.argv)


# Skipping a transaction.

SKIPPED = TransactionRows(
    source="shop", start="binlog.000001:100", stop="binlog.000001:900", seqno=9, gtid="0-1-7", start_seqno=1,
    tables=(RowCounts(table="shop.a|b", events=3, inserts=1, updates=2),),
)  # fmt: skip
SKIP_FORM = {"transaction": "0-1-7", "tables": ["shop.a|b"], "reason": "bad"}
YES = {"chosen_options": ["Approve"], "responded_by_user": {"id": "7", "name": "ada"}}
NO = {"chosen_options": ["Reject"], "responded_by_user": {"id": "7", "name": "ada"}}


def test_the_question_shows_what_is_skipped_and_why() -> None:
    text = question(SKIPPED.model_dump(mode="json"), "bad\x1b```\n# Approve")
    assert text.startswith("The transaction from binlog.000001:100 to binlog.000001:900, GTID 0-1-7.\n")
    assert "| shop.a\\|b | 3 | 1 | 2 | 0 |" in text
    assert text.count("```") == 2
    assert "\x1b" not in text and "\n# Approve" not in text


def test_a_person_is_asked_before_anything_is_skipped(
    running: Task, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr(
        "airflow.providers.standard.operators.hitl.upsert_hitl_detail", lambda **given: asked.update(given)
    )
    monkeypatch.setattr("loader.pipeline.find_skippable", lambda _, *named: asked.update(named=named) or SKIPPED)
    operator = ApproveSkipOperator(task_id="approve_skip", source="shop", form=SKIP_FORM)
    with pytest.raises(TaskWaits):
        operator.execute(running.context | {"task_instance": type("Instance", (), {"id": 1})()})
    assert asked["named"] == ("0-1-7", ("shop.a|b",))
    assert (asked["subject"], asked["defaults"]) == ("Skip a transaction at binlog.000001:100?", ["Reject"])
    assert asked["body"] == question(SKIPPED.model_dump(mode="json"), "bad")


def test_a_transaction_that_cannot_be_skipped_asks_nobody(running: Task, site: Site) -> None:
    operator = ApproveSkipOperator(task_id="approve_skip", source="shop", form=SKIP_FORM | {"transaction": "1:2:3"})
    with pytest.raises(TaskFailed, match="does not name one transaction"):
        operator.execute(running.context)


def _skip(answer: Any) -> SkipOperator:
    operator = SkipOperator(task_id="skip", source="shop", form=SKIP_FORM, answer=answer)
    operator.answer = answer
    return operator


@pytest.mark.parametrize("answer", [NO, {"chosen_options": ["Reject"], "responded_by_user": None}, None])
def test_without_a_yes_nothing_is_skipped(
    answer: Any, running: Task, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loader.pipeline.skip_transaction", lambda *_, **__: pytest.fail("it was skipped"))
    with pytest.raises(AirflowSkipException):
        _skip(answer).execute(running.context)


@pytest.mark.parametrize("staged", [True, False])
def test_a_skip_has_the_name_of_who_approved_it(
    staged: bool, running: Task, site: Site, spark_submit_program: SparkSubmit, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}

    def record(_: object, transaction: str, tables: tuple[str, ...], **named: str) -> TransactionRows:
        given.update(named, transaction=transaction, tables=tables)
        return SKIPPED.model_copy(update={"staged": staged, "start_seqno": site.plan.start_seqno})

    monkeypatch.setattr("loader.pipeline.skip_transaction", record)
    connect(monkeypatch, conn_type="spark", host="yarn")
    assert _skip(YES).execute(running.context)["gtid"] == "0-1-7"
    assert given == {"transaction": "0-1-7", "tables": ("shop.a|b",), "reason": "bad", "by": "ada"}
    assert (spark_submit_program.argv is not None) is staged
    if staged:
        assert spark_submit_program.spec["start_seqno"] == site.plan.start_seqno


def test_a_skip_is_withdrawn_in_the_name_of_who_triggered_the_run(
    form: Any, site: Site, running: Task, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(skip_tasks, "get_current_context", repair_tasks.get_current_context)
    from loader.airflow.sources import settings_of

    plan = site.plan
    record = SkipRecord(
        source="shop", generation=plan.generation, start=plan.stop, seqno=plan.stop_seqno + 100,
        table="shop.a", rows=(RowCounts(table="shop.a", events=1),), reason="bad", by="bob", since=datetime.now(UTC),
    )  # fmt: skip
    chain = chain_of(settings_of("shop"))
    key, _ = Skips(chain.store, "shop").keep(record)
    form(action="withdraw_skip", transaction=plan.stop, tables=["shop.b"], reason="wrong one")
    with pytest.raises(TaskFailed, match=r"no skip of shop\.b in this transaction is recorded"):
        withdraw_skip.function("shop")
    form(action="withdraw_skip", transaction=plan.stop, tables=["shop.a"], reason="wrong one")
    running.triggering_user_name = "ada"
    with caplog.at_level("INFO"):
        for _ in range(2):  # a cleared task changes nothing
            assert withdraw_skip.function("shop") == ["shop.a"]
    withdrawal = Skips(chain.store, "shop").withdrawal(key)
    assert withdrawal and (withdrawal.by, withdrawal.reason) == ("ada", "wrong one")
    assert re.search(r"rows of shop\.a is withdrawn by ada, \S+ \S+: wrong one", caplog.text)
