"""The loader as a provider of Airflow: the connection type of a source."""

from __future__ import annotations

import json

import jsonschema
import pytest
from airflow.providers_manager import _create_provider_info_schema_validator
from airflow.sdk.module_loading import import_string

from loader.airflow.operators import LoaderSparkOperator
from loader.airflow.provider import get_provider_info


def test_airflow_takes_the_description() -> None:
    _create_provider_info_schema_validator().validate(get_provider_info())
    with pytest.raises(jsonschema.ValidationError):
        _create_provider_info_schema_validator().validate({"name": "only"})


def test_the_links_of_tasks_are_registered() -> None:
    links = [import_string(name) for name in get_provider_info()["extra-links"]]
    assert links == [type(link) for link in LoaderSparkOperator.operator_extra_links]
    assert [link.name for link in links] == ["Status of the source", "Interval", "Spark history", "Error page"]


def test_the_connection_type_has_its_hook(airflow_db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    (described,) = get_provider_info()["connection-types"]
    hook = import_string(described["hook-class-name"])
    assert (hook.conn_type, hook.hook_name) == (described["connection-type"], described["hook-name"])
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps({"conn_type": hook.conn_type, "password": "hunter2"}))
    assert hook("shop").get_conn() == "hunter2"
