"""The loader as a provider of Airflow: the connection type of a source."""

from __future__ import annotations

import json
import subprocess
import sys

import jsonschema
import pytest
from airflow.providers_manager import _create_provider_info_schema_validator
from airflow.sdk.module_loading import import_string

from loader.airflow.linked_task import LinkedTaskOperator
from loader.airflow.operators import LoaderSparkOperator
from loader.airflow.provider import get_provider_info
from loader.airflow.versions import AIRFLOW
from loader.config.source import Source
from loader.transport.server.address import ServerAddress


def test_airflow_takes_the_description() -> None:
    _create_provider_info_schema_validator().validate(get_provider_info())
    with pytest.raises(jsonschema.ValidationError):
        _create_provider_info_schema_validator().validate({"name": "only"})


def test_the_links_of_tasks_are_registered() -> None:
    links = [import_string(name) for name in get_provider_info()["extra-links"]]
    assert links == [type(link) for link in LoaderSparkOperator.operator_extra_links]
    names = ["Status of the source", "Page of the table", "Interval and manifest", "Spark history", "Error page"]
    assert [link.name for link in links] == names
    assert {type(link) for link in LinkedTaskOperator.operator_extra_links} <= set(links)


def test_the_connection_type_has_its_hook(airflow_db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    (described,) = get_provider_info()["connection-types"]
    hook = import_string(described["hook-class-name"])
    assert (hook.conn_type, hook.hook_name) == (described["connection-type"], described["hook-name"])
    fields = {"host": "db", "login": "loader", "password": "hunter2"}
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps({"conn_type": hook.conn_type, **fields}))
    assert hook("shop").get_conn() == ServerAddress(host="db", user="loader", password="airflow:shop")


@pytest.mark.skipif(AIRFLOW < (3, 2), reason="this version of Airflow has no fields for the extra")
def test_the_form_has_the_keys_of_tls_as_fields(airflow_db: None) -> None:
    from airflow.api_fastapi.core_api.services.ui.connections import HookMetaService

    (form,) = [one for one in HookMetaService.hook_meta_data() if one.connection_type == "binlog_source"]
    assert form.hook_name == "binlog-loader source"
    assert set(form.extra_fields or {}) == {"tls", "tls_ca", "tls_cert", "tls_key", "server_public_key"}
    assert set(form.extra_fields or {}) <= set(Source.model_fields)
    standard = form.standard_fields
    assert standard is not None
    assert standard.host is not None
    assert standard.host.placeholder == "db.example.org"
    assert standard.url_schema is not None
    assert standard.url_schema.hidden is True


def test_airflow_reads_the_description_before_it_has_started() -> None:
    code = "import sys, loader.airflow.provider as p; p.get_provider_info(); print('airflow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"
