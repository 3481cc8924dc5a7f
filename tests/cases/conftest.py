"""The cases run once per kind of server, all together; `--update-cases` makes what they give what is expected."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from pyspark.sql import SparkSession

from tests.cases.case import Case
from tests.cases.runner import Runner
from tests.support.spark import jars, settings, spark
from tests.support.sweep import IN_SWEEP

__all__ = ["jars", "settings", "spark"]

KINDS = ("mysql", "mariadb") if IN_SWEEP else ("mysql",)

Ran = Callable[[str], Runner]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-cases", action="store_true", help="write the expected files of tests/cases anew")


@pytest.fixture(scope="session")
def update(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-cases", default=False))


@pytest.fixture(scope="session")
def ran(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """A function from a kind of server to its run of all cases that were asked for: one run, also if it fails."""

    @cache
    def run(kind: str) -> Runner | Exception:
        server = request.getfixturevalue(f"{kind}_server")
        runner = Runner(spark, server, tmp_path_factory.mktemp("cases"), _selected(request.session, kind))
        try:
            runner.run()
        except Exception as error:
            return error
        return runner

    def result(kind: str) -> Runner:
        found = run(kind)
        if isinstance(found, Exception):
            raise found
        return found

    return result


def _selected(session: pytest.Session, kind: str) -> list[Case]:
    found: dict[str, Case] = {}
    for item in session.items:
        parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        case = parameters.get("case")
        if isinstance(case, Case) and parameters["kind"] == kind:
            found[case.name] = case
    return list(found.values())
