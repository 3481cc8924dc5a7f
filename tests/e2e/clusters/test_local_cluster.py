"""The loader on Spark's local cluster: two executors, each a process with one core."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.servers import start_server
from loader.cli.demo.shop import create_shop
from tests.e2e.loaded import Loaded, load_and_follow

pytestmark = pytest.mark.e2e

ROWS = 500
TABLES = ("shop.orders", "shop.customers")
WITHOUT_LOADER = str(Path(getattr(sys, "_base_executable", sys.executable)).resolve())
"""The Python that the environment of the tests was made with."""


@pytest.fixture(scope="module")
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, jars: str) -> Iterator[Loaded]:
    folder = tmp_path_factory.mktemp("local-cluster")
    with start_server("mysql", folder / "server") as server:
        found = Loaded(server, folder / "loader", jars, spark=lambda: request.getfixturevalue("spark"))
        found.configure()
        create_shop(found.address, ROWS)
        found.create_user()
        yield found


def on_cluster(shop: Loaded, setting: str = "") -> None:
    shop.configure()
    text = shop.config.read_text().replace('master = "local[2]"', f'master = "local-cluster[2,1,1024]"\n{setting}')
    shop.config.write_text(text.replace('"shop.*"', ", ".join(f'"{table}"' for table in TABLES)))


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("python", "why"),
    [
        (WITHOUT_LOADER, "has binlog-loader none (No module named 'loader'), the driver on"),
        ("/nowhere/python3", 'Cannot run program "/nowhere/python3"'),
    ],
    ids=["no-loader", "no-python"],
)
def test_executors_that_cannot_run_the_loader_are_named(shop: Loaded, python: str, why: str) -> None:
    on_cluster(shop, f'python = "{python}"')
    errors = [table["error"] for table in shop.json("initial-load", code=2)["tables"]]
    assert len(errors) == len(TABLES)
    for error in errors:
        assert error["what"] == "executors of Spark lack the driver's version of Python or of the loader"
        assert why in error["why"]
        assert "loader package" in error["hint"]


@pytest.mark.sweep
def test_executors_that_cannot_keep_compiled_code_say_so(shop: Loaded) -> None:
    on_cluster(shop)
    folder = '", "spark.executorEnv.LOADER_CACHE" = "/proc/nowhere" }'
    shop.config.write_text(shop.config.read_text().replace('" }', folder))
    for table in shop.json("initial-load", code=2)["tables"]:
        assert table["error"]["what"] == "a folder for compiled code cannot be created"
        assert table["error"]["why"].endswith(f"on {platform.node()}")
        assert "spark.executorEnv.LOADER_CACHE" in table["error"]["hint"]


@pytest.mark.sweep
def test_tables_are_loaded_followed_and_equal(shop: Loaded) -> None:
    on_cluster(shop)
    load_and_follow(shop)
    assert shop.differences(TABLES) == dict.fromkeys(TABLES, 0)
