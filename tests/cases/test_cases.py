"""What is staged and what is in the tables, of each case, is what its files say; and the tables are those of the source."""

from __future__ import annotations

import pytest

from tests.cases.case import FOLDER, Case, names
from tests.cases.conftest import KINDS, Ran
from tests.support.sweep import IN_SWEEP

CASES = [Case.read(name) for name in names()]


@pytest.mark.integration
@pytest.mark.parametrize(("kind", "case"), [
    pytest.param(kind, case, id=f"{case.name}-{kind}")
    for kind in KINDS for case in CASES if kind in case.servers and case.long <= IN_SWEEP
])  # fmt: skip
def test_case(case: Case, kind: str, ran: Ran, update: bool) -> None:
    run = ran(kind)
    found = run.outcomes[case.name]
    assert run.files_of(case.name) >= case.files
    assert found.differences == []
    if update:
        case.update(kind, found.text)
    assert found.text == case.expected(kind).read_text(encoding="utf-8")


def test_every_case_is_in_the_list() -> None:
    listed = [
        line for line in (FOLDER / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith("| [")
    ]
    assert listed == [f"| [{case.name}]({case.name}/source.sql) | {case.why} |" for case in CASES]
