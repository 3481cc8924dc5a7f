"""Running DAGs without a scheduler."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from loader.airflow.versions import AIRFLOW
from tests.dags.conftest import Site


@pytest.mark.skipif(AIRFLOW == (3, 2), reason="this version of Airflow cannot run DAGs in one process")
def test_requests_are_answered_line_by_line(site: Site, tmp_path: Path) -> None:
    (tmp_path / "staging" / "shop" / "0001" / "generation.json").unlink()
    sent = tmp_path / "sent"
    has_exception = AIRFLOW >= (3, 2)  # in one process; with a scheduler 3.1 has it as well
    text = "{{ ti.task_id }}: {{ exception }}" if has_exception else "{{ ti.task_id }}: "
    with (tmp_path / "loader.toml").open("a") as config:
        config.write('[sources.shop.airflow.notifier]\ntype = "tests.dags.notifiers.FileNotifier"\n')
        config.write(f'arguments = {{ file = "{sent}", text = "{text}" }}\n')
    requests = [
        {"dag_id": "shop.delta"},
        {"dag_id": "shop.initial_load", "conf": {"table": "shop.orders"}},
        {"dag_id": "shop.initial_load", "conf": {"tables": ["shop.orders"]}},
        {"dag_id": "shop.delta"},  # fails as the first one, so it is not told
    ]
    outside = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    done = subprocess.run(
        [sys.executable, "-m", "loader.airflow.local_runs", str(tmp_path / "home")],
        input="".join(f"{json.dumps(request)}\n" for request in requests),
        env=outside,
        capture_output=True,
        text=True,
        check=True,
    )
    first, second, third, fourth = map(json.loads, done.stdout.splitlines())
    assert {first["state"], second["state"], third["state"], fourth["state"]} == {"failed"}
    assert first["tasks"]["plan_interval"]["state"] == "failed"
    assert first["tasks"]["plan_interval"]["error"].startswith("nothing was loaded from this source yet")
    assert first["tasks"]["extract"] == {"state": "upstream_failed", "result": None, "error": None}
    assert second["tasks"]["read_tables"]["error"].startswith("the run's conf has unknown keys: table")
    assert third["tasks"]["read_tables"]["error"].startswith("the server does not answer")
    told = [
        task["error"].partition("\n")[0] for task in (first["tasks"]["plan_interval"], third["tasks"]["read_tables"])
    ]
    lines = sent.read_text().splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["plan_interval", "read_tables", "read_tables"]
    assert not has_exception or [lines[0].partition(": ")[2], lines[2].partition(": ")[2]] == told
