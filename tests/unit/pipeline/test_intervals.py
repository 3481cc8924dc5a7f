"""What is said of intervals: their states, their files, and what is wrong with these."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loader.cli.app import app
from loader.errors import DataError, UsageError
from loader.extract.repair.reextract import compare_manifests
from loader.model.table import TableName
from loader.pipeline import IntervalState, find_interval, find_stop, interval, intervals, staged_files, verify_interval
from loader.settings import SourceSettings
from loader.staging.documents import Followed, Plan
from tests.unit.pipeline.site import GENERATION, Site, shop


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path, shop(9)[0])


@pytest.fixture
def plans(site: Site) -> list[Plan]:
    """Three intervals: applied, staged, planned."""
    ends = shop(9)[1]
    made = [site.plan(ends[number]) for number in (3, 5, 8)]
    site.extract(made[0])
    site.extract(made[1])
    site.publish(made[0], "shop.orders", "shop.items")
    return made


def standing(site: Site) -> list[tuple[str, int, tuple[str, ...]]]:
    return [(one.state, one.rows, one.behind) for one in intervals(site.settings)]


def test_each_interval_has_a_state_and_tables_that_are_behind(site: Site, plans: list[Plan]) -> None:
    both = ("shop.items", "shop.orders")
    assert standing(site) == [("applied", 8, ()), ("staged", 4, both), ("planned", 0, ())]
    site.extract(plans[2])
    assert standing(site)[2] == ("staged", 5, both)
    site.publish(plans[2], *both)
    assert standing(site) == [("applied", 8, ()), ("applied", 4, ()), ("applied", 5, ())]


def test_an_interval_that_a_newer_generation_does_not_go_on_from_is_superseded(site: Site, plans: list[Plan]) -> None:
    follows = Followed(name="0001", stop_seqno=plans[0].stop_seqno)
    site.chain.begin(GENERATION.model_copy(update={"name": "0002", "shift": 10, "follows": follows}))
    assert [one.state for one in intervals(site.settings)] == ["applied", "superseded", "superseded"]


def test_a_staged_interval_names_its_manifest(site: Site, plans: list[Plan]) -> None:
    *staged, planned = (one.manifest for one in intervals(site.settings))
    assert staged == [f"{site.chain.folder('0001', plan.start_seqno)}/manifest.json" for plan in plans[:2]]
    assert planned == ""


def test_the_age_is_that_of_the_plan(site: Site, plans: list[Plan]) -> None:
    assert all(0 <= one.age < 600 for one in intervals(site.settings))


def test_one_in_detail_has_its_plan_and_manifest(site: Site, plans: list[Plan]) -> None:
    found = interval(site.settings, plans[1].start_seqno)
    assert found.plan == plans[1]
    assert found.manifest == site.chain.manifest("0001", plans[1].start_seqno)
    assert interval(site.settings, plans[2].start_seqno).manifest is None
    with pytest.raises(DataError, match="no interval starts there"):
        interval(site.settings, 77)


def test_a_table_without_records_is_said_to_have_none(site: Site, plans: list[Plan]) -> None:
    _, files = staged_files(site.settings, plans[0].start_seqno, TableName("shop", "items"))
    assert sum(file.rows for file in files) == 4
    with pytest.raises(DataError, match="no records of the table"):
        staged_files(site.settings, plans[0].start_seqno, TableName("shop", "carts"))
    with pytest.raises(DataError, match="not staged yet"):
        staged_files(site.settings, plans[2].start_seqno, TableName("shop", "items"))


def test_lost_changed_and_foreign_files_are_named(site: Site, plans: list[Plan]) -> None:
    start = plans[0].start_seqno
    assert verify_interval(site.settings, start) == []
    lost, changed = (file.key for file in site.extract(plans[0]).files)
    foreign = lost.replace("part-", "part-9")
    with site.store.writing(foreign) as sink:
        sink.write(site.store.get(lost))
    data = bytearray(site.store.get(changed))
    data[3] ^= 1
    with site.store.writing(changed) as sink:
        sink.write(data)
    site.store.delete(lost)
    found = {fault.file: (fault.fault, fault.why[:16]) for fault in verify_interval(site.settings, start)}
    assert found == {
        lost: ("lost or changed", "a staged file is"),
        changed: ("lost or changed", "SHA-256 " + site.extract(plans[0]).files[1].sha256[:8]),
        foreign: ("foreign", ""),
    }


def test_a_losing_attempt_s_files_are_not_foreign(site: Site, plans: list[Plan]) -> None:
    site.attempt(plans[0], "loser")
    assert verify_interval(site.settings, plans[0].start_seqno) == []


def test_another_extraction_is_equal_however_it_is_split(site: Site, plans: list[Plan]) -> None:
    staged = site.extract(plans[0])
    found = compare_manifests(staged, site.attempt(plans[0], "again", pieces=9))
    assert (found.differences, found.exit_code) == ((), 0)
    assert found.files == len(staged.files)


def test_what_another_extraction_has_otherwise_is_named(site: Site, plans: list[Plan]) -> None:
    staged = site.extract(plans[0])
    again = site.attempt(plans[0], "again")
    first, second = again.files
    other = again.model_copy(
        update={
            "files": (first.model_copy(update={"bytes": 7, "inserts": 9}),),
            "balance": again.balance.model_copy(update={"events": 1}),  # type: ignore[union-attr]
        }
    )
    found = compare_manifests(staged, other)
    assert found.exit_code == 4
    assert [(one.name, one.what) for one in found.differences] == [
        (first.key.split("/", 4)[-1], "different"), (second.key.split("/", 4)[-1], "only staged"), ("balance", "different"),
    ]  # fmt: skip
    assert found.differences[0].why == f"inserts {first.inserts} became 9; bytes {first.bytes} became 7"
    assert [one.what for one in compare_manifests(other, again).differences].count("only extracted again") == 1


class Command:
    """The command on the site."""

    def __init__(self, site: Site) -> None:
        self.config = site.folder / "loader.toml"
        self.config.write_text(
            f'[staging]\nroot = "{site.settings.staging_root}"\n[warehouse]\npath = "/tmp/w"\n[spark]\njars = "/tmp"\n'
            '[sources.shop]\nhost = "127.0.0.1"\nuser = "nobody"\ntables.include = ["shop.*"]\n'
        )

    def __call__(self, *arguments: str, code: int = 0, as_json: bool = False) -> str:
        options = ["--config", str(self.config), *(["--json"] if as_json else [])]
        done = CliRunner().invoke(app, [*options, *arguments])
        assert done.exit_code == code, (done.output, done.exception)
        return done.stdout


@pytest.fixture
def command(site: Site) -> Command:
    return Command(site)


def test_the_command_lists_intervals(site: Site, plans: list[Plan], command: Command) -> None:
    lines = command("intervals").splitlines()
    states = ("applied", "staged", "planned")
    assert [line.split()[:3] for line in lines[1:]] == [
        [plan.start, plan.stop, state] for plan, state in zip(plans, states, strict=True)
    ]
    assert lines[2].split()[-1] == "2"
    found = [IntervalState.model_validate(one) for one in json.loads(command("intervals", as_json=True))]
    assert [(one.state, one.bytes) for one in found] == [(one.state, one.bytes) for one in intervals(site.settings)]


def test_seqnos_are_shown_if_somebody_asks(site: Site, plans: list[Plan], command: Command) -> None:
    seqnos = [str(plan.start_seqno) for plan in plans]
    assert not any(seqno in command("intervals") + command("intervals", plans[0].start) for seqno in seqnos)
    assert [line.split()[0] for line in command("--verbose", "intervals").splitlines()] == ["start_seqno", *seqnos]
    first = command("--verbose", "intervals", plans[0].start).splitlines()[0]
    assert first == f"interval {plans[0].start} to {plans[0].stop} of generation 0001 (seqno {seqnos[0]})"


def test_an_interval_is_named_by_its_position_or_seqno(site: Site, plans: list[Plan], command: Command) -> None:
    for plan in plans:
        by_position = command("intervals", plan.start, as_json=True)
        assert json.loads(by_position)["state"]["start_seqno"] == plan.start_seqno
        assert (
            json.loads(command("intervals", str(plan.start_seqno), as_json=True))["plan"]
            == json.loads(by_position)["plan"]
        )
    assert command("staged", "cat", plans[0].start, "shop.items") == command(
        "staged", "cat", str(plans[0].start_seqno), "shop.items"
    )


def test_a_position_belongs_to_the_newest_generation_that_has_an_interval_there(site: Site, plans: list[Plan]) -> None:
    follows = Followed(name="0001", stop_seqno=plans[0].stop_seqno)
    newer = GENERATION.model_copy(update={"name": "0002", "shift": 10, "follows": follows, "start": plans[1].start})
    site.chain.begin(newer)
    assert find_interval(site.settings, plans[1].start) == plans[1].start_seqno
    seqno = plans[1].interval.start.seqno(10)
    moved = {"generation": "0002", "shift": 10, "start_seqno": seqno, "stop_seqno": plans[1].interval.stop.seqno(10)}
    site.chain.extend(plans[1].model_copy(update={name: moved[name] for name in moved if name in Plan.model_fields}))
    assert find_interval(site.settings, plans[1].start) == seqno
    assert find_stop(site.settings, plans[1].stop) == plans[1].interval.stop.seqno(10)
    assert find_stop(site.settings, "77") == find_interval(site.settings, "77") == 77


@pytest.mark.parametrize("find", [find_interval, find_stop])
def test_a_wrong_position_is_refused(site: Site, plans: list[Plan], find: Callable[[SourceSettings, str], int]) -> None:
    with pytest.raises(UsageError, match="'binlog' is not a log position"):
        find(site.settings, "binlog")
    with pytest.raises(DataError, match=r"no interval starts there|the log was not read at that position"):
        find(site.settings, "other.000001:4")


def test_the_command_shows_one_interval(site: Site, plans: list[Plan], command: Command) -> None:
    text = command("intervals", str(plans[0].start_seqno))
    assert text.splitlines()[0] == f"interval {plans[0].start} to {plans[0].stop} of generation 0001"
    for file in site.extract(plans[0]).files:
        assert file.key.split("/", 3)[-1] in text
        assert file.sha256 in text
    for name in ("row_events_staged", "skipped: row events of tables that are not captured", "WRITE_ROWS"):
        assert name in text
    found = json.loads(command("intervals", str(plans[0].start_seqno), as_json=True))
    assert found["manifest"]["balance"]["transactions"] == 4


def test_the_command_verifies_one_interval(site: Site, plans: list[Plan], command: Command) -> None:
    start = str(plans[0].start_seqno)
    assert "every file matches the manifest" in command("intervals", start, "--verify")
    key = site.extract(plans[0]).files[0].key
    site.store.delete(key)
    assert key in command("intervals", start, "--verify", code=4)
    (fault,) = json.loads(command("intervals", start, "--verify", code=4, as_json=True))
    assert fault["file"] == key


def test_staged_records_are_shown_a_line_each(site: Site, plans: list[Plan], command: Command) -> None:
    start, ends = str(plans[0].start_seqno), shop(9)[1]
    lines = command("staged", "cat", start, "shop.items").splitlines()
    assert len(lines) == 4
    assert lines[0].startswith(f"I {10**12 + ends[1]}+")
    assert lines[0].endswith("  id = 1, line = 1")
    found = [json.loads(line) for line in command("staged", "cat", start, "shop.orders", as_json=True).splitlines()]
    assert [one["row"] for one in found] == [{"id": n, "name": "o" * 50 * n} for n in range(4)]
    assert {one["op"] for one in found} == {"I"}


def test_records_of_a_changed_file_are_not_shown(site: Site, plans: list[Plan], command: Command) -> None:
    file = next(file for file in site.extract(plans[0]).files if file.table == "items")
    with site.store.writing(file.key) as sink:
        sink.write(b"x")
    done = CliRunner().invoke(
        app, ["--config", str(command.config), "staged", "cat", str(plans[0].start_seqno), "shop.items"]
    )
    assert done.stdout == ""
    assert "a staged file has changed" in str(done.exception)
