"""An INCIDENT event in the log of a real server: it could not log what it changed in a table without transactions."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader import pipeline
from loader.errors import LoaderError, UnsupportedError
from loader.pipeline import chain_of, plan_interval
from loader.settings import IntervalLimits
from tests.integration.pipeline.shops import Shop, StartServer, begun

pytestmark = pytest.mark.integration

_SMALL = {"max_binlog_stmt_cache_size": "4096", "binlog_stmt_cache_size": "4096"}
_MANY = ",".join(f"({number}, REPEAT('x', 400))" for number in range(100))


@pytest.fixture(params=["mysql", "mariadb"])
def incident(request: pytest.FixtureRequest, fresh_server: StartServer, tmp_path: Path) -> Shop:
    """A shop whose log has an INCIDENT event that was not read yet, and a row after it."""
    shop = begun(fresh_server(request.param, _SMALL), tmp_path)
    shop.run("CREATE TABLE shop.m (id INT PRIMARY KEY, v VARCHAR(500)) ENGINE=MyISAM")
    shop.insert(1)
    shop.delta()
    with pytest.raises(LoaderError, match="max_binlog_stmt_cache_size"):
        shop.run(f"INSERT INTO shop.m VALUES {_MANY}")
    assert shop.run("SELECT COUNT(*) > 0 FROM shop.m") == [(1,)]
    shop.insert(2)
    return shop


@pytest.mark.parametrize("walked", [False, True], ids=["while it is extracted", "while it is planned"])
def test_an_incident_stops_the_source_until_all_tables_are_loaded_again(incident: Shop, walked: bool) -> None:
    limits = IntervalLimits(bytes=1 if walked else 0)
    shop = Shop(incident.server, incident.settings.model_copy(update={"interval": limits}))
    for _ in range(2):
        with pytest.raises(UnsupportedError, match="the server could not log some changes"):
            shop.delta()
    if shop.server.kind == "mariadb":  # MySQL begins another file after the event
        for _ in range(2):
            with pytest.raises(UnsupportedError, match="the server could not log some changes") as caught:
                pipeline.begin_again(shop.settings)
            assert "FLUSH BINARY LOGS" in caught.value.hint
        shop.run("FLUSH BINARY LOGS")
    generation = pipeline.begin_again(shop.settings)
    assert (generation.name, bool(generation.gap)) == ("0002", True)
    assert pipeline.begin_again(shop.settings) == generation
    shop.insert(3)
    assert sum(file.rows for file in shop.delta().files) == 1
    assert plan_interval(shop.settings) is not None
    assert chain_of(shop.settings).require_generation() == generation
