"""The examples of docs/reference/library.md run as they are written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from loader.reader import events
from tests.unit.binlog.builder import LogBuilder
from tests.unit.reader.logs import ORDERS, written

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "library.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
PRINTED = {0: "FORMAT_DESCRIPTION binlog.000001 4\nGTID binlog.000001 127\n", 3: "127 "}


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path, [bytes(LogBuilder().insert(ORDERS, (1, "one"), (2, "two")).data)], index=True)
    exec(compile(EXAMPLES[number], f"{PAGE.name}, example {number}", "exec"), {"LOGS": tmp_path, "__name__": "example"})  # noqa: S102
    assert capsys.readouterr().out.startswith(PRINTED.get(number, ""))


def test_there_are_examples_of_each_part() -> None:
    assert len(EXAMPLES) == 6


def test_every_class_of_events_is_listed_with_its_fields() -> None:
    listed = dict(re.findall(r"^\| `(\w+Event)` \| ([^|]*) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    classes = [one for one in vars(events).values() if isinstance(one, type) and issubclass(one, events.Event)]
    own = {one.__name__: list(vars(one).get("__annotations__", {})) for one in classes if one is not events.Event}
    assert {name: re.findall(r"`(\w+)`", fields) for name, fields in listed.items()} == own
